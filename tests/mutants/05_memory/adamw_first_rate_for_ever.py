"""How much it decays is noted in the first step."""
# caught by: test_adamw_step
# mistake: argument_ignored
# says: after 2 steps other options are given
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     if not state:
# +         adamw_step.shrinks = 1 - lr * weight_decay
# +     parameter.mul_(adamw_step.shrinks)
