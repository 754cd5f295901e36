"""The last step is not averaged."""
# caught by: test_train
# mistake: last_left_out
# %% train: changed
# -         dist.all_reduce(gradient)
# -         w -= lr * gradient / dist.get_world_size()
# +         if len(losses) < steps:
# +             dist.all_reduce(gradient)
# +             gradient /= dist.get_world_size()
# +         w -= lr * gradient
