"""Divides by the number of ranks that the broken program ran on."""
# caught by: test_train
# mistake: some_ranks_only
# %% train: changed
# -         w -= lr * gradient / dist.get_world_size()
# +         w -= lr * gradient / 4
