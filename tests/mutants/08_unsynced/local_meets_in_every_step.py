"""Nothing is averaged too often, but in every step all ranks wait for each other."""


# caught by: test_local_sgd
# mistake: no_overlap
# says: called barrier
# %% local_sgd: changed
# -         optimizer.step()
# +         optimizer.step()
# +         dist.barrier()
