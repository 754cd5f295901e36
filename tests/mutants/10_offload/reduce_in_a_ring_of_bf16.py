"""Parts are rounded and a ring adds them up in bf16: two bytes a number, rounded on each hop."""


# caught by: test_quantised_reduce_scatter
# mistake: too_much_sent
# says: on rank 0 the chunk is too far off
# %% quantised_reduce_scatter
def quantised_reduce_scatter(vector, block):
    n, rank = dist.get_world_size(), dist.get_rank()
    bounds = chunk_bounds(vector.numel(), n).tolist()
    rounded = [
        dequantise(*quantise(part, block), block) for part in vector.split([*map(int, torch.tensor(bounds).diff())])
    ]
    summed = reduce_scatter(torch.cat(rounded).to(torch.bfloat16)).float()
    assert summed.numel() == bounds[rank + 1] - bounds[rank]
    return summed
