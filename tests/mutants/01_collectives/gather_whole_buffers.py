"""Right values, N times the bytes: each rank sends its whole tensor."""
# caught by: test_gather
# mistake: too_much_sent
# %% gather
def gather(tensor, root):
    rank, chunks = dist.get_rank(), chunks_of(tensor)
    if rank != root:
        dist.send(tensor, dst=root)
        return
    landing = torch.empty_like(tensor)
    for other, chunk in enumerate(chunks):
        if other != root:
            dist.recv(landing, src=other)
            chunk.copy_(chunks_of(landing)[other])
