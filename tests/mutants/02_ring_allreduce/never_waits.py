"""Starts its receives and never waits for them."""
# caught by: test_ring_all_gather
# mistake: never_waits
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    for step in range(n - 1):
        dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
                dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
            ]
        )
