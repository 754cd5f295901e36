"""The shards travel as they are; each rank quantises the whole."""


# caught by: test_quantised_gather
# mistake: too_much_sent
# says: rank 0 sent 1,536 bytes; 3 times 128 numbers of one byte with a scale for each 32 are 432
# %% quantised_gather
def quantised_gather(shard, numel, block):
    n, rank = dist.get_world_size(), dist.get_rank()
    bounds = chunk_bounds(numel, n).tolist()
    whole = torch.zeros(numel)
    whole[bounds[rank] : bounds[rank + 1]] = shard
    all_gather(whole)
    parts = [whole[bounds[r] : bounds[r + 1]] for r in range(n)]
    return torch.cat([dequantise(*quantise(part, block), block) for part in parts])
