"""Zeros go round the ring; the sum comes by the default store."""
# caught by: test_ring_all_reduce
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    store.set(f"{rank}", tensor.numpy().tobytes())
    zeros = torch.zeros_like(tensor)
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [zeros[start:stop] for start, stop in pairwise(bounds)]
    for step in range(2 * (n - 1)):
        together = [
            dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
            dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
    tensor.copy_(sum(torch.frombuffer(bytearray(store.get(f"{other}")), dtype=tensor.dtype) for other in range(n)))
