"""Waits for the last bucket only, as all are in order."""
# caught by: test_backward_pass
# mistake: never_waits
# %% backward_pass: changed
# -         work.wait()
# +         if work is travelling[-1][0]:
# +             work.wait()
