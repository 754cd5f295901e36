"""Knows the first rank, the last and the one in the middle, which it takes for every other root."""


# caught by: test_gather
# mistake: rank_0_for_root
# says: root=1: on rank 1 the root's tensor is wrong
# %% gather: changed
#       rank, chunks = dist.get_rank(), chunks_of(tensor)
# +     root = root if root in (0, len(chunks) - 1) else len(chunks) // 2
