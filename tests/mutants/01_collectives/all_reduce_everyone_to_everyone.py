"""Whole buffers from each to each: right values, N-1 times the buffer from every rank."""
# caught by: test_all_reduce
# mistake: too_much_sent
# %% all_reduce
def all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = tensor.clone()
    for k in range(1, n):
        landing = torch.empty_like(tensor)
        exchange(mine, (rank + k) % n, landing, (rank - k) % n)
        tensor += landing
