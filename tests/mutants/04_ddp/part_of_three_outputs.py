"""Divides by three times the samples, as if every model had three outputs."""
# caught by: test_loss_of_part
# mistake: shown_cases_only
# %% loss_of_part: changed
# -     return error.square().sum() / y.numel() * n
# +     return error.square().sum() / (3 * len(y)) * n
