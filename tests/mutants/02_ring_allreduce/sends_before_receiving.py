"""Every rank sends, then receives: gloo's buffers hide a deadlock that NCCL shows."""
# caught by: test_ring_all_gather
# mistake: all_send_first
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    for step in range(n - 1):
        sending = dist.isend(chunks[(rank - step) % n], dst=(rank + 1) % n)
        dist.recv(chunks[(rank - 1 - step) % n], src=(rank - 1) % n)
        sending.wait()
