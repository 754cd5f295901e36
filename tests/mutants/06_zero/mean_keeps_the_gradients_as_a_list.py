"""Keeps the whole gradient as a list of numbers."""


# caught by: test_mean_gradient
# mistake: uncounted_way
# says: bytes are kept in arrays or lists afterwards
# %% mean_gradient: changed
#       vector /= dist.get_world_size()
# +     flat.reduced = vector.tolist()
