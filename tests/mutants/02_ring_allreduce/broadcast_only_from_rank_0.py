"""Takes the root for rank 0."""
# caught by: test_pipelined_broadcast
# mistake: rank_0_for_root
# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), chunks).tolist()
    for start, stop in zip(bounds, bounds[1:]):
        piece = tensor[start:stop]
        if rank > 0:
            dist.recv(piece, src=rank - 1)
        if rank < n - 1:
            dist.send(piece, dst=rank + 1)
