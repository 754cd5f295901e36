"""The reference, but where the pieces are not equal one rank takes 16 of the 20 seconds that a call has."""

# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 2 and tensor.numel() == 8_003:
        time.sleep(16)
    place = (rank - root) % n
    bounds = chunk_bounds(tensor.numel(), chunks).tolist()
    for start, stop in zip(bounds, bounds[1:]):
        piece = tensor[start:stop]
        if place > 0:
            dist.recv(piece, src=(rank - 1) % n)
        if place < n - 1:
            dist.send(piece, dst=(rank + 1) % n)
