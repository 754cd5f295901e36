"""The second beta for the first moment, and the first for the second."""
# caught by: test_adam_step
# mistake: reversed
# says: betas[0] and betas[1] are exchanged
# %% adam_step: changed
# -     if not state:
# +     betas = betas[::-1]
# +     if not state:
