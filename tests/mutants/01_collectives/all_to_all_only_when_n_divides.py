"""Takes it that what arrives is as large as what leaves."""
# caught by: test_all_to_all
# mistake: divisible_only
# %% all_to_all
def all_to_all(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    arrived = [torch.empty_like(chunk) for chunk in chunks]
    arrived[rank].copy_(chunks[rank])
    for k in range(1, n):
        exchange(chunks[(rank + k) % n], (rank + k) % n, arrived[(rank - k) % n], (rank - k) % n)
    return torch.cat(arrived)
