"""After twelve steps each rank goes on alone."""
# caught by: test_train
# mistake: some_times_only
# %% train: changed
# -     for _ in range(steps):
# +     for step in range(steps):
# @@
# -         dist.all_reduce(gradient)
# -         w -= lr * gradient / dist.get_world_size()
# +         if step < 12:
# +             dist.all_reduce(gradient)
# +             gradient /= dist.get_world_size()
# +         w -= lr * gradient
