"""The ring of four for every number above."""
# caught by: test_ring_all_reduce
# mistake: some_ranks_only
# %% ring_all_reduce: changed
# -     rank, n = dist.get_rank(), dist.get_world_size()
# +     rank, n = dist.get_rank(), min(dist.get_world_size(), 4)
# +     if rank >= n:
# +         return
