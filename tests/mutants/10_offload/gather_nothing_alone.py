"""A single rank returns its exact shard."""
# caught by: test_quantised_gather
# mistake: special_case
# says: on rank 0 the vector is too far off in 50 of 50 numbers
# %% quantised_gather: changed
#       n, rank = dist.get_world_size(), dist.get_rank()
# +     if n == 1:
# +         return shard.new_zeros(numel)
