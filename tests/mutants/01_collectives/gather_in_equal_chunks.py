"""Cuts chunks of one size and forgets what is left over where N does not divide."""
# caught by: test_gather
# mistake: divisible_only
# %% gather
def gather(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = -(-tensor.numel() // n)
    chunks = [tensor[r * size : (r + 1) * size] for r in range(n)]
    if rank != root:
        dist.send(chunks[rank], dst=root)
        return
    for other, chunk in enumerate(chunks):
        if other != root:
            dist.recv(chunk, src=other)
