"""torch's all-reduce where a reduce-scatter was to do."""


# caught by: test_mean_gradient
# mistake: ready_made
# says: rank 0 called all_reduce; build it from ringzero's collectives
# %% mean_gradient: changed
# -     return reduce_scatter(vector).clone()
# +     dist.all_reduce(vector)
# +     return vector[flat.owned].clone()
