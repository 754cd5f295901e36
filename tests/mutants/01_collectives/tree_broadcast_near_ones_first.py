"""The right tree in the wrong order: those with the most below them are served last."""
# caught by: test_tree_broadcast
# mistake: other_algorithm
# %% tree_broadcast
def tree_broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    lowest = place & -place
    if place > 0:
        dist.recv(tensor, src=(rank - lowest) % n)
    reach = 1
    while place + reach < n and (place == 0 or reach < lowest):
        dist.send(tensor, dst=(rank + reach) % n)
        reach *= 2
