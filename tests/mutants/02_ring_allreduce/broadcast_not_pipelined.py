"""Receives all pieces before it passes the first one on."""
# caught by: test_pipelined_broadcast
# mistake: other_algorithm
# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    bounds = chunk_bounds(tensor.numel(), chunks).tolist()
    pieces = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    if place > 0:
        for piece in pieces:
            dist.recv(piece, src=(rank - 1) % n)
    if place < n - 1:
        for piece in pieces:
            dist.send(piece, dst=(rank + 1) % n)
