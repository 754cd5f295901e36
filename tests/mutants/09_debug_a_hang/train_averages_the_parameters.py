"""Each rank takes its own step; what is averaged is w."""
# caught by: test_train
# mistake: parameters_for_gradients
# says: is not its gradient
# %% train: changed
# -         dist.all_reduce(gradient)
# -         w -= lr * gradient / dist.get_world_size()
# +         w -= lr * gradient
# +         dist.all_reduce(w)
# +         w /= dist.get_world_size()
