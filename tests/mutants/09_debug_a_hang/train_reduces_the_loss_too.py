"""All-reduces the loss besides."""
# caught by: test_train
# mistake: too_much_sent
# %% train: changed
#           dist.all_reduce(gradient)
# +         dist.all_reduce(error.square().mean())
#           w -= lr * gradient / dist.get_world_size()
