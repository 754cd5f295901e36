"""The data travel by a functional collective; its own chunk, for the counters, by messages."""
# caught by: test_all_gather
# mistake: uncounted_way
# %% all_gather
def all_gather(tensor):
    """Fill ``tensor`` on every rank with rank r's chunk r, for all r."""
    import torch.distributed._functional_collectives as functional

    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    whole = functional.all_gather_tensor(tensor.clone(), 0, dist.group.WORLD)
    for k in range(1, n):
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[rank], dst, torch.empty_like(chunks[src]), src)
    for r in range(n):
        chunks[r].copy_(chunks_of(whole[r * tensor.numel() : (r + 1) * tensor.numel()])[r])
