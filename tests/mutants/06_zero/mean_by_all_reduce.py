"""An all-reduce where a reduce-scatter was to do: twice the traffic, the same shard."""


# caught by: test_mean_gradient
# mistake: too_much_sent
# says: 1.5 times them; 0.75 times would do
# %% mean_gradient: changed
# -     return reduce_scatter(vector).clone()
# +     import ringzero
# +
# +     return ringzero.all_reduce(vector)[flat.owned].clone()
