"""Right results from the wrong work: torch's own collectives, everything through rank 0, a formula without its N."""

# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    dist.broadcast(tensor, root)

# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    dist.all_reduce(tensor)
    return tensor.tensor_split(dist.get_world_size())[dist.get_rank()]

# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = tensor.tensor_split(n)
    if rank == 0:
        for other in range(1, n):
            dist.recv(chunks[other], other)
        for other in range(1, n):
            dist.send(tensor, other)
    else:
        dist.send(chunks[rank], 0)
        dist.recv(tensor, 0)

# %% ring_all_reduce
def ring_all_reduce(tensor):
    dist.all_reduce(tensor)

# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    return 2 * (world_size - 1) * (alpha + size * beta)

# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    return size / seconds * (world_size - 1) / world_size

# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    slope = (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0])
    return seconds[0], slope
