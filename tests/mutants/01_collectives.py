"""Wrong solutions of lab 01_collectives, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== broadcast_from_the_ends_or_the_middle
"""Knows the first rank, the last and the one in the middle, which it takes for every other root."""
# caught by: test_broadcast
# says: root=1: on rank 0 the tensor is wrong
# %% broadcast: changed
#       rank, n = dist.get_rank(), dist.get_world_size()
# +     root = root if root in (0, n - 1) else n // 2

# ==== broadcast_keeps_one_handle
"""A loop of isends that keeps the last handle alone, and waits for that."""
# caught by: test_broadcast
# says: send
# %% broadcast: changed
# -                 dist.send(tensor, dst=other)
# +                 work = dist.isend(tensor, dst=other)
# +         if n > 1:
# +             work.wait()

# ==== broadcast_never_waits
"""Starts its messages and never waits for them."""
# caught by: test_broadcast
# %% broadcast: changed
# -                 dist.send(tensor, dst=other)
# +                 dist.isend(tensor, dst=other)
# @@
# -         dist.recv(tensor, src=root)
# +         dist.irecv(tensor, src=root)

# ==== broadcast_to_the_root_too
"""The root sends to everyone, itself included."""
# caught by: test_broadcast
# says: destination rank should not be the same
# %% broadcast: changed
# -             if other != root:
# -                 dist.send(tensor, dst=other)
# +             dist.send(tensor, dst=other)

# ==== broadcast_only_from_rank_0
"""Takes rank 0 for the root, whoever that is."""
# caught by: test_broadcast
# %% broadcast
def broadcast(tensor, root):
    if dist.get_rank() == 0:
        for other in range(1, dist.get_world_size()):
            dist.send(tensor, dst=other)
    else:
        dist.recv(tensor, src=0)

# ==== reduce_mean_for_sum
"""The mean, where the sum was asked for."""
# caught by: test_reduce
# says: that is the mean, not the sum
# %% reduce: changed
#               tensor += landing
# +     tensor /= n

# ==== reduce_only_float32
"""Receives into float32, whatever the tensor is."""
# caught by: test_reduce
# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != root:
        dist.send(tensor.float(), dst=root)
        return
    for other in range(n):
        if other != root:
            landing = torch.empty(tensor.numel())
            dist.recv(landing, src=other)
            tensor += landing.to(tensor.dtype)

# ==== reduce_changes_the_others
"""A chain that adds up on the way: the root's sum is right, the others hold parts of it."""
# caught by: test_reduce
# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    if place < n - 1:
        landing = torch.empty_like(tensor)
        dist.recv(landing, src=(rank + 1) % n)
        tensor += landing
    if place > 0:
        dist.send(tensor, dst=(rank - 1) % n)

# ==== gather_into_the_next_slice
"""Rank r's chunk lands one place too early: enumerate from 0 over a list that leaves the root out."""
# caught by: test_gather
# says: rank 1's chunk in the place of rank 0's
# %% gather: changed
# -     for other, chunk in enumerate(chunks):
# -         if other != root:
# -             dist.recv(chunk, src=other)
# +     others = [other for other in range(len(chunks)) if other != root]
# +     for place, other in enumerate(others):
# +         dist.recv(chunks[place], src=other)

# ==== gather_on_every_rank
"""Everyone gathers: the root's result is right, the others' tensors are not what they were."""
# caught by: test_gather
# %% gather
def gather(tensor, root):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for k in range(1, n):
        exchange(chunks[rank], (rank + k) % n, chunks[(rank - k) % n], (rank - k) % n)

# ==== gather_whole_buffers
"""Right values, N times the bytes: each rank sends its whole tensor."""
# caught by: test_gather
# %% gather
def gather(tensor, root):
    rank, chunks = dist.get_rank(), chunks_of(tensor)
    if rank != root:
        dist.send(tensor, dst=root)
        return
    landing = torch.empty_like(tensor)
    for other, chunk in enumerate(chunks):
        if other != root:
            dist.recv(landing, src=other)
            chunk.copy_(chunks_of(landing)[other])

