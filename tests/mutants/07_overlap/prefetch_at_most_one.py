"""One layer ahead, however many are allowed."""
# caught by: test_forward_pass
# mistake: argument_ignored
# says: that is with 1 ahead
# %% forward_pass: changed
#       gathered, done = 0, []
# +     ahead = min(ahead, 1)
