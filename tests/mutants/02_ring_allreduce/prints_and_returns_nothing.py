"""The two numbers are printed, where they were to be returned."""
# caught by: test_fit_alpha_beta
# says: x
# %% fit_alpha_beta: changed
# -     return alpha, beta
# +     print(alpha, beta)
