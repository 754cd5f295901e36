"""Decays matrices only, as recipes do."""
# caught by: test_adamw_step
# mistake: special_case
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     if parameter.dim() > 1:
# +         parameter.mul_(1 - lr * weight_decay)
