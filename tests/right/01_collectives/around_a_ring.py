"""Chunks go round a ring: as lab 02 does it."""


# %% all_gather
def all_gather(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for step in range(n - 1):
        exchange(chunks[rank - step], (rank + 1) % n, chunks[rank - step - 1], (rank - 1) % n)


# %% reduce_scatter
def reduce_scatter(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for step in range(1, n):
        landing = torch.empty_like(chunks[rank - step - 1])
        exchange(chunks[rank - step], (rank + 1) % n, landing, (rank - 1) % n)
        chunks[rank - step - 1].add_(landing)
    return chunks[rank]
