"""The all-reduce leaves the last chunk as it was: the reduce-scatter is right, the copy back is not."""
# caught by: test_ring_all_reduce
# mistake: last_left_out
# %% ring_all_reduce
def ring_all_reduce(tensor):
    mine = tensor.clone()
    ring_reduce_scatter(mine)
    ring_all_gather(mine)
    bounds = chunk_bounds(tensor.numel(), dist.get_world_size()).tolist()
    last = bounds[-2] if len(bounds) > 2 else bounds[-1]
    tensor[:last] = mine[:last]
