"""Loops over elements, which strict looks at one by one, and a barrier that waits by ``cpu()``."""


# %% broadcast
def broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == root:
        i = 0
        while i < n:
            if i == root:
                i = i + 1
                continue
            dist.send(tensor=tensor, dst=i)
            i = i + 1
    else:
        received = torch.zeros(len(tensor), dtype=tensor.dtype)
        dist.recv(tensor=received, src=root)
        for j in range(len(tensor)):
            tensor[j] = received[j]


# %% reduce
def reduce(tensor, root):
    if dist.get_rank() == root:
        for r in range(dist.get_world_size()):
            if r == root:
                continue
            got = torch.empty(tensor.size(), dtype=tensor.dtype, device=tensor.device)
            dist.recv(got, src=r)
            for i, v in enumerate(got.tolist()):
                tensor[i] += v
    else:
        dist.send(tensor.clone(), dst=root)


# %% barrier
def barrier():
    me, n = dist.get_rank(), dist.get_world_size()
    token, land = torch.zeros(1), torch.zeros(1)
    for k in range((n - 1).bit_length()):
        exchange(token, (me + 2**k) % n, land, (me - 2**k) % n)
    land.cpu()
