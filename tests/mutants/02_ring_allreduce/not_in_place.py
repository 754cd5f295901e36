"""Returns the sum and leaves the tensor as it was."""
# caught by: test_ring_all_reduce
# mistake: copy_or_view
# %% ring_all_reduce
def ring_all_reduce(tensor):
    mine = tensor.clone()
    ring_reduce_scatter(mine)
    ring_all_gather(mine)
    return mine
