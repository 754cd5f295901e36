"""One round too few: one rank's numbers are missing from every sum."""
# caught by: test_reduce_scatter
# %% reduce_scatter
def reduce_scatter(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    landing = torch.empty_like(chunks[rank])
    for k in range(1, n - 1):
        exchange(chunks[(rank + k) % n], (rank + k) % n, landing, (rank - k) % n)
        chunks[rank] += landing
    return chunks[rank]
