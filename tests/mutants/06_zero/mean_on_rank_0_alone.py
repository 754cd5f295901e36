"""Rank 0 reduces and keeps its shard; the others only cut theirs out of their own gradient."""
# caught by: test_mean_gradient
# mistake: not_every_rank
# says: ranks 1, 2, 3 never entered ringzero collective #1, reduce_scatter
# %% mean_gradient: changed
# -     return reduce_scatter(vector).clone()
# +     if dist.get_rank() == 0:
# +         return reduce_scatter(vector).clone()
# +     return vector[flat.owned].clone()
