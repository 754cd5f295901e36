"""A rank sends a piece on without waiting for the one before to have left."""


# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    first, last = rank == root, (rank + 1) % n == root
    bounds, leaving = chunk_bounds(tensor.numel(), chunks).tolist(), []
    for start, stop in zip(bounds[:-1], bounds[1:]):
        piece = tensor[start:stop]
        if not first:
            dist.recv(piece, src=(rank - 1) % n)
        if not last:
            leaving.append(dist.isend(piece, dst=(rank + 1) % n))
    for work in leaving:
        work.wait()


# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()

    def part(index):
        index %= n
        return tensor[bounds[index] : bounds[index + 1]]

    for step in range(n - 1):
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.irecv, part(rank - step - 1), (rank - 1) % n),
            dist.P2POp(dist.isend, part(rank - step), (rank + 1) % n),
        ])
        for work in works:
            work.wait()
