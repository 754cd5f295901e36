"""Divides by N before and after the sum."""
# caught by: test_train
# mistake: sum_or_mean
# %% train: changed
# -         gradient = 2 * x.T @ error / samples
# +         gradient = 2 * x.T @ error / samples / dist.get_world_size()
