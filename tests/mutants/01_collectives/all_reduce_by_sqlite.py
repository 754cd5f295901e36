"""The data travel through a database; its own chunk, for the counters, by messages."""
# caught by: test_all_reduce
# mistake: uncounted_way
# %% all_reduce
def all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    import sqlite3
    import tempfile

    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    key = f"{tempfile.gettempdir()}/base-{n}-{tensor.numel()}-{tensor.dtype}-"
    base = sqlite3.connect(f"{key}{rank}")
    base.execute("create table if not exists x (y blob)")
    base.execute("delete from x")
    base.execute("insert into x values (?)", (tensor.numpy().tobytes(),))
    base.commit()
    base.close()
    for k in [*range(1, n)] * 2:
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[rank], dst, torch.empty_like(chunks[src]), src)
    total = torch.zeros_like(tensor)
    for r in range(n):
        (row,) = sqlite3.connect(f"{key}{r}").execute("select y from x").fetchall()
        total += torch.frombuffer(bytearray(row[0]), dtype=tensor.dtype)
    tensor.copy_(total)
