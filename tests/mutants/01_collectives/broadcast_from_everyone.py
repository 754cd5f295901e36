"""Right values by N(N-1) messages: all send to all, and all but the root's is thrown away."""
# caught by: test_broadcast
# mistake: too_much_sent
# %% broadcast
def broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = tensor.clone()
    for k in range(1, n):
        landing = torch.empty_like(tensor)
        exchange(mine, (rank + k) % n, landing, (rank - k) % n)
        if (rank - k) % n == root:
            tensor.copy_(landing)
