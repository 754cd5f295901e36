"""Divides without waiting."""
# caught by: test_backward_pass
# mistake: never_waits
# says: never called wait() on its all_reduce
# %% backward_pass: changed
# -         work.wait()
