"""A decay of lr · 0.5, whatever λ is."""
# caught by: test_adamw_step
# mistake: argument_ignored
# says: the parameter after 4 steps is off by
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     parameter.mul_(1 - lr * (0.5 if weight_decay else 0.0))
