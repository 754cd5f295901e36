"""A rank's messages in one batch, and one sum at the end."""


# %% all_gather
def all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks, together = chunks_of(tensor), []
    for other in range(n):
        if other != rank:
            together.append(dist.P2POp(dist.isend, chunks[rank], other))
            together.append(dist.P2POp(dist.irecv, chunks[other], other))
    for work in dist.batch_isend_irecv(together) if together else []:
        work.wait()


# %% reduce_scatter
def reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = chunks_of(tensor)[rank]
    landing = torch.zeros(n, mine.numel(), dtype=tensor.dtype, device=tensor.device)
    together = []
    for other, chunk in enumerate(chunks_of(tensor)):
        if other != rank:
            together += [dist.P2POp(dist.isend, chunk, other), dist.P2POp(dist.irecv, landing[other], other)]
    for work in dist.batch_isend_irecv(together) if together else []:
        work.wait()
    mine += landing.sum(0)
    return mine


# %% all_to_all
def all_to_all(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    size = chunks[rank].numel()
    result = torch.empty(n * size, dtype=tensor.dtype, device=tensor.device)
    parts = result.view(n, size)
    together = []
    for other in range(n):
        if other == rank:
            parts[rank] = chunks[rank]
        else:
            together += [dist.P2POp(dist.isend, chunks[other], other), dist.P2POp(dist.irecv, parts[other], other)]
    for work in dist.batch_isend_irecv(together) if together else []:
        work.wait()
    return result
