"""The two numbers are printed, where they were to be returned."""
# caught by: test_fit_alpha_beta
# mistake: wrong_kind
# says: returned None, not (alpha, beta)
# %% fit_alpha_beta: changed
# -     return alpha, beta
# +     print(alpha, beta)
