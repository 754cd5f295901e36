"""Each rank sends its chunk to every other directly: as many bytes, but not a ring."""
# caught by: test_ring_all_gather
# mistake: other_algorithm
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    together = [dist.P2POp(dist.isend, chunks[rank], other) for other in range(n) if other != rank]
    together += [dist.P2POp(dist.irecv, chunks[other], other) for other in range(n) if other != rank]
    for work in dist.batch_isend_irecv(together) if together else []:
        work.wait()
