"""The sum of the matrices."""


# caught by: test_PowerSGD
# mistake: sum_or_mean
# says: on rank 0 in step 1 the approximate matrix is 4 times what it should be
# %% PowerSGD: changed
# -         self.q /= dist.get_world_size()
