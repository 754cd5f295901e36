# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The collectives, from send and receive
#
# A training job on a thousand GPUs says `all_reduce` and is done. Below that word there are only two others: *send* and
# *receive*. In this lab you write all nine collectives with them. You begin with the plans that come to mind first,
# count what they send, and see which rank pays. Then you write plans in which nobody stands in the middle, and a tree
# that needs log₂ N rounds where the first plan needs N − 1.
#
# Your functions run on real ranks, processes that talk through `torch.distributed` (gloo on a CPU, NCCL with a GPU
# for each rank). A check shows a table: what was claimed, whether it holds, why not, and the points. It counts
# messages and bytes as well as looking at the result. Its score is of the tests that you see; hidden tests, with other
# sizes and numbers of ranks, follow at hand-in.
#
# You need chapter 2 first. After this lab you can
#
# - write the nine collectives with nothing but send and receive (`all_reduce`)
# - take a plan in which no rank stands in the middle, or one with few rounds (`tree_broadcast`)
# - choose between such plans by rounds and bytes (`which_way_to_sum`)
#
# About 90 minutes. Wherever you see **Guess first**, do: write the number down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters, draw, launch, written

check_parameters()

import torch
import torch.distributed as dist

from ringzero.collectives import ALGORITHMS
from ringzero_course.figures import before_after, spacetime

# %% [markdown]
# ## What you build with
#
# `launch(f, ...)` calls `f` on every rank. `dist.send(x, dst)` hands `x` over to rank `dst`, `dist.recv(x, src)` waits
# for what rank `src` sends and puts it into `x`, which must have its size and type.
#
# **Guess first.** What does the last rank return?
#
# <details><summary>Answer</summary>100 − N: each rank takes one away and hands on what is left. On 4 ranks
# 96.</details>


# %%
def countdown():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.tensor([100.0])
    if rank > 0:
        dist.recv(x, src=rank - 1)
    x -= 1
    if rank < n - 1:
        dist.send(x, dst=rank + 1)
    return x.item()


launch(countdown, world_size=WORLD_SIZE, device=DEVICE)

# %% [markdown]
# Where every rank sends *and* receives, order matters. If all call `send` first, each waits for a receive that nobody
# has started. gloo often forgives that, because small messages fit in a buffer; NCCL does not. `exchange` hands both to
# the library at once and waits for both. Before the wait `arriving` holds nothing, and `leaving` must not change.


# %% nbgrader={"grade_id": "exchange", "locked": true}
from itertools import pairwise

import torch.distributed as dist

from ringzero.collectives import chunk_bounds


def exchange(leaving, dst, arriving, src):
    """Send ``leaving`` to rank ``dst`` and at the same time receive ``arriving`` from rank ``src``."""
    together = [dist.P2POp(dist.isend, leaving, dst), dist.P2POp(dist.irecv, arriving, src)]
    for work in dist.batch_isend_irecv(together):
        work.wait()


# %% [markdown]
# In half of the collectives a buffer is shared out: it is cut into N chunks, as equal as whole elements allow, and
# chunk r is rank r's. `chunks_of` gives them as views, so what you write into a chunk is written into the buffer. If
# there are more ranks than elements, some chunks are empty; messages may be empty too.


# %% nbgrader={"grade_id": "chunks_of", "locked": true}
def chunks_of(tensor):
    """The N chunks of a 1-D tensor, as views."""
    bounds = chunk_bounds(tensor.numel(), dist.get_world_size()).tolist()
    return [tensor[start:stop] for start, stop in pairwise(bounds)]


# %% [markdown]
# `show` runs one of your collectives on a small buffer, one number a chunk, and puts what each rank had beside what it
# has. Rank r's chunk c is the number 10r + c, so that you can see where everything came from.


# %%
def show(name, *args):
    function = globals().get(name)

    def work():
        rank, n = dist.get_rank(), dist.get_world_size()
        tensor = torch.arange(n) + 10 * rank
        before = tensor.tolist()
        returned = function(tensor, *args)
        return before, tensor.tolist(), returned.tolist() if isinstance(returned, torch.Tensor) else None

    if not written(name):
        return None
    before, after, returned = zip(*launch(work, world_size=WORLD_SIZE, device=DEVICE).returns, strict=True)
    given_back = any(value is not None for value in returned)
    caption = f"{name}{args}: each rank's tensor before, and {'what it returned' if given_back else 'after'}."
    return before_after(before, returned if given_back else after, caption.replace(",)", ")"))


