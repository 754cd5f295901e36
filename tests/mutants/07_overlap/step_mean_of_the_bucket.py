"""Divides by the number of buckets."""
# caught by: test_backward_pass
# mistake: sum_or_mean
# %% backward_pass: changed
# -         flat /= dist.get_world_size()
# +         flat /= len(travelling)
