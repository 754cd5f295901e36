"""Each chunk leaves in two messages, so it takes twice the rounds."""
# caught by: test_ring_reduce_scatter
# mistake: one_of_a_kind
# says: messages, where 3 would do
# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
    for step in range(n - 1):
        leaving, arriving = chunks[(rank - 1 - step) % n], chunks[(rank - 2 - step) % n]
        for out, into in zip(leaving.tensor_split(2), arriving.tensor_split(2)):
            landing = torch.empty_like(into)
            together = [
                dist.P2POp(dist.isend, out, (rank + 1) % n),
                dist.P2POp(dist.irecv, landing, (rank - 1) % n),
            ]
            for work in dist.batch_isend_irecv(together):
                work.wait()
            into += landing
    return chunks[rank]
