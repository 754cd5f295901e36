"""Chunks of numel // N elements: the rest at the end is never summed."""
# caught by: test_ring_reduce_scatter
# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = tensor.numel() // n
    chunks = [tensor[i * size : (i + 1) * size] for i in range(n)]
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
