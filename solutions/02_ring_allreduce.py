# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Ring AllReduce
#
# Four GPUs each hold 64 MiB of gradients and need the sum. How many bytes must leave each of them, and how long does
# that take? In this lab you build the answer out of `send` and `recv`: a pipelined broadcast, then the ring that
# every data-parallel training job runs thousands of times an hour. Then you measure it, and predict a time you have
# not measured.
#
# Your functions run on real ranks, processes that talk through `torch.distributed` (gloo on a CPU, NCCL with a GPU
# for each rank). A check shows a table: what was claimed, whether it holds, why not, and the points. It counts
# messages and bytes as well as looking at the result. Its score is of the tests that you see; hidden tests, with other
# sizes and numbers of ranks, follow at hand-in.
#
# You need chapter 3 first. After this lab you can
#
# - write a ring all-reduce that is right for any number of ranks and elements (`ring_all_reduce`)
# - fit α and β to measured times and predict another size (`fit_alpha_beta`)
# - say for which sizes a ring is the wrong choice (`when_is_a_ring_best`)
#
# About 90 minutes. Wherever you see **Guess first**, do: write the number down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters, draw, explore, launch, written

check_parameters()

import time
from itertools import pairwise

import torch
import torch.distributed as dist

from ringzero.collectives import chunk_bounds

# %% [markdown]
# ## Two ranks, one message
#
# `launch(f, ...)` calls `f` on every rank. A rank finds out who it is with `dist.get_rank()`. `dist.send` and
# `dist.recv` return when the message is on its way or has arrived; what is received replaces the tensor's contents.
#
# **Guess first.** What does the last rank return here?
#
# <details><summary>Answer</summary>What rank 0 had: [0.0, 0.0, 0.0]. What is received takes the place of a rank's own
# numbers.</details>


# %%
def pass_it_on():
    rank, n = dist.get_rank(), dist.get_world_size()
    tensor = torch.full((3,), float(rank))
    if rank > 0:
        dist.recv(tensor, src=rank - 1)
    if rank < n - 1:
        dist.send(tensor, dst=rank + 1)
    return tensor.tolist()


launch(pass_it_on, world_size=WORLD_SIZE, device=DEVICE)

# %% [markdown]
# When every rank sends *and* receives in the same round, order matters. If all of them call `send` first, each waits
# for a receive that nobody has started; gloo often forgives it because small messages fit in a buffer, NCCL does not.
# The safe way is to hand both to the library at once:


# %%
def swap_with_both_neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    mine, theirs = torch.full((3,), float(rank)), torch.empty(3)
    if n > 1:
        together = [
            dist.P2POp(dist.isend, mine, (rank + 1) % n),
            dist.P2POp(dist.irecv, theirs, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()  # until then `theirs` holds nothing and `mine` must not change
    return theirs.tolist()


launch(swap_with_both_neighbours, world_size=WORLD_SIZE, device=DEVICE)

# %% [markdown]
# A buffer is cut into chunks that are as equal as whole elements allow. `chunk_bounds(numel, chunks)` gives the
# `chunks + 1` places where they begin and end: chunk `c` is `tensor[bounds[c] : bounds[c + 1]]`. With more chunks
# than elements, some are empty.

# %%
print(chunk_bounds(12, 4), chunk_bounds(7, 3), chunk_bounds(2, 4))

# %% [markdown]
# ## 1. A pipelined broadcast
#
# The ranks stand in a chain that starts at `root`: `root`, `root + 1`, … round to `root - 1` (all modulo N). The
# root's tensor is to reach everyone along this chain. Sent whole, the last rank gets it after N−1 full transfers. Cut
# in K pieces, a rank can pass piece 1 on while piece 2 is still coming in.
#
# **Guess first.** With 4 ranks and 8 pieces, how many times as fast is that? Count the rounds: one round moves one
# piece over one link, and different links work at the same time.
#
# <details><summary>Answer</summary>2.4 times: N − 2 + K = 10 rounds of S/8, which is 1.25 S, where the whole takes 3
# rounds of S.</details>
#
# Write `pipelined_broadcast`. It changes `tensor` in place and needs to return nothing. The tensors are 1-D; `chunks`
# is at least 1 and may be larger than the number of elements; there may be a single rank.


# %% nbgrader={"grade_id": "pipelined_broadcast", "solution": true}
def pipelined_broadcast(tensor, root, chunks):
    """Make every rank's tensor equal to the root's, in ``chunks`` pieces that follow each other along the chain."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n  # how far down the chain
    bounds = chunk_bounds(tensor.numel(), chunks).tolist()
    for start, stop in pairwise(bounds):
        piece = tensor[start:stop]
        if place > 0:
            dist.recv(piece, src=(rank - 1) % n)
        if place < n - 1:
            dist.send(piece, dst=(rank + 1) % n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_pipelined_broadcast", "grade": true, "points": 4}
from ringzero_course.lab import Check, traffic

check = Check("pipelined_broadcast", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("broadcast", traffic.chain(), chunks=(8, 6, 4, 7))
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# This is what your broadcast did, drawn from the messages it sent. Time runs to the right.

# %%
draw("pipelined_broadcast", numel=64, root=0, chunks=8, world_size=WORLD_SIZE)

# %% [markdown]
# N − 2 + K rounds of S/K bytes instead of N − 1 rounds of S: with 4 ranks and 8 pieces 10/8 = 1.25 buffers of time,
# not 3. More pieces are better until each is so small that the fixed cost of a message shows.

# %% [markdown]
# ## 2. Ring reduce-scatter
#
# Now everyone has something to say. The tensor is cut into N chunks as `chunk_bounds` does it, and rank r is to end
# with chunk r of the *sum*. In each of N−1 rounds all ranks at the same time send one chunk to their right neighbour
# (`rank + 1`), and add the one from their left to their own. The chunk that has to end at rank r starts at rank r + 1
# and visits everyone on the way, collecting.
#
# **Guess first.** Which chunk does rank 0 of 4 send in the first round, and in the second? (There is one choice that
# works. If you pick the chunk that is to stay with you, what goes wrong?)
#
# <details><summary>Answer</summary>Chunk 3, then chunk 2, to which it has added its own numbers. A chunk that starts at
# you has passed N − 1 links in the end, and stays with your left neighbour.</details>
#
# Write `ring_reduce_scatter`. It works in place: return rank r's chunk, a view of `tensor`; the rest of `tensor` may
# hold anything. Receive into memory of its own before you add.


# %% nbgrader={"grade_id": "ring_reduce_scatter", "solution": true}
def ring_reduce_scatter(tensor):
    """Return chunk ``rank`` of the sum over ranks, a view of ``tensor``. The rest of ``tensor`` is scratch."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
    for step in range(n - 1):
        leaving, arriving = chunks[(rank - 1 - step) % n], chunks[(rank - 2 - step) % n]
        landing = torch.empty_like(arriving)
        together = [
            dist.P2POp(dist.isend, leaving, (rank + 1) % n),
            dist.P2POp(dist.irecv, landing, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        arriving += landing
    return chunks[rank]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_ring_reduce_scatter", "grade": true, "points": 5}
from ringzero_course.lab import Check, traffic

check = Check("ring_reduce_scatter", points=5, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("reduce_scatter", traffic.ring("reduce_scatter"))
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3. Ring all-gather
#
# The second half. Rank r holds the right chunk r, everything else in its tensor is rubbish. In N−1 rounds the
# finished chunks go round the ring: in each, send to the right what arrived last. Nothing is added, so a chunk may
# arrive straight in its place.
#
# **Guess first.** The reduce-scatter took N−1 rounds. Can the all-gather take fewer, now that nothing has to be
# added?
#
# <details><summary>Answer</summary>No. A chunk has N − 1 links to go until it has come to everyone, one in each
# round.</details>
#
# Write `ring_all_gather`, in place.


# %% nbgrader={"grade_id": "ring_all_gather", "solution": true}
def ring_all_gather(tensor):
    """Fill ``tensor`` on every rank with rank r's chunk r, for all r."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
    for step in range(n - 1):
        together = [
            dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
            dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_ring_all_gather", "grade": true, "points": 3}
from ringzero_course.lab import Check, traffic

check = Check("ring_all_gather", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("all_gather", traffic.ring("all_gather"))
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4. Ring all-reduce
#
# After the reduce-scatter rank r holds chunk r of the sum. That is exactly what the all-gather starts from.
#
# **Guess first.** How many bytes does each of 4 ranks send to sum 64 MiB? And if rank 0 collected everything and sent
# it back, how many would *it* send and receive?
#
# <details><summary>Answer</summary>96 MiB each, 2(N−1)/N of the buffer. Rank 0 would receive 192 MiB and send 192
# MiB.</details>
#
# Write `ring_all_reduce`, in place. Two lines are enough.


# %% nbgrader={"grade_id": "ring_all_reduce", "solution": true}
def ring_all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    ### BEGIN SOLUTION
    ring_reduce_scatter(tensor)
    ring_all_gather(tensor)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_ring_all_reduce", "grade": true, "points": 4}
from ringzero_course.lab import Check, traffic

check = Check("ring_all_reduce", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("all_reduce", traffic.ring("all_reduce"))
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 5. How long should it take?
#
# Say a message of S bytes takes α + S·β seconds: α seconds for the message itself, β seconds for each byte. The ring
# does 2(N−1) rounds, and in each of them every rank sends one message of S/N bytes, all at the same time.
#
# Write `ring_seconds`: what your all-reduce of `size` bytes costs by this model.


# %% nbgrader={"grade_id": "ring_seconds", "solution": true}
def ring_seconds(size, world_size, alpha, beta):
    """Seconds that a ring all-reduce of ``size`` bytes takes on ``world_size`` ranks."""
    ### BEGIN SOLUTION
    rounds = 2 * (world_size - 1)
    return rounds * (alpha + size / world_size * beta)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_ring_seconds", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import rings

check = Check("ring_seconds", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(rings.ring_seconds)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6. What the wire saw
#
# A time alone does not say whether it is good. *Algorithm bandwidth*, S over t, is what the caller sees; even on
# perfect links it falls as ranks are added, because each link carries more than S. *Bus bandwidth* corrects for that:
# the bytes that crossed each rank's link, over the time. It can be compared with the number on the data sheet, for
# any N. This is how nccl-tests defines it.
#
# Write `bus_bandwidth` for an all-reduce.


# %% nbgrader={"grade_id": "bus_bandwidth", "solution": true}
def bus_bandwidth(size, seconds, world_size):
    """Bytes a second through each rank's link, for an all-reduce of ``size`` bytes that took ``seconds``."""
    ### BEGIN SOLUTION
    return size / seconds * 2 * (world_size - 1) / world_size
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_bus_bandwidth", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import rings

check = Check("bus_bandwidth", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(rings.bus_bandwidth)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7. Measure, fit, predict
#
# Time your ring at several sizes. The slowest rank counts; the best of a few repetitions is the least disturbed.


# %%
def measure(all_reduce, sizes, repeats=10):
    times = []
    for size in sizes:
        tensor = torch.zeros(size // 4)
        best = float("inf")
        for _ in range(repeats + 1):  # the first one warms up
            dist.barrier()
            start = time.perf_counter()
            all_reduce(tensor)
            if tensor.is_cuda:
                torch.cuda.synchronize()
            best = min(best, time.perf_counter() - start)
        times.append(best)
    return times


sizes = [2**k for k in range(14, 23)]  # 16 KiB to 4 MiB
seconds = []
if written("ring_all_reduce"):
    by_rank = launch(measure, ring_all_reduce, sizes, world_size=WORLD_SIZE, device=DEVICE).returns
    seconds = [max(times) for times in zip(*by_rank, strict=True)]
    for size, elapsed in zip(sizes, seconds, strict=True):
        print(f"{size / 1024:8.0f} KiB  {1e6 * elapsed:9.1f} µs")

# %% [markdown]
# Two unknowns, nine measurements. `ring_seconds` is a straight line in the size: α decides where it starts, β how
# steep it is. Write `fit_alpha_beta`: the α and β (per message and per byte, as in `ring_seconds`) that explain the
# measurements best in the sense of least squares. `world_size` is at least 2. NumPy or torch may help.


# %% nbgrader={"grade_id": "fit_alpha_beta", "solution": true}
def fit_alpha_beta(sizes, seconds, world_size):
    """``(alpha, beta)`` such that ``ring_seconds(size, world_size, alpha, beta)`` is close to each of ``seconds``."""
    ### BEGIN SOLUTION
    rounds = 2 * (world_size - 1)
    size, t = (torch.tensor(x, dtype=torch.float64, device="cpu") for x in (sizes, seconds))
    # Divided by t, so that the error is relative and 16 KiB counts as much as 4 MiB.
    rows = torch.stack([rounds / t, rounds * size / world_size / t], dim=1)
    scale = rows.norm(dim=0)  # columns of very different size make a poor least-squares problem
    alpha, beta = (torch.linalg.lstsq(rows / scale, torch.ones_like(t)).solution / scale).tolist()
    return alpha, beta
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_fit_alpha_beta", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import rings

check = Check("fit_alpha_beta", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(rings.fit_alpha_beta)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Fit your own measurements, all but the last, and predict the last one.
#
# **Guess first.** How far off will it be: 2 %, 20 %, a factor of 2?
#
# <details><summary>Answer</summary>The cell says it, and it is another number on each machine. The last size lies
# outside of what was fitted: whatever changes with the size, such as a cache that is full, shows here first.</details>

# %%
alpha, beta = 20e-6, 1e-9  # made up, until there are measurements to fit (one rank sends nothing)
if WORLD_SIZE > 1 and seconds and written("ring_seconds", "bus_bandwidth", "fit_alpha_beta"):
    alpha, beta = fit_alpha_beta(sizes[:-1], seconds[:-1], WORLD_SIZE)
    print(f"alpha {1e6 * alpha:.1f} µs, beta {1e9 * beta:.3f} ns a byte, which is {1e-9 / beta:.2f} GB/s")
    predicted, measured = ring_seconds(sizes[-1], WORLD_SIZE, alpha, beta), seconds[-1]
    print(f"{sizes[-1]} bytes: predicted {1e3 * predicted:.2f} ms, measured {1e3 * measured:.2f} ms")
    print(f"measured / predicted = {measured / predicted:.2f}")
    print(f"bus bandwidth {bus_bandwidth(sizes[-1], measured, WORLD_SIZE) / 1e9:.2f} GB/s")

# %% [markdown]
# `explore` runs *your* functions: move a slider and it launches that many ranks, draws the messages they sent, and
# prices them with your α and β, round by round and by your `ring_seconds`. Take 64 KiB and go from 2 ranks to 8; then
# 64 MiB.
#
# **Guess first.** By how much does each get slower?
#
# <details><summary>Answer</summary>From 2 to 14 rounds: a small message, for which α is all, takes nearly 7 times as
# long. A large one takes up to 1.75 times as long, from 1 S to 1.75 S through each link.</details>

# %%
explore(all_reduce="ring_all_reduce", broadcast="pipelined_broadcast", seconds="ring_seconds", world_size=WORLD_SIZE)

# %% [markdown]
# And on 64 ranks, if all their links were like these: how much of the time is α?

# %%
if written("ring_seconds"):
    for size in (2**14, 2**20, 2**26):
        whole, latency = (ring_seconds(s, 64, alpha, beta) for s in (size, 0))
        print(f"{size:>10} bytes: {1e3 * whole:8.2f} ms, {latency / whole:.0%} of it alpha")

# %% [markdown]
# ## 8. In your own words
#
# Three to six sentences, with numbers from above. A colleague says: "The ring is bandwidth-optimal, so it is the best
# all-reduce for our 64-rank job." For which message sizes is that right, for which is it wrong, and what would you
# measure to find where the change is?

# %% [markdown] nbgrader={"grade_id": "when_is_a_ring_best", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. For large buffers it is right: each rank sends 2(N−1)/N of the buffer, which no all-reduce can beat, and the bytes
#    decide the time.
# 2. For small buffers it is wrong: the ring pays 2(N−1) = 126 latencies one after another. Below about S = N·α/β, where
#    both terms are equal, an algorithm with log N rounds wins although it sends more.
# 3. To find the place, measure both algorithms over sizes on the machine in question, or fit α and β to each and solve
#    for equal times; with a number from the measurement above.
#
# Three answers and their points:
#
# > Each rank sends 126/64 = 1.97 times the buffer, and no algorithm sends less, so for large messages the colleague
# > is right. But the ring has 126 rounds. My fit says α = 40 µs and β = 0.5 ns, so 126 α is half of the time at
# > 64·α/β = 5.1 MB; well below that a tree with 12 rounds is faster. I would time both for sizes from 1 KB to 1 GB on
# > the 64 GPUs and look where the curves cross.
#
# 3 points: all three.
#
# > The ring is bandwidth-optimal, so for big gradients it is best. With small messages the latency counts: 126 α,
# > where a tree has only 12. So the ring is wrong for small ones.
#
# 2 points: the first two. It does not say what to measure.
#
# > The ring is optimal in bandwidth, so every rank is busy all the time. It is only wrong if the network is slow.
#
# 0 points: no size, and a slow network alone does not change which algorithm is best: α/β does.
# ### END SOLUTION
