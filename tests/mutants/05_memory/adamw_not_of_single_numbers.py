"""Decays row by row, which a tensor without dimensions does not have."""
# caught by: test_adamw_step
# mistake: special_case
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     for row in parameter:
# +         row.mul_(1 - lr * weight_decay)
