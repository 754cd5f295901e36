"""Only rank 0 divides by the number of ranks."""
# caught by: test_train
# mistake: not_every_rank
# %% train: changed
# -         w -= lr * gradient / dist.get_world_size()
# +         if dist.get_rank() == 0:
# +             gradient /= dist.get_world_size()
# +         w -= lr * gradient
