"""Three rounds, whatever N."""
# caught by: test_all_gather
# mistake: some_ranks_only
# %% all_gather
def all_gather(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for k in range(1, 4):
        if n > 1:
            exchange(chunks[rank], (rank + k) % n, chunks[(rank - k) % n], (rank - k) % n)
