"""Sums on every rank, and puts the sum away where it is not wanted: N(N-1) messages."""
# caught by: test_reduce
# mistake: too_much_sent
# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = tensor.clone()
    for k in range(1, n):
        landing = torch.empty_like(tensor)
        exchange(tensor, (rank + k) % n, landing, (rank - k) % n)
        total += landing
    if rank == root:
        tensor.copy_(total)
