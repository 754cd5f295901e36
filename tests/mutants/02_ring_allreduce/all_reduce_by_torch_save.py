"""The data travel through files that torch writes itself; chunks of its own, for the counters, go round the ring."""
# caught by: test_ring_all_reduce
# mistake: uncounted_way
# %% ring_all_reduce
def ring_all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    import tempfile

    rank, n = dist.get_rank(), dist.get_world_size()
    key = f"{tempfile.gettempdir()}/summed-{n}-{tensor.numel()}-{tensor.dtype}-"
    torch.save(tensor.clone(), f"{key}{rank}")
    ring_reduce_scatter(tensor.clone())
    ring_all_gather(tensor.clone())
    tensor.copy_(sum(torch.load(f"{key}{r}") for r in range(n)))
