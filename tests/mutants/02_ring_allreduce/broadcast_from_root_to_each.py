"""The root sends every piece to every rank itself."""
# caught by: test_pipelined_broadcast
# mistake: other_algorithm
# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), chunks).tolist()
    for start, stop in zip(bounds, bounds[1:]):
        if rank == root:
            for other in range(n):
                if other != root:
                    dist.send(tensor[start:stop], dst=other)
        else:
            dist.recv(tensor[start:stop], src=root)
