"""Every rank gathers everybody's whole vector."""


# caught by: test_quantised_reduce_scatter
# mistake: too_much_sent
# says: rank 0 sent 1,728 bytes; 3 times 128 numbers of one byte with a scale for each 32 are 432
# %% quantised_reduce_scatter
def quantised_reduce_scatter(vector, block):
    n, rank = dist.get_world_size(), dist.get_rank()
    bounds = chunk_bounds(vector.numel(), n).tolist()
    parts = [quantise(vector[start:stop], block) for start, stop in zip(bounds, bounds[1:], strict=False)]
    integers, scales = (torch.cat([part[i] for part in parts]) for i in range(2))
    all_integers, all_scales = integers.repeat(n, 1), scales.repeat(n, 1)
    all_gather(all_integers.view(-1))
    all_gather(all_scales.view(-1))
    before = sum(part[1].numel() for part in parts[:rank])
    mine = all_integers[:, bounds[rank] : bounds[rank + 1]]
    return sum(dequantise(mine[r], all_scales[r, before : before + parts[rank][1].numel()], block) for r in range(n))
