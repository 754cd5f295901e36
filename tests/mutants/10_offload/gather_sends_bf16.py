"""Shards travel in bf16, with two bytes a number."""


# caught by: test_quantised_gather
# mistake: too_much_sent
# says: rank 0 sent 768 bytes; 3 times 128 numbers of one byte with a scale for each 32 are 432
# %% quantised_gather
def quantised_gather(shard, numel, block):
    n, rank = dist.get_world_size(), dist.get_rank()
    bounds = chunk_bounds(numel, n).tolist()
    whole = torch.zeros(numel, dtype=torch.bfloat16)
    whole[bounds[rank] : bounds[rank + 1]] = shard
    return all_gather(whole).float()
