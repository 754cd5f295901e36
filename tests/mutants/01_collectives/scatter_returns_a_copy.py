"""Receives into new memory: what is returned is right, the tensor was not touched."""
# caught by: test_scatter
# %% scatter
def scatter(tensor, root):
    rank, chunks = dist.get_rank(), chunks_of(tensor)
    if rank != root:
        landing = torch.empty_like(chunks[rank])
        dist.recv(landing, src=root)
        return landing
    for other, chunk in enumerate(chunks):
        if other != root:
            dist.send(chunk, dst=other)
    return chunks[rank]
