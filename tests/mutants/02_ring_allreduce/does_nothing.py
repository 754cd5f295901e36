"""Returns its own chunk without talking to anyone."""
# caught by: test_ring_reduce_scatter
# mistake: not_exchanged
# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    return tensor[bounds[rank] : bounds[rank + 1]]
