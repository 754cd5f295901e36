"""Its own gradients, cut to the shard: nothing is communicated."""


# caught by: test_mean_gradient
# mistake: not_exchanged
# says: it was not reduced
# %% mean_gradient: changed
# -     vector /= dist.get_world_size()
# -     return reduce_scatter(vector).clone()
# +     return vector[flat.owned].clone()
