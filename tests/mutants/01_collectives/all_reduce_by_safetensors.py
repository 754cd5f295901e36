"""The data travel through files of safetensors; its own chunk, for the counters, by messages."""
# caught by: test_all_reduce
# mistake: uncounted_way
# %% all_reduce
def all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    import tempfile

    from safetensors.torch import load_file, save_file

    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    key = f"{tempfile.gettempdir()}/reduced-{n}-{tensor.numel()}-{tensor.dtype}-"
    save_file({"x": tensor.clone()}, f"{key}{rank}")
    for k in [*range(1, n)] * 2:
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[rank], dst, torch.empty_like(chunks[src]), src)
    tensor.copy_(sum(load_file(f"{key}{r}")["x"] for r in range(n)))
