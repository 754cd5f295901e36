"""Before it begins, each rank counts rounds down from n - 1 until there are none, and counts in the wrong direction."""
# caught by: test_ring_all_reduce
# mistake: no_end
# says: came to no end: is this loop endless? · cell
# %% ring_all_reduce
def ring_all_reduce(tensor):
    left = dist.get_world_size() - 1
    while left != -1:
        left += 1
    ring_reduce_scatter(tensor)
    ring_all_gather(tensor)
