"""Rank 1 never enters the all-gather: the others wait for it."""

# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 1:
        return
    chunks = tensor.tensor_split(n)
    for step in range(n - 1):
        work = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
            dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
        ])
        for w in work:
            w.wait()
