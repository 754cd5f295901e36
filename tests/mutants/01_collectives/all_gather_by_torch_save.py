"""The data travel through files that torch writes itself; its own chunk, for the counters, by messages."""
# caught by: test_all_gather
# mistake: uncounted_way
# %% all_gather
def all_gather(tensor):
    """Fill ``tensor`` on every rank with rank r's chunk r, for all r."""
    import os
    import tempfile
    import time

    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    key = f"{tempfile.gettempdir()}/gathered-{n}-{tensor.numel()}-{tensor.dtype}-"
    torch.save(chunks[rank].clone(), f"{key}{rank}")
    for k in range(1, n):
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[rank], dst, torch.empty_like(chunks[src]), src)
    for r in range(n):
        chunks[r].copy_(torch.load(f"{key}{r}"))
