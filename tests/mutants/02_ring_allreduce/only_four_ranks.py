"""The number of ranks that the lab starts with is written into the code."""
# caught by: test_ring_reduce_scatter
# mistake: some_ranks_only
# %% ring_reduce_scatter: changed
# -     """Return chunk ``rank`` of the sum over ranks, a view of ``tensor``. The rest of ``tensor`` is scratch."""
# -     rank, n = dist.get_rank(), dist.get_world_size()
# +     rank, n = dist.get_rank(), 4
# @@
# -     chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
