"""The decay uses lr = 0.001."""
# caught by: test_adamw_step
# mistake: argument_ignored
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     parameter.mul_(1 - 1e-3 * weight_decay)
