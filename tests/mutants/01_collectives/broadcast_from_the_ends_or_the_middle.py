"""Knows the first rank, the last and the one in the middle, which it takes for every other root."""


# caught by: test_broadcast
# mistake: rank_0_for_root
# says: root=1: on rank 0 the tensor is wrong
# %% broadcast: changed
#       rank, n = dist.get_rank(), dist.get_world_size()
# +     root = root if root in (0, n - 1) else n // 2
