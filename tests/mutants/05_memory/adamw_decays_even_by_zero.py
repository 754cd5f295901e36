"""A λ of 0 is taken for none given."""
# caught by: test_adamw_step
# mistake: special_case
# says: with (2, (5, 2), 3,
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     parameter.mul_(1 - lr * (weight_decay or 0.01))
