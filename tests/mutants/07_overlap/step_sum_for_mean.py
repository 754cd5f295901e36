"""Leaves the sum."""
# caught by: test_backward_pass
# mistake: sum_or_mean
# says: is 4 times what it should be
# %% backward_pass: changed
#           work.wait()
# -         flat /= dist.get_world_size()
