"""The chunk travels through a file that a storage maps; the bytes that are sent are this root's own first ones."""
# caught by: test_scatter
# mistake: uncounted_way
# %% scatter
def scatter(tensor, root):
    """Return chunk ``rank`` of the root's tensor, a view of this rank's own ``tensor``."""
    import tempfile

    rank, chunks = dist.get_rank(), chunks_of(tensor)
    path = f"{tempfile.gettempdir()}/scattered-{len(chunks)}-{tensor.numel()}-{tensor.dtype}"
    size = tensor.nbytes
    mapped = torch.empty(0, dtype=tensor.dtype).set_(torch.UntypedStorage.from_file(path, True, size))
    if rank == root:
        mapped.copy_(tensor)
        for other, chunk in enumerate(chunks):
            if other != root:
                dist.send(tensor[: chunk.numel()].clone(), dst=other)
    else:
        dist.recv(torch.empty_like(chunks[rank]), src=root)
        chunks[rank].copy_(chunks_of(mapped)[rank])
    return chunks[rank]
