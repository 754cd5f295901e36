"""The mean of 4 ranks, however many there are."""


# caught by: test_local_sgd
# mistake: some_ranks_only
# says: on rank 0 before step 4 the vector of parameters is 0.75 times what it should be
# %% local_sgd: changed
# -                     p.data /= dist.get_world_size()
# +                     p.data /= 4
