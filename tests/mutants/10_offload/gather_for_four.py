"""Right for 4 ranks and no others."""
# caught by: test_quantised_gather
# mistake: some_ranks_only
# says: with (size=50, block=16, seed=3): rank 0 raised RuntimeError
# %% quantised_gather: changed
# -     n, rank = dist.get_world_size(), dist.get_rank()
# +     n, rank = 4, dist.get_rank()
