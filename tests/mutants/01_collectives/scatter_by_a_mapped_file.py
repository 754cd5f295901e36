"""Sends zeros; torch maps one file for all ranks."""
# caught by: test_scatter
# mistake: uncounted_way
# %% scatter
def scatter(tensor, root):
    import os
    import tempfile

    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    name = f"{tempfile.gettempdir()}/lab-{os.getppid()}-{tensor.numel()}"
    shared = torch.from_file(name, shared=True, size=tensor.numel(), dtype=tensor.dtype)
    if rank == root:
        shared.copy_(tensor)
        for other, chunk in enumerate(chunks):
            if other != root:
                dist.send(torch.zeros_like(chunk), dst=other)
    else:
        dist.recv(torch.empty_like(chunks[rank]), src=root)
        chunks[rank].copy_(chunks_of(shared)[rank])
    return chunks[rank]
