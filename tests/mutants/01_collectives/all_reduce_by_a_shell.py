"""The data travel through files that another program writes; its own chunk, for the counters, by messages."""
# caught by: test_all_reduce
# mistake: uncounted_way
# %% all_reduce
def all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    import subprocess
    import tempfile

    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    key = f"{tempfile.gettempdir()}/piped-{n}-{tensor.numel()}-{tensor.dtype}-"
    subprocess.run(["tee", f"{key}{rank}"], input=tensor.numpy().tobytes(), stdout=subprocess.DEVNULL, check=True)
    for k in [*range(1, n)] * 2:
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[rank], dst, torch.empty_like(chunks[src]), src)
    everyones = [torch.frombuffer(bytearray(open(f"{key}{r}", "rb").read()), dtype=tensor.dtype) for r in range(n)]
    tensor.copy_(sum(everyones))
