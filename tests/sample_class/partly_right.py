"""Half an evening's work: the broadcast is right, the reduce-scatter only where the ranks divide the size, the rest is not there."""
# rest: as handed out

# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    n = dist.get_world_size()
    place = (dist.get_rank() - root) % n
    bounds = chunk_bounds(tensor.numel(), chunks).tolist()
    for c in range(chunks):
        piece = tensor[bounds[c] : bounds[c + 1]]
        if place > 0:
            dist.recv(piece, (dist.get_rank() - 1) % n)
        if place < n - 1:
            dist.send(piece, (dist.get_rank() + 1) % n)

# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = tensor.numel() // n
    chunks = [tensor[c * size : (c + 1) * size] for c in range(n)]
    for step in range(n - 1):
        out, into = chunks[(rank - 1 - step) % n], chunks[(rank - 2 - step) % n]
        buffer = torch.empty_like(into)
        work = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, out, (rank + 1) % n),
            dist.P2POp(dist.irecv, buffer, (rank - 1) % n),
        ])
        for w in work:
            w.wait()
        into += buffer
    return chunks[rank]

# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    return size / seconds
