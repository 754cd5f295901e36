"""The sum of the parameters, not their mean."""


# caught by: test_local_sgd
# mistake: sum_or_mean
# says: on rank 0 before step 4 the vector of parameters is 4 times what it should be
# %% local_sgd: changed
# -                     p.data /= dist.get_world_size()