# %% [markdown]
# ## 1. Broadcast
#
# The root's tensor is to reach everyone. The first plan: the root sends it to each of the others.
#
# Write `broadcast`. It changes `tensor` (1-D, as everywhere in this lab) in place. `root` may be any rank, and there
# may be a single rank.


# %% nbgrader={"grade_id": "broadcast", "solution": true}
def broadcast(tensor, root):
    """Make every rank's tensor equal to the root's."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == root:
        for other in range(n):
            if other != root:
                dist.send(tensor, dst=other)
    else:
        dist.recv(tensor, src=root)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_broadcast", "grade": true, "points": 2}
from ringzero_course.lab import Check, traffic

check = Check("broadcast", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("broadcast", traffic.once())
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
show("broadcast", 0)

# %% [markdown]
# ## 2. Reduce
#
# The way back: the root is to have the sum over all ranks, element by element. The first plan: all send to the root,
# and the root adds. It needs room of its own to receive into; what arrives in `tensor` wipes out what is there.
#
# **Guess first.** The others only send. Is there anything they could get wrong?
#
# <details><summary>Answer</summary>They could change their own tensor: whoever receives into it or adds in it wipes out
# what the caller still needs.</details>
#
# Write `reduce`. On the root `tensor` becomes the sum. On the other ranks it must be unchanged: whoever calls it may
# still need it. (gloo's own reduce does change it. That is allowed, and has cost people days.)


# %% nbgrader={"grade_id": "reduce", "solution": true}
def reduce(tensor, root):
    """Replace the root's tensor by the sum over ranks, and leave the others' alone."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != root:
        dist.send(tensor, dst=root)
        return
    landing = torch.empty_like(tensor)
    for other in range(n):
        if other != root:
            dist.recv(landing, src=other)
            tensor += landing
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_reduce", "grade": true, "points": 3}
from ringzero_course.lab import Check, traffic

