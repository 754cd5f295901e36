"""Nobody looks whether the rank to send to is there."""
# caught by: test_tree_broadcast
# mistake: some_ranks_only
# %% tree_broadcast
def tree_broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    place, reach = (rank - root) % n, 1
    while 2 * reach < n:
        reach *= 2
    while reach and n > 1:
        if place % (2 * reach) == 0:
            dist.send(tensor, dst=(rank + reach) % n)
        elif place % (2 * reach) == reach:
            dist.recv(tensor, src=(rank - reach) % n)
        reach //= 2
