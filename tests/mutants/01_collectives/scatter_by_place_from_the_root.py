"""Chunk 1 goes to the first rank after the root: right from rank 0 only."""
# caught by: test_scatter
# mistake: rank_0_for_root
# %% scatter
def scatter(tensor, root):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    place = (rank - root) % n
    if place > 0:
        dist.recv(chunks[place], src=root)
    else:
        for k in range(1, n):
            dist.send(chunks[k], dst=(root + k) % n)
    return chunks[place]
