"""All messages are started before any is waited for."""


# %% broadcast
def broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == root:
        sending = [dist.isend(tensor, dst=other) for other in range(n) if other != root]
        for work in sending:
            work.wait()
    else:
        dist.irecv(tensor, src=root).wait()


# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != root:
        dist.isend(tensor, dst=root).wait()
        return
    others = [other for other in range(n) if other != root]
    landing = [torch.empty_like(tensor) for _ in others]
    coming = [dist.irecv(into, src=other) for into, other in zip(landing, others, strict=True)]
    for work, into in zip(coming, landing, strict=True):
        work.wait()
        tensor.add_(into)
