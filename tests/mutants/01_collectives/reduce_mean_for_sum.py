"""The mean, where the sum was asked for."""
# caught by: test_reduce
# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != root:
        dist.send(tensor, dst=root)
        return
    landing = torch.empty_like(tensor)
    for other in range(n):
        if other != root:
            dist.recv(landing, src=other)
            tensor += landing
    tensor //= n
