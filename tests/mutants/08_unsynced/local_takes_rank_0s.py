"""All get what rank 0 has: the others add zeros."""


# caught by: test_local_sgd
# mistake: not_exchanged
# says: all ranks have what rank 0 had, not the mean
# %% local_sgd: changed
# -                     dist.all_reduce(p.data)
# -                     p.data /= dist.get_world_size()
# +                     if dist.get_rank():
# +                         p.data.zero_()
# +                     dist.all_reduce(p.data)
