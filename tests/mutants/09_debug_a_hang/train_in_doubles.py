"""Sums float64."""
# caught by: test_train
# mistake: too_much_sent
# %% train: changed
#           gradient = 2 * x.T @ error / samples
# +         gradient = gradient.double()
#           dist.all_reduce(gradient)
# +         gradient = gradient.float()
#           w -= lr * gradient / dist.get_world_size()
