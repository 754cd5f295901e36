"""Zeros for the counters; the chunks travel as pickled objects."""
# caught by: test_all_to_all
# mistake: uncounted_way
# %% all_to_all
def all_to_all(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for k in range(1, n):
        zeros = torch.zeros_like(chunks[(rank + k) % n])
        exchange(zeros, (rank + k) % n, torch.empty_like(chunks[rank]), (rank - k) % n)
    everyones = [None] * n
    dist.all_gather_object(everyones, tensor.clone())
    return torch.cat([chunks_of(theirs)[rank] for theirs in everyones])
