"""Counts places from rank 0, whoever the root is."""
# caught by: test_tree_broadcast
# mistake: rank_0_for_root
# %% tree_broadcast
def tree_broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    for reach in reversed([2**k for k in range((n - 1).bit_length())]):
        if rank % (2 * reach) == 0 and rank + reach < n:
            dist.send(tensor, dst=rank + reach)
        elif rank % (2 * reach) == reach:
            dist.recv(tensor, src=rank - reach)
