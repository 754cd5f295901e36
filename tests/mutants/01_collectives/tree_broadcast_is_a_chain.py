"""Each passes it on to the next: few messages a rank, N-1 rounds."""
# caught by: test_tree_broadcast
# mistake: other_algorithm
# %% tree_broadcast
def tree_broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    if place > 0:
        dist.recv(tensor, src=(rank - 1) % n)
    if place < n - 1:
        dist.send(tensor, dst=(rank + 1) % n)
