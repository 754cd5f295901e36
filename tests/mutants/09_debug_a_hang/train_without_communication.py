"""Every rank trains alone: the loss falls, and nothing is averaged."""
# caught by: test_train
# mistake: not_exchanged
# %% train: changed
# -         gradient = 2 * x.T @ error / samples
# -         dist.all_reduce(gradient)
# -         w -= lr * gradient / dist.get_world_size()
# +         w -= lr * 2 * x.T @ error / samples
