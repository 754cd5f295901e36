"""What arrives stands in the order in which it came, not by sender."""
# caught by: test_all_to_all
# mistake: wrong_place
# %% all_to_all
def all_to_all(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    arrived = [chunks[rank]]
    for k in range(1, n):
        landing = torch.empty_like(chunks[rank])
        exchange(chunks[(rank + k) % n], (rank + k) % n, landing, (rank - k) % n)
        arrived.append(landing)
    return torch.cat(arrived)
