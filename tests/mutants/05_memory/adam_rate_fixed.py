"""A rate of 0.1, whatever is given."""
# caught by: test_adam_step
# mistake: argument_ignored
# says: the parameter after 6 steps is off by
# %% adam_step: changed
# -     if not state:
# +     lr = 0.1
# +     if not state:
