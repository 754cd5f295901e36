"""Wrong solutions of lab 02_ring_allreduce, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== broadcast_barrier_after_each_piece
"""A barrier after each piece: the next one begins when this one has come to everyone."""
# caught by: test_pipelined_broadcast
# says: rank 0 called barrier
# %% pipelined_broadcast: changed
#               dist.send(piece, dst=(rank + 1) % n)
# +         dist.barrier()

# ==== broadcast_drops_the_last_piece
"""A loop that ends one piece too early."""
# caught by: test_pipelined_broadcast
# %% pipelined_broadcast: changed
# -     place = (rank - root) % n  # how far down the chain
# +     place = (rank - root) % n
# @@
# -     for start, stop in pairwise(bounds):
# -         piece = tensor[start:stop]
# +     for i in range(chunks - 1):
# +         piece = tensor[bounds[i] : bounds[i + 1]]

# ==== broadcast_each_piece_is_answered
"""Each piece is answered with an empty message, and the next one waits for the answer."""
# caught by: test_pipelined_broadcast
# says: rank 1 sent an empty message to rank 0
# %% pipelined_broadcast: changed
#               dist.recv(piece, src=(rank - 1) % n)
# +             dist.send(tensor[:0], dst=(rank - 1) % n)
#           if place < n - 1:
#               dist.send(piece, dst=(rank + 1) % n)
# +             dist.recv(tensor[:0], src=(rank + 1) % n)

# ==== broadcast_from_root_to_each
"""The root sends every piece to every rank itself."""
# caught by: test_pipelined_broadcast
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

# ==== broadcast_not_pipelined
"""Receives all pieces before it passes the first one on."""
# caught by: test_pipelined_broadcast
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

# ==== a_name_misspelt
"""NameError: chunk for chunks, in the last line."""
# caught by: test_ring_reduce_scatter
# says: raised NameError: name 'chunk' is not defined
# %% ring_reduce_scatter: changed
# -     return chunks[rank]
# +     return chunk[rank]

# ==== one_round_too_many
"""N rounds, where N - 1 are enough: the finished chunks go on for one more round."""
# caught by: test_ring_reduce_scatter
# says: 1 times the buffer and not 0.75
# %% ring_reduce_scatter: changed
# -     for step in range(n - 1):
# +     for step in range(n):

# ==== reduce_scatter_into_memory_of_its_own
"""Sums in a copy and lets the tensor point to it: what it returns is a view of no memory of the caller's."""
# caught by: test_ring_reduce_scatter
# %% ring_reduce_scatter: changed
#       rank, n = dist.get_rank(), dist.get_world_size()
# +     tensor.data = tensor.clone()

# ==== reduce_scatter_receives_in_place
"""Receives over its own numbers and adds what it sent before."""
# caught by: test_ring_reduce_scatter
# %% ring_reduce_scatter: changed
# -         landing = torch.empty_like(arriving)
# +         landing = arriving

# ==== returns_nothing
"""The sum is in its place in the tensor; the return is forgotten."""
# caught by: test_ring_reduce_scatter
# says: the chunk is None, not a tensor: does it return nothing?
# %% ring_reduce_scatter: changed
# -     return chunks[rank]

# ==== ring_one_rank_after_another
"""Rank 0 sends first and all others receive first: nothing hangs, and one message at a time goes round the ring."""
# caught by: test_ring_reduce_scatter
# says: it takes 12 messages one after another, where 3 would do: ranks wait for their turn
# %% ring_reduce_scatter: changed
# -         together = [
# -             dist.P2POp(dist.isend, leaving, (rank + 1) % n),
# -             dist.P2POp(dist.irecv, landing, (rank - 1) % n),
# -         ]
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         if rank == 0:
# +             dist.send(leaving, dst=(rank + 1) % n)
# +             dist.recv(landing, src=(rank - 1) % n)
# +         else:
# +             dist.recv(landing, src=(rank - 1) % n)
# +             dist.send(leaving, dst=(rank + 1) % n)

# ==== ring_with_a_barrier_in_each_round
"""A barrier ends each round."""
# caught by: test_ring_reduce_scatter
# says: rank 0 called barrier
# %% ring_reduce_scatter: changed
#           arriving += landing
# +         dist.barrier()

# ==== sends_first_and_waits
"""Every rank sends with a blocking send, then receives: large messages never leave."""
# caught by: test_ring_reduce_scatter
# says: a cycle: rank 0 waits to send to rank 1
# %% ring_reduce_scatter
def ring_reduce_scatter(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    for step in range(n - 1):
        arriving = chunks[(rank - 2 - step) % n]
        landing = torch.empty_like(arriving)
        dist.send(chunks[(rank - 1 - step) % n], dst=(rank + 1) % n)
        dist.recv(landing, src=(rank - 1) % n)
        arriving += landing
    return chunks[rank]

# ==== reduce_scatter_returns_a_clone
"""The chunk is in its place; what is returned is a copy of it and not a view."""
# caught by: test_ring_reduce_scatter
# says: is a copy
# %% ring_reduce_scatter: changed
# -     return chunks[rank]
# +     return chunks[rank].clone()

# ==== off_by_one_chunk
"""Starts one chunk too far: the finished chunk of rank r is chunk r + 1."""
# caught by: test_ring_reduce_scatter
# %% ring_reduce_scatter: changed
# -     chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
# @@
# -         leaving, arriving = chunks[(rank - 1 - step) % n], chunks[(rank - 2 - step) % n]
# +         leaving, arriving = chunks[(rank - step) % n], chunks[(rank - 1 - step) % n]
# @@
# -     return chunks[rank]
# +     return chunks[(rank + 1) % n]

# ==== only_when_n_divides
"""Chunks of numel // N elements: the rest at the end is never summed."""
# caught by: test_ring_reduce_scatter
# %% ring_reduce_scatter: changed
# -     bounds = chunk_bounds(tensor.numel(), n).tolist()
# -     chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     size = tensor.numel() // n
# +     chunks = [tensor[i * size : (i + 1) * size] for i in range(n)]

# ==== all_gather_by_way_of_float64
"""Takes the tensor to float64 and back, which rounds large whole numbers."""
# caught by: test_ring_all_gather
# says: int64
# %% ring_all_gather: changed
#           for work in dist.batch_isend_irecv(together):
#               work.wait()
# +     tensor.copy_(tensor.double())

# ==== all_gather_into_memory_of_its_own
"""Gathers in a copy and lets the tensor point to it."""
# caught by: test_ring_all_gather
# %% ring_all_gather: changed
#       rank, n = dist.get_rank(), dist.get_world_size()
# +     tensor.data = tensor.clone()

# ==== all_gather_one_rank_after_another
"""Rank 0 sends first and all others receive first: one message at a time goes round the ring."""
# caught by: test_ring_all_gather
# says: it takes 12 messages one after another, where 3 would do: ranks wait for their turn
# %% ring_all_gather: changed
# -         together = [
# -             dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
# -             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
# -         ]
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         leaving, arriving = chunks[(rank - step) % n], chunks[(rank - 1 - step) % n]
# +         if rank == 0:
# +             dist.send(leaving, dst=(rank + 1) % n)
# +             dist.recv(arriving, src=(rank - 1) % n)
# +         else:
# +             dist.recv(arriving, src=(rank - 1) % n)
# +             dist.send(leaving, dst=(rank + 1) % n)

# ==== left_is_right
"""A sign: it receives from the rank that it sends to, which is right for two ranks."""
# caught by: test_ring_all_gather
# says: has posted a receive, from rank
# %% ring_all_gather: changed
# -             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
# +             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank + 1) % n),

# ==== never_waits_for_sends
"""Waits for what it receives and lets its sends go; the buffer may change under them."""
# caught by: test_ring_all_gather
# %% ring_all_gather: changed
# -     chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
# @@
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         dist.batch_isend_irecv(together)[1].wait()

# ==== receives_first
"""Every rank waits for what comes from the left before it sends to the right: nobody begins."""
# caught by: test_ring_all_gather
# says: a cycle: rank 0 waits to receive from rank
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    for step in range(n - 1):
        dist.recv(chunks[(rank - 1 - step) % n], src=(rank - 1) % n)
        dist.send(chunks[(rank - step) % n], dst=(rank + 1) % n)

# ==== sends_before_receiving
"""Every rank sends, then receives: gloo's buffers hide a deadlock that NCCL shows."""
# caught by: test_ring_all_gather
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    for step in range(n - 1):
        sending = dist.isend(chunks[(rank - step) % n], dst=(rank + 1) % n)
        dist.recv(chunks[(rank - 1 - step) % n], src=(rank - 1) % n)
        sending.wait()

# ==== step_never_grows
"""A while loop whose counter stays as it is: the ring goes round for ever."""
# caught by: test_ring_all_gather
# says: came to no end: is this loop endless? · cell
# %% ring_all_gather: changed
# -     for step in range(n - 1):
# +     step = 0
# +     while step < n - 1:

# ==== never_waits
"""Starts its receives and never waits for them."""
# caught by: test_ring_all_gather
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
    for step in range(n - 1):
        dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
                dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
            ]
        )

# ==== gathers_whole_buffers
"""Sends the whole tensor on in every round and picks one chunk out of it."""
# caught by: test_ring_all_gather
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    for step in range(n - 1):
        landing = torch.empty_like(tensor)
        together = [
            dist.P2POp(dist.isend, tensor, (rank + 1) % n),
            dist.P2POp(dist.irecv, landing, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        arrived = (rank - 1 - step) % n
        tensor[bounds[arrived] : bounds[arrived + 1]] = landing[bounds[arrived] : bounds[arrived + 1]]

# ==== all_reduce_not_above_five
"""Right up to five ranks: beyond, the last rounds are missing."""
# caught by: test_ring_all_reduce
# %% ring_reduce_scatter: changed
# -     for step in range(n - 1):
# +     for step in range(min(n - 1, 4)):

# ==== all_reduce_with_a_barrier_between
"""A barrier between the two halves."""
# caught by: test_ring_all_reduce
# says: rank 0 called barrier; build it from send and recv
# %% ring_all_reduce: changed
#       ring_reduce_scatter(tensor)
# +     dist.barrier()

# ==== waits_for_a_round_that_never_comes
"""Before it begins, each rank counts rounds down from n - 1 until there are none, and counts in the wrong direction."""
# caught by: test_ring_all_reduce
# says: came to no end: is this loop endless? · cell
# %% ring_all_reduce
def ring_all_reduce(tensor):
    left = dist.get_world_size() - 1
    while left != -1:
        left += 1
    ring_reduce_scatter(tensor)
    ring_all_gather(tensor)

# ==== sends_full_buffers
"""A ring that sends the whole buffer in every round: right values, N times the traffic."""
# caught by: test_ring_all_reduce
# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    passing = tensor.clone()
    for step in range(n - 1):
        landing = torch.empty_like(tensor)
        together = [
            dist.P2POp(dist.isend, passing, (rank + 1) % n),
            dist.P2POp(dist.irecv, landing, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        tensor += landing
        passing = landing

# ==== all_reduce_whole_buffers_on_odd_rings
"""On an odd number of ranks the whole buffers go round."""
# caught by: test_ring_all_reduce
# %% ring_all_reduce
def ring_all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if n % 2 == 0:
        ring_reduce_scatter(tensor)
        ring_all_gather(tensor)
        return
    leaving = tensor.clone()
    for _ in range(n - 1):
        arriving = torch.empty_like(tensor)
        together = [
            dist.P2POp(dist.isend, leaving, (rank + 1) % n),
            dist.P2POp(dist.irecv, arriving, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        tensor += arriving
        leaving = arriving

# ==== reduces_to_root
"""Everything goes to rank 0 and back, passed off as a ring."""
# caught by: test_ring_all_reduce
# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        for other in range(1, n):
            landing = torch.empty_like(tensor)
            dist.recv(landing, src=other)
            tensor += landing
        for other in range(1, n):
            dist.send(tensor, dst=other)
    else:
        dist.send(tensor, dst=0)
        dist.recv(tensor, src=0)

# ==== ring_seconds_gathers_in_one_round
"""Counts N-1 rounds for the reduce-scatter and one for the all-gather."""
# caught by: test_ring_seconds
# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    return world_size * (alpha + size / world_size * beta)

# ==== ring_seconds_of_four
"""The six rounds and the one and a half buffers of 4 ranks."""
# caught by: test_ring_seconds
# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    return 6 * alpha + 1.5 * size * beta

# ==== busbw_looked_up
"""The factors of 2, 4 and 8 ranks, from a table."""
# caught by: test_bus_bandwidth
# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    return size / seconds * {2: 1.0, 4: 1.5, 8: 1.75}.get(world_size, 2.0)

# ==== busbw_of_a_reduce_scatter
"""(N-1)/N, the factor of half the work."""
# caught by: test_bus_bandwidth
# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    return size / seconds * (world_size - 1) / world_size

# ==== fit_beta_per_chunk
"""Gives the slope for each byte of the buffer as β."""
# caught by: test_fit_alpha_beta
# says: beta is 1.5e-09, expected 1e-09
# %% fit_alpha_beta: changed
# -     rows = torch.stack([rounds / t, rounds * size / world_size / t], dim=1)
# +     rows = torch.stack([rounds / t, size / t], dim=1)

# ==== fit_through_the_ends
"""A line through the smallest and the largest size, whatever lies between."""
# caught by: test_fit_alpha_beta
# says: by least squares they are below
# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    (s0, t0), *_, (s1, t1) = sorted(zip(sizes, seconds))
    slope = (t1 - t0) / (s1 - s0)
    rounds = 2 * (world_size - 1)
    return (t0 - slope * s0) / rounds, slope * world_size / rounds

# ==== prints_and_returns_nothing
"""The two numbers are printed, where they were to be returned."""
# caught by: test_fit_alpha_beta
# says: returned None, not (alpha, beta)
# %% fit_alpha_beta: changed
# -     return alpha, beta
# +     print(alpha, beta)
