"""Passes pieces on at once only where they are equal; otherwise it waits for all."""
# caught by: test_pipelined_broadcast
# mistake: no_overlap
# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    """Make every rank's tensor equal to the root's, in ``chunks`` pieces that follow each other along the chain."""
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n  # how far down the chain
    bounds = chunk_bounds(tensor.numel(), chunks).tolist()
    pieces = [tensor[start:stop] for start, stop in pairwise(bounds)]
    if tensor.numel() % chunks == 0:
        for piece in pieces:
            if place > 0:
                dist.recv(piece, src=(rank - 1) % n)
            if place < n - 1:
                dist.send(piece, dst=(rank + 1) % n)
        return
    for piece in pieces if place > 0 else ():
        dist.recv(piece, src=(rank - 1) % n)
    for piece in pieces if place < n - 1 else ():
        dist.send(piece, dst=(rank + 1) % n)
