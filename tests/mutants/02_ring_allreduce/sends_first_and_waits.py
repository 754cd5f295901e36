"""Every rank sends with a blocking send, then receives: large messages never leave."""
# caught by: test_ring_reduce_scatter
# mistake: all_send_first
# says: a cycle: rank 0 waits to send to rank 1
# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    for step in range(n - 1):
        arriving = chunks[(rank - 2 - step) % n]
        landing = torch.empty_like(arriving)
        dist.send(chunks[(rank - 1 - step) % n], dst=(rank + 1) % n)
        dist.recv(landing, src=(rank - 1) % n)
        arriving += landing
    return chunks[rank]
