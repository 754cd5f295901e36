"""Sends whole buffers and keeps a chunk of what arrives: N times the bytes."""
# caught by: test_reduce_scatter
# mistake: too_much_sent
# %% reduce_scatter
def reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine, leaving = chunks_of(tensor)[rank], tensor.clone()
    for k in range(1, n):
        landing = torch.empty_like(tensor)
        exchange(leaving, (rank + k) % n, landing, (rank - k) % n)
        mine += chunks_of(landing)[rank]
    return mine
