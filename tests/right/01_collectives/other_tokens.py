"""A barrier whose token is a byte, in rounds of a doubling distance; a gather and a scatter in another order.

What is empty is not sent by the gather."""


# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    distance = 1
    while distance < n:
        token, landing = torch.ones(1, dtype=torch.uint8), torch.empty(1, dtype=torch.uint8)
        exchange(token, (rank + distance) % n, landing, (rank - distance) % n)
        assert landing.item() == 1
        distance *= 2


# %% gather
def gather(tensor, root):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    if rank == root:
        for other in reversed([r for r in range(n) if r != root and chunks[r].numel()]):
            chunk = torch.empty_like(chunks[other])
            dist.recv(chunk, src=other)
            chunks[other].copy_(chunk)
    elif chunks[rank].numel():
        dist.send(chunks[rank].clone(), dst=root)


# %% scatter
def scatter(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    mine = tensor[bounds[rank] : bounds[rank + 1]]
    if rank == root:
        for k in range(1, n):
            other = (root + k) % n
            dist.send(tensor[bounds[other] : bounds[other + 1]], dst=other)
    else:
        dist.recv(mine, src=root)
    return mine