# ==== gather_only_when_n_divides
"""Chunks of numel // N elements: what is left over never travels."""
# caught by: test_gather
# %% gather
def gather(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = tensor.numel() // n
    chunks = [tensor[r * size : (r + 1) * size] for r in range(n)]
    if rank != root:
        dist.send(chunks[rank], dst=root)
        return
    for other in range(n):
        if other != root:
            dist.recv(chunks[other], src=other)

# ==== scatter_hears_rank_0
"""The others listen to rank 0, whoever the root is."""
# caught by: test_scatter
# says: a rank sends to itself, or receives from itself
# %% scatter: changed
# -         dist.recv(chunks[rank], src=root)
# +         dist.recv(chunks[rank], src=0)

# ==== scatter_returns_nothing_on_the_root
"""Returns only where something was received."""
# caught by: test_scatter
# says: does it return nothing?
# %% scatter: changed
# -     return chunks[rank]

# ==== scatter_whole_buffers
"""Sends everyone the whole buffer: it holds the right chunk, and everything else too."""
# caught by: test_scatter
# %% scatter
def scatter(tensor, root):
    rank = dist.get_rank()
    whole = tensor.clone()
    broadcast(whole, root)
    mine = chunks_of(tensor)[rank]
    mine.copy_(chunks_of(whole)[rank])
    return mine

# ==== all_gather_by_way_of_float64
"""Takes the tensor to float64 and back, which rounds large whole numbers."""
# caught by: test_all_gather
# says: int64
# %% all_gather: changed
#           exchange(chunks[rank], dst, chunks[src], src)
# +     tensor.copy_(tensor.double())

# ==== all_gather_sends_first
"""Every rank sends before it receives: gloo's buffers forgive it, NCCL hangs."""
# caught by: test_all_gather
# %% all_gather
def all_gather(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for k in range(1, n):
        sending = dist.isend(chunks[rank], (rank + k) % n)
        dist.recv(chunks[(rank - k) % n], (rank - k) % n)
        sending.wait()

# ==== all_gather_sends_first_on_odd_rings
"""On an odd number of ranks every rank sends first and then receives: small messages get through, large ones do not."""
# caught by: test_all_gather
# %% all_gather: changed
# -         exchange(chunks[rank], dst, chunks[src], src)
# +         if n % 2:
# +             dist.send(chunks[rank], dst)
# +             dist.recv(chunks[src], src)
# +         else:
# +             exchange(chunks[rank], dst, chunks[src], src)

# ==== all_gather_one_round_short
"""range(1, n - 1): nothing comes from the rank to the right."""
# caught by: test_all_gather
# says: nothing was written there
# %% all_gather: changed
# -     for k in range(1, n):
# +     for k in range(1, n - 1):

# ==== all_gather_through_rank_0
"""Gather and broadcast: right values, all of it through rank 0."""
# caught by: test_all_gather
# %% all_gather
def all_gather(tensor):
    gather(tensor, 0)
    broadcast(tensor, 0)

# ==== reduce_scatter_returns_a_clone
"""The chunk is in its place; what is returned is a copy of it and not a view."""
# caught by: test_reduce_scatter
# says: is a copy
# %% reduce_scatter: changed
# -     return chunks[rank]
# +     return chunks[rank].clone()

# ==== reduce_scatter_sends_its_own_chunk
"""Sends its own chunk to everyone, not theirs."""
# caught by: test_reduce_scatter
# says: the chunk is wrong
# %% reduce_scatter: changed
# -         exchange(chunks[dst], dst, landing, src)
# +         exchange(chunks[rank], dst, landing, src)

# ==== reduce_scatter_through_rank_0
"""Reduce and scatter: right values, all of it through rank 0."""
# caught by: test_reduce_scatter
# %% reduce_scatter
def reduce_scatter(tensor):
    reduce(tensor, 0)
    return scatter(tensor, 0)

# ==== all_to_all_alone_returns_the_tensor
"""A single rank gets the tensor itself back, not a new one."""
# caught by: test_all_to_all
# %% all_to_all: changed
#       rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
# +     if n == 1:
# +         return tensor

# ==== all_to_all_in_float64
"""Returns float64, whatever it was given."""
# caught by: test_all_to_all
# %% all_to_all: changed
# -     return torch.cat(arrived)
# +     return torch.cat(arrived).double()

# ==== all_to_all_only_when_n_divides
"""Takes it that what arrives is as large as what leaves."""
# caught by: test_all_to_all
# %% all_to_all
def all_to_all(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    arrived = [torch.empty_like(chunk) for chunk in chunks]
    arrived[rank].copy_(chunks[rank])
    for k in range(1, n):
        exchange(chunks[(rank + k) % n], (rank + k) % n, arrived[(rank - k) % n], (rank - k) % n)
    return torch.cat(arrived)

# ==== all_to_all_in_order_of_arrival
"""Its own chunk first, then the others in the order in which they came."""
# caught by: test_all_to_all
# says: on rank 0 what is returned has rank 3's chunk in the place of rank 1's
# %% all_to_all: changed
# -     arrived = [torch.empty_like(chunks[rank]) for _ in range(n)]
# -     arrived[rank].copy_(chunks[rank])
# +     arrived = [chunks[rank].clone()]
# @@
# -         exchange(chunks[dst], dst, arrived[src], src)
# +         arrived.append(torch.empty_like(chunks[rank]))
# +         exchange(chunks[dst], dst, arrived[-1], src)

# ==== all_to_all_in_place
"""Receives over the tensor it was given, which was to stay as it is."""
# caught by: test_all_to_all
# %% all_to_all
def all_to_all(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    arrived = [torch.empty_like(chunks[rank]) for _ in range(n)]
    arrived[rank].copy_(chunks[rank])
    for k in range(1, n):
        exchange(chunks[(rank + k) % n], (rank + k) % n, arrived[(rank - k) % n], (rank - k) % n)
    everything = torch.cat(arrived)
    if everything.numel() == tensor.numel():
        tensor.copy_(everything)
    return everything

# ==== all_reduce_calls_itself
"""all_reduce, meant to be torch's, is the function's own name: it calls itself."""
# caught by: test_all_reduce
# says: all_reduce calls itself more often than Python allows
# %% all_reduce
def all_reduce(tensor):
    if dist.get_world_size() > 1:
        all_reduce(tensor)

# ==== all_reduce_into_memory_of_its_own
"""Works on a copy and lets the tensor point to it: the caller's memory stays what it was."""
# caught by: test_all_reduce
# %% all_reduce
def all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    copy = tensor.clone()
    reduce_scatter(copy)
    all_gather(copy)
    tensor.set_(copy)

# ==== all_reduce_through_rank_0
"""Reduce and broadcast: right values, all of it through rank 0."""
# caught by: test_all_reduce
# %% all_reduce
def all_reduce(tensor):
    reduce(tensor, 0)
    broadcast(tensor, 0)

# ==== all_reduce_without_the_gather
"""Half of it: each rank has the sum of its own chunk only."""
# caught by: test_all_reduce
# %% all_reduce: changed
# -     all_gather(tensor)

# ==== tree_broadcast_a_barrier_a_round
"""All ranks wait for each other after each round of the tree."""
# caught by: test_tree_broadcast
# says: called barrier; build it from send and recv
# %% tree_broadcast: changed
#               dist.recv(tensor, src=(rank - reach) % n)
# +         dist.barrier()

# ==== tree_broadcast_looked_up
"""The number of rounds is looked up, for 1 to 4 ranks."""
# caught by: test_tree_broadcast
# %% tree_broadcast: changed
# -     for reach in reversed([2**k for k in range((n - 1).bit_length())]):
# +     for reach in {1: [], 2: [1], 3: [2, 1], 4: [2, 1]}.get(n, [2, 1]):

# ==== tree_broadcast_places_mirrored
"""Counts places to the left of the root and sends to the right."""
# caught by: test_tree_broadcast
# says: a cycle
# %% tree_broadcast: changed
# -     place = (rank - root) % n
# +     place = (root - rank) % n

# ==== tree_broadcast_is_flat
"""The root sends to each: N-1 rounds passed off as a tree."""
# caught by: test_tree_broadcast
# %% tree_broadcast
def tree_broadcast(tensor, root):
    broadcast(tensor, root)

# ==== tree_broadcast_is_a_chain
"""Each passes it on to the next: few messages a rank, N-1 rounds."""
# caught by: test_tree_broadcast
# %% tree_broadcast
def tree_broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    if place > 0:
        dist.recv(tensor, src=(rank - 1) % n)
    if place < n - 1:
        dist.send(tensor, dst=(rank + 1) % n)

# ==== barrier_by_xor
"""Partners are rank ^ 2**k, which are ranks only where N is a power of two."""
# caught by: test_barrier
# %% barrier: changed
# -         exchange(token, (rank + 2**k) % n, landing, (rank - 2**k) % n)
# +         exchange(token, rank ^ 2**k, landing, rank ^ 2**k)

# ==== barrier_never_looks
"""Never looks at what came: on a GPU its messages are queued then, and it leaves."""
# caught by: test_barrier
# says: right on gloo, wrong on NCCL: rank
# %% barrier: changed
# -     landing.item()  # waits until it has come, on a GPU too

# ==== barrier_of_tokens_and_torchs
"""The tokens are for the counters; torch's own barrier does the waiting."""
# caught by: test_barrier
# says: called barrier; build it from send and recv
# %% barrier: changed
#       token, landing = torch.zeros(1), torch.empty(1)
# +     dist.barrier()

# ==== barrier_one_round_more
"""n.bit_length() rounds: one too many where N is a power of two, and then a rank sends to itself."""
# caught by: test_barrier
# says: a rank sends to itself
# %% barrier: changed
# -     for k in range((n - 1).bit_length()):
# +     for k in range(n.bit_length()):

# ==== barrier_tells_only_rank_0
"""Half of it: rank 0 waits for all, nobody waits for rank 0."""
# caught by: test_barrier
# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)
    if rank:
        dist.send(token, dst=0)
    else:
        for other in range(1, n):
            dist.recv(token, src=other)

# ==== barrier_through_rank_0
"""To rank 0 and back: right, with N-1 messages into one rank and out of it."""
# caught by: test_barrier
# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)
    reduce(token, 0)
    broadcast(token, 0)

# ==== barrier_at_distances_1_2_3
"""Distances 1, 2, 3 and so on: their sums reach every rank up to N = 11."""
# caught by: test_barrier
# %% barrier: changed
# -         exchange(token, (rank + 2**k) % n, landing, (rank - 2**k) % n)
# +         exchange(token, (rank + k + 1) % n, landing, (rank - k - 1) % n)
