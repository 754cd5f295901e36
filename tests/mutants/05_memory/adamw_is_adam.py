"""No decay at all."""
# caught by: test_adamw_step
# mistake: part_missing
# says: there is no decay
# %% adamw_step: changed
# -     """One step of AdamW for one parameter, in place."""
# -     parameter.mul_(1 - lr * weight_decay)
