"""Parameters whose gradient is 0 do not decay."""
# caught by: test_adamw_step
# mistake: special_case
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     parameter.mul_(1 - lr * weight_decay * (gradient != 0).to(parameter.dtype))
