"""Sends the whole tensor on in every round and picks one chunk out of it."""
# caught by: test_ring_all_gather
# mistake: too_much_sent
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    for step in range(n - 1):
        landing = torch.empty_like(tensor)
        together = [
            dist.P2POp(dist.isend, tensor, (rank + 1) % n),
            dist.P2POp(dist.irecv, landing, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        arrived = (rank - 1 - step) % n
        tensor[bounds[arrived] : bounds[arrived + 1]] = landing[bounds[arrived] : bounds[arrived + 1]]
