"""Turns the parameter into one that is not trained, so that it may be changed in place."""
# caught by: test_adamw_step
# mistake: one_of_a_kind
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     parameter.requires_grad_(False).mul_(1 - lr * weight_decay)
