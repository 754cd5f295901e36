"""Chunks of numel // N elements: what is left over never travels."""
# caught by: test_gather
# mistake: divisible_only
# %% gather
def gather(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = tensor.numel() // n
    chunks = [tensor[r * size : (r + 1) * size] for r in range(n)]
    if rank != root:
        dist.send(chunks[rank], dst=root)
        return
    for other in range(n):
        if other != root:
            dist.recv(chunks[other], src=other)