check = Check("reduce", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("reduce", traffic.once())
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
show("reduce", 0)

# %% [markdown]
# ## 3. Gather
#
# Now the buffer is shared out. Rank r has the right chunk r, and the root is to have them all, each in its place.
#
# **Guess first.** Of a buffer of S bytes on N ranks, how many bytes arrive at the root?
#
# <details><summary>Answer</summary>All but the root's own chunk: S(N−1)/N. Nothing else has to move.</details>
#
# Write `gather`: each rank sends its chunk straight to the root. Only the root's tensor changes.


# %% nbgrader={"grade_id": "gather", "solution": true}
def gather(tensor, root):
    """Fill the root's tensor with rank r's chunk r, for all r, and leave the others' alone."""
    ### BEGIN SOLUTION
    rank, chunks = dist.get_rank(), chunks_of(tensor)
    if rank != root:
        dist.send(chunks[rank], dst=root)
        return
    for other, chunk in enumerate(chunks):
        if other != root:
            dist.recv(chunk, src=other)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_gather", "grade": true, "points": 2}
from ringzero_course.lab import Check, traffic

check = Check("gather", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("gather", traffic.flat("gather"))
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
show("gather", 0)

# %% [markdown]
# ## 4. Scatter
#
# And back: the root's chunk r is to reach rank r.
#
# Write `scatter`: the root sends each rank its chunk, straight. Return rank r's chunk, a view of its own `tensor`.
# Nothing else in any tensor changes.


# %% nbgrader={"grade_id": "scatter", "solution": true}
def scatter(tensor, root):
    """Return chunk ``rank`` of the root's tensor, a view of this rank's own ``tensor``."""
    ### BEGIN SOLUTION
    rank, chunks = dist.get_rank(), chunks_of(tensor)
    if rank != root:
        dist.recv(chunks[rank], src=root)
        return chunks[rank]
    for other, chunk in enumerate(chunks):
        if other != root:
            dist.send(chunk, dst=other)
    return chunks[rank]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_scatter", "grade": true, "points": 2}
from ringzero_course.lab import Check, traffic

check = Check("scatter", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("scatter", traffic.flat("scatter"))
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
show("scatter", 0)

# %% [markdown]
# ## 5. All-gather, with nobody in the middle
#
# Every rank is to have every chunk. You could say `gather` and then `broadcast`; you have both.
#
# **Guess first.** With 8 ranks, how many times the buffer does rank 0 send then? And what is the least that a rank must
# send, if it is the only one that has its chunk?
#
# <details><summary>Answer</summary>7 times, all of it in the broadcast; in the gather it only receives. A rank that
# alone has its chunk must send that once at least, S/8, and (N−1)/N · S if nobody passes it on.</details>
#
# Nobody has to stand in the middle. Count rounds k = 1, 2, …, N−1: in round k, rank r sends its chunk to rank r + k and
# receives one from rank r − k (modulo N). In each round all links work at the same time, and none carries more than
# another.
#
# Write `all_gather`, in place, such that no rank sends more than (N−1)/N of the buffer, in N−1 messages at most.


# %% nbgrader={"grade_id": "all_gather", "solution": true}
def all_gather(tensor):
    """Fill ``tensor`` on every rank with rank r's chunk r, for all r."""
    ### BEGIN SOLUTION
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for k in range(1, n):
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[rank], dst, chunks[src], src)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_all_gather", "grade": true, "points": 3}
from ringzero_course.lab import Check, traffic

check = Check("all_gather", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("all_gather", traffic.nobody_in_the_middle())
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
show("all_gather")

# %% [markdown]
# ## 6. Reduce-scatter
#
# Rank r is to have chunk r of the *sum*. The same rounds do it: in round k send rank r + k the chunk that is *its*, and
# receive a chunk of yours from rank r − k.
#
# **Guess first.** What goes wrong if you receive straight into your chunk?
#
# <details><summary>Answer</summary>What arrives takes the place of your own numbers, which are then missing in the
# sum.</details>
#
# Write `reduce_scatter`. Return rank r's chunk, a view of `tensor`; the rest of `tensor` may hold anything. No rank
# sends more than (N−1)/N of the buffer, in N−1 messages at most.


# %% nbgrader={"grade_id": "reduce_scatter", "solution": true}
def reduce_scatter(tensor):
    """Return chunk ``rank`` of the sum over ranks, a view of ``tensor``. The rest of ``tensor`` is scratch."""
    ### BEGIN SOLUTION
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    landing = torch.empty_like(chunks[rank])
    for k in range(1, n):
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[dst], dst, landing, src)
        chunks[rank] += landing
    return chunks[rank]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_reduce_scatter", "grade": true, "points": 3}
from ringzero_course.lab import Check, traffic

check = Check("reduce_scatter", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("reduce_scatter", traffic.nobody_in_the_middle())
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
show("reduce_scatter")

# %% [markdown]
# ## 7. All-to-all
#
# The most general of them: every rank has a chunk for every rank. Write the chunks as a matrix, a row for each sender;
# all-to-all transposes it. Mixture-of-experts layers do this twice: tokens to their experts, and back.
#
# Write `all_to_all`. Return a new tensor with what has arrived for rank r, in the order of the senders (its own chunk
# among them), and leave `tensor` as it is. No rank sends more than (N−1)/N of the buffer, in N−1 messages at most.
# Where N does not divide the size, all that arrives at rank r is of the size of *its* chunk.


# %% nbgrader={"grade_id": "all_to_all", "solution": true}
def all_to_all(tensor):
    """Return everyone's chunk ``rank`` in one new tensor, rank 0's first."""
    ### BEGIN SOLUTION
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    arrived = [torch.empty_like(chunks[rank]) for _ in range(n)]
    arrived[rank].copy_(chunks[rank])
    for k in range(1, n):
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[dst], dst, arrived[src], src)
    return torch.cat(arrived)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_all_to_all", "grade": true, "points": 3}
from ringzero_course.lab import Check, traffic

check = Check("all_to_all", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("all_to_all", traffic.nobody_in_the_middle())
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
show("all_to_all")

# %% [markdown]
# ## 8. All-reduce
#
# Everyone is to have the whole sum. There are two ways to put it together from what you have: `reduce` and
# `broadcast`, or `reduce_scatter` and `all_gather`.
#
# **Guess first.** For 64 MiB on 4 ranks: how many MiB does the busiest rank send and receive in the one, how many in
# the other?
#
# <details><summary>Answer</summary>192 MiB in and 192 MiB out through rank 0; in the other way 96 MiB in and 96 MiB out
# at every rank.</details>
#
# Write `all_reduce`, in place, such that no rank sends more than 2(N−1)/N of the buffer, in 2(N−1) messages at most. No
# all-reduce sends fewer bytes.


# %% nbgrader={"grade_id": "all_reduce", "solution": true}
def all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    ### BEGIN SOLUTION
    reduce_scatter(tensor)
    all_gather(tensor)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_all_reduce", "grade": true, "points": 2}
from ringzero_course.lab import Check, traffic

check = Check("all_reduce", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("all_reduce", traffic.nobody_in_the_middle(rounds=2))
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
show("all_reduce")

# %% [markdown]
# Count it rather than trust it: both ways on your ranks, a buffer of 64 KiB, and what each rank sent and received.


# %%
def reduce_and_broadcast(tensor):
    reduce(tensor, 0)
    broadcast(tensor, 0)


def count(function, numel=2**14):
    def work():
        function(torch.ones(numel))

    by_rank = launch(work, world_size=WORLD_SIZE, device=DEVICE, trace=True).trace
    for rank in range(WORLD_SIZE):
        ops = [op for op in by_rank if op.rank == rank]
        sent, received = (sum(op.bytes for op in ops if op.kind == kind) for kind in ("send", "recv"))
        print(f"  rank {rank}: {sent / 1024:6.1f} KiB out, {received / 1024:6.1f} KiB in")


if written("reduce", "broadcast"):
    print("reduce and broadcast")
    count(reduce_and_broadcast)
if written("reduce_scatter", "all_gather", "all_reduce"):
    print("all_reduce")
    count(all_reduce)

# %% [markdown]
# The two move the same number of bytes in all. In the first, N−1 times the buffer goes into rank 0 and N−1 times out of
# it, while the links of the others are idle most of the time. A time is set by the busiest link.

# %% [markdown]
# ## 9. A tree
#
# Look at your broadcast: this is what it did, drawn from the messages it sent. Time runs to the right.

# %%
draw("broadcast", numel=64, root=0, world_size=WORLD_SIZE)

# %% [markdown]
# N−1 rounds, and in each of them one rank sends and the others watch, though after the first round there are *two*
# ranks that have the data. Let both send, then all four, then all eight: a *binomial tree*.
#
# **Guess first.** How many rounds for 1,024 ranks? For 1,000?
#
# <details><summary>Answer</summary>10 for both: ⌈log₂ 1000⌉ is 10 as well. The tree just has leaves missing.</details>
#
# Count ranks from the root: place p is rank root + p (modulo N). In the last round the ranks at even places send to
# place p + 1; in the one before those at multiples of 4 send to p + 2; before that those at multiples of 8 to p + 4.
# This is the library's, for 8 ranks:

# %%
spacetime(ALGORITHMS["broadcast"]["binomial"](8), caption="Binomial broadcast on 8 ranks: three rounds.")

# %% [markdown]
# Write `tree_broadcast`: N−1 messages in all, ⌈log₂ N⌉ rounds, any N, any root.


# %% nbgrader={"grade_id": "tree_broadcast", "solution": true}
def tree_broadcast(tensor, root):
    """Make every rank's tensor equal to the root's, in ceil(log2 N) rounds."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    for reach in reversed([2**k for k in range((n - 1).bit_length())]):
        if place % (2 * reach) == 0 and place + reach < n:
            dist.send(tensor, dst=(rank + reach) % n)
        elif place % (2 * reach) == reach:
            dist.recv(tensor, src=(rank - reach) % n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_tree_broadcast", "grade": true, "points": 4}
from ringzero_course.lab import Check, traffic

check = Check("tree_broadcast", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("broadcast", traffic.tree())
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
draw("tree_broadcast", numel=64, root=0, world_size=WORLD_SIZE)

# %% [markdown]
# ## 10. Barrier
#
# The last one moves no data. A rank that calls `barrier` may leave it only when every rank has called it. A message
# from each to each would do; so would a token to rank 0 and back. In both some rank receives N−1 messages.
#
# **Guess first.** In one round every rank can hear from one other. What is the least number of rounds after which each
# can have heard of all, if a message tells of all that its sender has heard of?
#
# <details><summary>Answer</summary>⌈log₂ N⌉: what a rank has heard of can at most double in a round.</details>
#
# Write `barrier`: no rank sends more than ⌈log₂ N⌉ messages or receives more, and none has more than 8 bytes. (A tree
# up and a tree down will do. There is a way with half the rounds.) On a GPU `wait` returns when a message is queued and
# not when it has come. So end with a look at what came last: `.item()` waits for it, on every device.


# %% nbgrader={"grade_id": "barrier", "solution": true}
def barrier():
    """Return when every rank has called it."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    token, landing = torch.zeros(1), torch.empty(1)
    for k in range((n - 1).bit_length()):
        exchange(token, (rank + 2**k) % n, landing, (rank - 2**k) % n)
    landing.item()  # waits until it has come, on a GPU too
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_barrier", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import rings

check = Check("barrier", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(rings.barrier)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## All nine
#
# What the plans of this lab cost on N ranks, with a buffer of S bytes: rounds one after another, and bytes through the
# busiest rank's link, one way.
#
# | collective | flat: rounds | flat: bytes | better: rounds | better: bytes |
# |---|---|---|---|---|
# | broadcast, reduce | N−1 | (N−1)·S | ⌈log₂ N⌉ | ⌈log₂ N⌉·S |
# | gather, scatter | N−1 | S(N−1)/N | ⌈log₂ N⌉ | S(N−1)/N |
# | all-gather, reduce-scatter | 2(N−1) | (N−1)·S | N−1 | S(N−1)/N |
# | all-to-all | 2(N−1) | S(N−1)²/N | N−1 | S(N−1)/N |
# | all-reduce | 2(N−1) | (N−1)·S | 2(N−1) | 2S(N−1)/N |
# | barrier | 2(N−1) | 0 | ⌈log₂ N⌉ | 0 |
#
# The root of a gather must receive all but its own chunk, so there nothing is to be saved but rounds.

# %% [markdown]
# ## 11. In your own words
#
# Three to six sentences, with numbers. To sum a buffer of S bytes over 8 ranks you now have three ways: `reduce` and
# `broadcast`; a tree up and `tree_broadcast` down; `reduce_scatter` and `all_gather`. For each, how many rounds does it
# take, and how many bytes leave the busiest rank? Which would you take for 1 GB, and which for 4 bytes, and why?

# %% [markdown] nbgrader={"grade_id": "which_way_to_sum", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. Rounds and bytes of all three ways. `reduce` and `broadcast`: 14 rounds, 7 S come into rank 0 and 7 S leave it. The
#    trees: 6 rounds, up to 3 S in and 3 S out at rank 0. `reduce_scatter` and `all_gather`: 14 rounds, 1.75 S leave
#    each rank.
# 2. For 1 GB bytes decide, so the third way. 1.75 S is also the least that an all-reduce can send. With the trees 3 S
#    come into rank 0, and then 3 S leave it.
# 3. For 4 bytes only rounds count, so the trees with 6. (Better still is an exchange in 3 rounds, as in the barrier.)
#    Chunks of 4 bytes over 8 ranks would be smaller than a number.
#
# Three answers and their points:
#
# > Through rank 0 it takes 7 + 7 rounds, and 7 S go out of rank 0. The trees take 3 + 3 rounds, and the root sends 3
# > S. Reduce-scatter and all-gather take 7 + 7 rounds, and every rank sends 14 chunks of S/8, which is 1.75 S. 1 GB
# > is limited by bytes, so I take the last. 4 bytes are limited by latency, so I take the trees: 6 rounds against 14.
#
# 3 points: all three.
#
# > The first way needs 14 rounds and rank 0 sends 7 S. The trees need 6 rounds. The last needs 14 rounds with 7/4 S
# > for each rank. For 1 GB I would use the last, because nobody sends more than 7/4 S. For 4 bytes I would use it
# > too, since it sends the fewest bytes.
#
# 1 point: the second. The bytes of the trees are missing in the first, and for 4 bytes the number of rounds decides.
#
# > The tree is the best because it is logarithmic. Reduce and broadcast are slow since rank 0 does everything.
#
# 0 points: no number, and nothing about the size of the buffer.
# ### END SOLUTION
