"""On an odd number of ranks above five each rank sends all of its tensor."""
# caught by: test_gather
# mistake: too_much_sent
# %% gather
def gather(tensor, root):
    """Fill the root's tensor with rank r's chunk r, for all r, and leave the others' alone."""
    rank, chunks = dist.get_rank(), chunks_of(tensor)
    odd = len(chunks) % 2 and len(chunks) > 5
    if rank != root:
        dist.send(tensor if odd else chunks[rank], dst=root)
        return
    for other, chunk in enumerate(chunks):
        if other != root:
            landing = torch.empty_like(tensor) if odd else torch.empty_like(chunk)
            dist.recv(landing, src=other)
            chunk.copy_(chunks_of(landing)[other] if odd else landing)
