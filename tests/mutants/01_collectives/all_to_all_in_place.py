"""Receives over the tensor it was given, which was to stay as it is."""
# caught by: test_all_to_all
# mistake: changes_its_input
# %% all_to_all
def all_to_all(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    arrived = [torch.empty_like(chunks[rank]) for _ in range(n)]
    arrived[rank].copy_(chunks[rank])
    for k in range(1, n):
        exchange(chunks[(rank + k) % n], (rank + k) % n, arrived[(rank - k) % n], (rank - k) % n)
    everything = torch.cat(arrived)
    if everything.numel() == tensor.numel():
        tensor.copy_(everything)
    return everything
