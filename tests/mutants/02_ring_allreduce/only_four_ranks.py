"""The number of ranks that the lab starts with is written into the code."""
# caught by: test_ring_reduce_scatter
# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    rank, n = dist.get_rank(), 4
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    for step in range(n - 1):
        leaving, arriving = chunks[(rank - 1 - step) % n], chunks[(rank - 2 - step) % n]
        landing = torch.empty_like(arriving)
        together = [
            dist.P2POp(dist.isend, leaving, (rank + 1) % n),
            dist.P2POp(dist.irecv, landing, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        arriving += landing
    return chunks[rank]
