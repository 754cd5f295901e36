"""Divides without waiting."""
# caught by: test_backward_pass
# says: never called wait() on its all_reduce
# %% backward_pass: changed
# -         work.wait()
