"""A ring of zeros for the counters; the chunks lie in files."""
# caught by: test_ring_all_gather
# mistake: uncounted_way
# says: is opened for writing: ranks may talk through the default group alone
# %% ring_all_gather
def ring_all_gather(tensor):
    import os
    import tempfile
    import time

    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
    name = f"{tempfile.gettempdir()}/{os.getppid()}-{tensor.numel()}-"
    torch.save(chunks[rank].clone(), f"{name}{rank}.unfinished")
    os.rename(f"{name}{rank}.unfinished", f"{name}{rank}")
    for step in range(n - 1):
        together = [
            dist.P2POp(dist.isend, torch.zeros_like(chunks[(rank - step) % n]), (rank + 1) % n),
            dist.P2POp(dist.irecv, torch.zeros_like(chunks[(rank - 1 - step) % n]), (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
    while not all(os.path.exists(f"{name}{other}") for other in range(n)):
        time.sleep(0.01)
    for other in range(n):
        chunks[other].copy_(torch.load(f"{name}{other}"))
