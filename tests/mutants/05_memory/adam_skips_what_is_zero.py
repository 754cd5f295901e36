"""A gradient of zeros is no step: the moments stay."""
# caught by: test_adam_step
# mistake: special_case
# says: the parameter after
# %% adam_step: changed
# +     if not gradient.any():
# +         return
#       if not state:
