"""Passes the pieces on through memory of its own and never writes them into the tensor."""
# caught by: test_pipelined_broadcast
# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    bounds = chunk_bounds(tensor.numel(), chunks).tolist()
    for start, stop in zip(bounds, bounds[1:]):
        piece = tensor[start:stop].clone()
        if place > 0:
            dist.recv(piece, src=(rank - 1) % n)
        if place < n - 1:
            dist.send(piece, dst=(rank + 1) % n)
