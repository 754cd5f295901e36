"""One exchange with the neighbour instead of N-1: right for two ranks."""
# caught by: test_ring_reduce_scatter
# mistake: some_ranks_only
# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    if n > 1:
        landing = torch.empty_like(chunks[rank])
        together = [
            dist.P2POp(dist.isend, chunks[(rank + 1) % n], (rank + 1) % n),
            dist.P2POp(dist.irecv, landing, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        chunks[rank] += landing
    return chunks[rank]
