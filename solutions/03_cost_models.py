# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What will it cost?
#
# A job on 64 GPUs sums 8 KiB of losses and 1 GB of gradients at every step. Is the same algorithm best for both? In how
# many pieces should a buffer be broadcast? Is 11.4 GB/s in a benchmark's table good? How many GPUs does GPT-3 need, if
# only its state has to fit? Each of these is a formula of one line. In this lab you write them, and you do not have to
# trust them: an algorithm is a list of rounds, and rounds can be counted.
#
# Your functions take numbers and return numbers. A check shows a table: what was claimed, whether it holds, why not,
# and the points. It compares with counted schedules and with published numbers. Its score is of the tests that you see;
# hidden tests, with other numbers of ranks and sizes, follow at hand-in. The library has these formulas, too, in
# `ringzero.costs`; a check refuses them.
#
# You need chapter 4 first. After this lab you can
#
# - count the rounds and bytes of a schedule (`count`)
# - compute the size at which two algorithms change places (`crossover`)
# - compute how many ranks a model's state needs (`least_ranks`)
# - choose an algorithm and a stage of ZeRO for a job (`a_plan`)
#
# About 90 minutes. Wherever you see **Guess first**, do: write the number down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters, launch, written

check_parameters()

import time
from collections import Counter
from math import ceil, floor, sqrt

import torch
import torch.distributed as dist

import ringzero
from ringzero.collectives import ALGORITHMS
from ringzero.costs.page import alpha_beta
from ringzero_course.figures import chart, spacetime

# %% [markdown]
# ## A schedule is data
#
# `ALGORITHMS[collective][name](N)` is an algorithm on N ranks as data: `schedule.rounds` are its rounds, one after
# another; a round holds transfers that happen at the same time; a transfer has a `src`, a `dst`, a `chunk`, and
# `reduce`, whether it is added on arrival. The buffer is cut into `schedule.chunks` chunks of one size. Transfers of
# the same round between the same two ranks travel as one message.

# %%
ring = ALGORITHMS["all_reduce"]["ring"](3)
for number, transfers in enumerate(ring.rounds, 1):
    print(number, *(f"{t.src}→{t.dst} {'+' if t.reduce else ' '}chunk {t.chunk}" for t in transfers), sep="   ")

# %%
spacetime(ring)

# %% [markdown]
# ## 1. Count a schedule
#
# A message of S bytes takes α + S·β seconds: α seconds for the message itself, β seconds for each byte. Every rank has
# one link out and one link in. A round is over when its busiest link is: it takes α, and β for every byte on that link.
# So two numbers price a schedule: how many *rounds* it has, and what *share* of the buffer passes the busiest link,
# added up over the rounds. The time is rounds · α + share · S · β.
#
# **Guess first.** The two numbers of the ring above?
#
# <details><summary>Answer</summary>4 rounds, and in each of them a third of the buffer: a share of 4/3.</details>
#
# Write `count`. In each round the busiest link is that of the rank that sends the most chunks, or receives the most.


# %% nbgrader={"grade_id": "count", "solution": true}
def count(schedule):
    """``(rounds, share)``: the number of rounds, and the busiest link's part of the buffer, summed over rounds."""
    ### BEGIN SOLUTION
    share = 0.0
    for transfers in schedule.rounds:
        chunks = Counter()
        for transfer in transfers:
            chunks["out of", transfer.src] += 1
            chunks["into", transfer.dst] += 1
        share += max(chunks.values()) / schedule.chunks
    return len(schedule.rounds), share
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_count", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("count", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.count)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# From here on a cost is such a pair, (rounds, share), and `seconds` makes a time of it. A formula has to give for any N
# what counting gives for one; a cell further down puts them side by side.


# %% nbgrader={"grade_id": "seconds", "locked": true}
def seconds(cost, size, alpha, beta):
    """The time in seconds of a cost ``(rounds, share)`` for a buffer of ``size`` bytes."""
    rounds, share = cost
    return rounds * alpha + share * size * beta


# %% [markdown]
# ## 2. The ring
#
# A ring all-reduce is a reduce-scatter and an all-gather. In each of them every rank sends one chunk, an Nth of the
# buffer, in each of N−1 rounds.
#
# **Guess first.** You will find it printed that each rank of a ring sends 2S(N−1)/S bytes, that the all-gather takes
# one round, and that a message takes α + β·S/B with β = 1/B. Each is wrong. What should it be?
#
# <details><summary>Answer</summary>2S(N−1)/N bytes; N−1 rounds, as many as the reduce-scatter; α + β·S, or α +
# S/B.</details>
#
# Write `ring_cost`.


# %% nbgrader={"grade_id": "ring_cost", "solution": true}
def ring_cost(n):
    """``(rounds, share)`` of a ring all-reduce on ``n`` ranks."""
    ### BEGIN SOLUTION
    return 2 * (n - 1), 2 * (n - 1) / n
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_ring_cost", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("ring_cost", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.ring_cost)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3. A tree
#
# A binomial tree: in every round each rank that has the data sends it on to one that has not, so their number doubles.
# An all-reduce goes up such a tree, adding, and down again. The whole buffer moves in every round.
#
# **Guess first.** For 1,024 ranks: how many rounds is that, and how many does the ring take?
#
# <details><summary>Answer</summary>2 · 10 = 20 rounds. The ring takes 2 · 1,023 = 2,046.</details>
#
# Write `tree_cost`, for any number of ranks.


# %% nbgrader={"grade_id": "tree_cost", "solution": true}
def tree_cost(n):
    """``(rounds, share)`` of a binomial tree all-reduce on ``n`` ranks: a reduce to rank 0, then a broadcast."""
    ### BEGIN SOLUTION
    depth = (n - 1).bit_length()  # log2 of n, rounded up
    return 2 * depth, 2.0 * depth
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_tree_cost", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("tree_cost", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.tree_cost)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4. Recursive doubling
#
# Why go up and down? In round k (from 0) rank r exchanges its whole sum with the rank whose number differs from r in
# bit k, and both add. After log₂ N rounds everyone has everything. This is also called the *butterfly*; look at it and
# you see why.

# %%
spacetime(ALGORITHMS["all_reduce"]["recursive_doubling"](8))

# %% [markdown]
# Where N is no power of two, let P be the largest power of two below N. Each of the N − P ranks beyond it first gives
# its buffer to one of the others, which adds it; these P ranks do the exchange; then those that waited are told the
# result.
#
# Write `doubling_cost`, for any N. `n.bit_length()` may help.


# %% nbgrader={"grade_id": "doubling_cost", "solution": true}
def doubling_cost(n):
    """``(rounds, share)`` of a recursive doubling all-reduce on ``n`` ranks."""
    ### BEGIN SOLUTION
    rounds = n.bit_length() - 1  # log2 of n, rounded down
    if n > 2**rounds:
        rounds += 2
    return rounds, float(rounds)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_doubling_cost", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("doubling_cost", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.doubling_cost)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 5. Recursive halving-doubling
#
# The same partners, but not the whole buffer: a reduce-scatter in which partners exchange *half* of the buffer, then a
# quarter with the next, an eighth, …; then an all-gather, the same backwards. It is also called Rabenseifner's
# algorithm.
#
# **Guess first.** Some texts say that each rank sends 2S·log₂N bytes. Add up S/2 + S/4 + … for 8 ranks. Which algorithm
# that you know sends as much?
#
# <details><summary>Answer</summary>S/2 + S/4 + S/8 = 7/8 S, and as much again on the way back: 1.75 S, as the ring's
# 2S(N−1)/N. 2S·log₂N would be 6 S.</details>
#
# Write `halving_doubling_cost`, for any N; the ranks beyond a power of two are treated as before, with whole buffers.


# %% nbgrader={"grade_id": "halving_doubling_cost", "solution": true}
def halving_doubling_cost(n):
    """``(rounds, share)`` of a recursive halving-doubling all-reduce on ``n`` ranks."""
    ### BEGIN SOLUTION
    steps = n.bit_length() - 1  # log2 of n, rounded down
    core = 2**steps
    rest = 2 if n > core else 0
    return 2 * steps + rest, 2 * (core - 1) / core + rest
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_halving_doubling_cost", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("halving_doubling_cost", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.halving_doubling_cost)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Formula beside count. Where they differ, one of them is wrong.

# %%
FORMULAS = {  # the library's name -> yours
    "ring": "ring_cost",
    "binomial": "tree_cost",
    "recursive_doubling": "doubling_cost",
    "rabenseifner": "halving_doubling_cost",
}
ready = written("count", *FORMULAS.values())
if ready:
    for name, formula in FORMULAS.items():
        for n in (1, 2, 3, 4, 5, 7, 8, 9, 16):
            both = globals()[formula](n), count(ALGORITHMS["all_reduce"][name](n))
            said, counted = ([float(number) for number in pair] for pair in both)
            same = all(abs(a - b) < 1e-9 for a, b in zip(said, counted, strict=True))
            verdict = "the same" if same else f"COUNTED {counted[0]:.0f} rounds, {counted[1]:.4g} S"
            print(f"{formula:22} {n:3} ranks: {said[0]:3.0f} rounds, {said[1]:6.4g} S   {verdict}")

# %% [markdown]
# **Guess first.** On 64 ranks with α = 10 µs and links of 10 GB/s, which of the four is fastest for 8 KiB, and which
# for 1 GB?
#
# <details><summary>Answer</summary>8 KiB: recursive doubling, 6 rounds or 65 µs, where the ring's 126 rounds take 1.3
# ms. 1 GB: halving-doubling with 197.0 ms, hardly before the ring with 198.1: both send 1.97 S.</details>

# %%
figure = None
if ready:
    sizes = [2**k for k in range(10, 31)]
    lines = {name: (sizes, [seconds(globals()[f](64), s, 10e-6, 1e-10) for s in sizes]) for name, f in FORMULAS.items()}
    figure = chart(
        lines, x="buffer, bytes", y="time, s", title="Four all-reduces on 64 ranks, α = 10 µs, 10 GB/s", log="xy"
    )
figure

# %% [markdown]
# ## 6. Where to switch
#
# Two lines in the size. One starts lower (fewer rounds), the other is less steep (a smaller share); somewhere they
# cross. NCCL, MPI and gloo switch there, or where they think it is.
#
# Write `crossover`: the size in bytes at which two costs take the same time, or None if there is no such size above 0,
# since one of them is never worse. Either cost may come first, and α may be 0.


# %% nbgrader={"grade_id": "crossover", "solution": true}
def crossover(first, second, alpha, beta):
    """The size (bytes, above 0) at which the costs ``first`` and ``second`` take equally long, or None."""
    ### BEGIN SOLUTION
    more_rounds, less_share = second[0] - first[0], first[1] - second[1]
    if more_rounds * less_share <= 0:
        return None
    return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_crossover", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("crossover", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.crossover)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Now on your machine. The cell times the library's ring and its recursive doubling on your ranks, fits α and β to each
# line, and asks your `crossover` where the two should cross.
#
# **Guess first.** Whose α is larger? Both send the same kind of messages over the same links.
#
# <details><summary>Answer</summary>By the model they are equal. What the fits say, you see; below is why they may
# differ.</details>


# %%
def measure(algorithm, sizes, repeats=8):
    times = []
    for size in sizes:
        tensor, best = torch.zeros(size // 4), float("inf")
        for _ in range(repeats + 1):  # the first one warms up
            dist.barrier()
            start = time.perf_counter()
            ringzero.all_reduce(tensor, algorithm=algorithm)
            if tensor.is_cuda:
                torch.cuda.synchronize()
            best = min(best, time.perf_counter() - start)
        times.append(best)
    return times


sizes, timed, fitted = [2**k for k in range(12, 23, 2)], {}, {}  # 4 KiB to 4 MiB
if WORLD_SIZE > 2 and written("ring_cost", "doubling_cost", "crossover"):
    for name in ("ring", "recursive_doubling"):
        by_rank = launch(measure, name, sizes, world_size=WORLD_SIZE, device=DEVICE).returns
        timed[name] = [max(times) for times in zip(*by_rank, strict=True)]
    print("    bytes     ring µs   doubling µs")
    for size, a, b in zip(sizes, timed["ring"], timed["recursive_doubling"], strict=True):
        print(f"{size:9} {1e6 * a:11.0f} {1e6 * b:13.0f}   {'ring' if a < b else 'doubling'} is faster")
    costs = {"ring": ring_cost(WORLD_SIZE), "recursive_doubling": doubling_cost(WORLD_SIZE)}
    for name, times in timed.items():
        alpha, beta = alpha_beta.fit_alpha_beta((*costs[name], 0.0), sizes, times)
        print(f"{name}: alpha {1e6 * alpha:.1f} µs, beta {1e9 * beta:.3f} ns a byte", end=", ")
        predicted = crossover(costs["recursive_doubling"], costs["ring"], alpha, beta) if alpha > 0 < beta else None
        print("so they would cross at", f"{float(predicted) / 1024:.0f} KiB" if predicted else "no size")
        fitted[name] = (costs[name][0] * alpha, costs[name][1] * beta)  # seconds at size 0, and for each byte
    if len(fitted) == 2:
        predicted = crossover(fitted["recursive_doubling"], fitted["ring"], 1.0, 1.0)
        print("the two fitted lines cross at", f"{float(predicted) / 1024:.0f} KiB" if predicted else "no size")

# %% [markdown]
# There are three predictions: one from each fit, as if its α and β were those of both, and one from the two lines, each
# with its own. Only the last one knows both columns of the table; compare it with the size at which the table changes
# from one to the other, if it does. If all three were the same, the model would be perfect. On a laptop whose ranks
# share a few cores they are not: the processes also have to be woken, and a β that contains the adding is not the same
# for both. The model tells you in which direction to look and what to measure; the switch itself is set by the
# measurement.

# %% [markdown]
# ## 7. How many pieces?
#
# To broadcast along a chain of N ranks, cut the buffer into K pieces that follow each other: N − 2 + K rounds, each of
# S/K bytes. With few pieces most links wait; with many each piece is hardly worth its α.
#
# **Guess first.** 1 GB on 8 ranks, α = 5 µs, 100 GB/s: 10 pieces, 100 or 10,000?
#
# <details><summary>Answer</summary>100 is nearest: the best is about √(6 · 10 ms / 5 µs), which is 110. With 10 it
# takes 1.4 times as long, with 10,000 5.4 times.</details>
#
# Write `best_chunks`: the whole number K ≥ 1 for which the broadcast is fastest. `n` is at least 2.


# %% nbgrader={"grade_id": "best_chunks", "solution": true}
def best_chunks(n, size, alpha, beta):
    """The number of pieces (a whole number from 1) with which a chain of ``n`` ranks broadcasts fastest."""

    ### BEGIN SOLUTION
    def duration(k):
        return (n - 2 + k) * (alpha + size * beta / k)

    best = sqrt((n - 2) * size * beta / alpha)  # where the derivative in K is 0
    return min(max(1, floor(best)), max(1, ceil(best)), key=duration)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_best_chunks", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("best_chunks", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.best_chunks)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("best_chunks"):
    for chunks in (1, 10, best_chunks(8, 10**9, 5e-6, 1e-11), 1_000, 10_000):
        print(f"{chunks:6} pieces: {1e3 * (6 + chunks) * (5e-6 + 10**9 * 1e-11 / chunks):7.2f} ms")

# %% [markdown]
# ## 8. Read a benchmark
#
# nccl-tests prints a line for each size. This is one of two V100 that talk over PCIe:
#
# ```text
# #       size         count      type   redop    root     time   algbw   busbw
# #        (B)    (elements)                               (us)  (GB/s)  (GB/s)
#     33554432       8388608     float     sum      -1  2943.25   11.40   11.40
# ```
#
# *algbw* is the size over the time. *busbw* is algbw times what crosses each rank's link for each byte of the buffer,
# so that it can be compared with the data sheet whatever N: 2(N−1)/N for an all-reduce, (N−1)/N for a reduce-scatter,
# an all-gather, an all-to-all, a gather and a scatter, 1 for a broadcast and a reduce. A GB is 10⁹ bytes here.
#
# **Guess first.** Why are the two equal in this line, and could they tell you that somebody forgot the factor?
#
# <details><summary>Answer</summary>2(N−1)/N is 1 for N = 2. So they cannot tell: with the factor or without it the line
# is the same.</details>
#
# Write `bandwidths`. `line` is a line like the one above, of which only the first column and the sixth are to be
# believed. `collective` is a name such as `"all_reduce"` or `"reduce_scatter"`.


# %% nbgrader={"grade_id": "bandwidths", "solution": true}
def bandwidths(line, collective, n):
    """``(algbw, busbw)`` in GB/s, from the size and the time in a line of nccl-tests on ``n`` ranks."""
    ### BEGIN SOLUTION
    columns = line.split()
    size, microseconds = float(columns[0]), float(columns[5])
    algbw = size / (microseconds * 1e-6) / 1e9
    if collective == "all_reduce":
        factor = 2 * (n - 1) / n
    elif collective in ("broadcast", "reduce"):
        factor = 1.0
    else:
        factor = (n - 1) / n
    return algbw, algbw * factor
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_bandwidths", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("bandwidths", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.bandwidths)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# PCIe 3.0 with 16 lanes carries 15.75 GB/s one way, and 11.4 is 72 % of it: a number you can judge. On 2 ranks the
# factor of an all-reduce is 1, so a run on 2 GPUs cannot show whether it was applied. Test on 3.

# %% [markdown]
# ## 9. The memory of a plan
#
# Time is one half of a plan, memory the other. Mixed precision with Adam keeps, for each parameter, 2 bytes of the
# parameter in 16 bits, 2 of its gradient, and 12 for the optimizer: the parameter in 32 bits and two moments. ZeRO cuts
# that up among the N ranks of data parallelism: stage 1 the optimizer's part, stage 2 the gradients too, stage 3 the
# parameters too; stage 0 cuts nothing.
#
# **Guess first.** 7.5 billion parameters on 64 GPUs. How many GB on each, at stage 0, and at stage 2?
#
# <details><summary>Answer</summary>16 bytes for each: 120 GB. At stage 2 2 bytes for each and 14/64: 16.6 GB.</details>
#
# Write `state_bytes`. Where N does not divide, do not round. (Activations and buffers come on top; they have a lab of
# their own.)


# %% nbgrader={"grade_id": "state_bytes", "solution": true}
def state_bytes(params, stage, n):
    """Bytes of parameters, gradients and optimizer states on each of ``n`` ranks, at ZeRO's ``stage`` 0 to 3."""
    ### BEGIN SOLUTION
    optimizer = 12 / n if stage >= 1 else 12
    gradients = 2 / n if stage >= 2 else 2
    parameters = 2 / n if stage >= 3 else 2
    return params * (parameters + gradients + optimizer)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_state_bytes", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("state_bytes", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.state_bytes)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 10. Does it fit?
#
# Write `least_ranks`: the smallest number of ranks on which the states fit into `memory` bytes on each, or None if no
# number is enough.
#
# **Guess first.** GPT-3 has 175 billion parameters, an H200 has 141 GB. From how many on does it fit at stage 3? And at
# stage 2?
#
# <details><summary>Answer</summary>At stage 3 from 20 on: 2,800 GB / 141 GB is 19.9. At stage 2 never: 350 GB of
# parameters are on each.</details>


# %% nbgrader={"grade_id": "least_ranks", "solution": true}
def least_ranks(params, stage, memory):
    """The fewest ranks such that ``state_bytes`` is at most ``memory`` bytes, or None if it never is."""
    ### BEGIN SOLUTION
    divided = {0: 0, 1: 12, 2: 14, 3: 16}[stage] * params
    room = memory - (16 * params - divided)  # for this rank's part of what is divided
    if divided == 0:
        return 1 if room >= 0 else None
    return ceil(divided / room) if room > 0 else None
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_least_ranks", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import prices

check = Check("least_ranks", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(prices.least_ranks)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("state_bytes", "least_ranks"):
    for name, params in (("GPT-2", 1.5e9), ("7.5B", 7.5e9), ("GPT-3", 175e9), ("1T", 1e12)):
        enough = [least_ranks(params, stage, 141e9) for stage in range(4)]
        on_each = [f"{state_bytes(params, stage, 64) / 1e9:.4g}" for stage in range(4)]
        print(f"{name:6} fits from {enough} ranks on, stages 0 to 3; on 64 ranks GB a rank: {', '.join(on_each)}")

# %% [markdown]
# ## 11. In your own words
#
# Three to six sentences, with numbers from above. A job trains 7.5 billion parameters on 64 GPUs of 32 GB. At each step
# it sums 15 GB of gradients, and now and then a loss of 8 bytes; take α = 10 µs and links of 10 GB/s. Which stage of
# ZeRO does it need? Which of the four algorithms would you take for each of the two sums, and what would the other
# choice cost? What would you measure before you believe it?

# %% [markdown] nbgrader={"grade_id": "a_plan", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. Stage 2 (16.6 GB) or 3 (1.9 GB). Stage 1 takes 31.4 GB of the 32, which leaves 0.6 GB for activations.
# 2. 15 GB: the ring or halving-doubling, both 1.97 S or 2.95 s, with 126 α = 1.3 ms or 12 α = 0.12 ms on top; recursive
#    doubling would take 6 S = 9 s, the tree 12 S = 18 s. 8 bytes: recursive doubling, 6 α = 60 µs; the ring would take
#    126 α = 1.26 ms.
# 3. Before that, measure both algorithms over sizes on the machine in question, or fit α and β to each: the fits above
#    did not agree, and the switch lies where the measurements cross.
#
# Three answers and their points:
#
# > Stage 1 needs 31.4 GB, which does not fit beside activations in 32 GB, so stage 2 with 16.6 GB. The gradients I
# > sum by halving-doubling: 2.95 s, where recursive doubling needs 9 s. The loss I sum by recursive doubling, 60 µs,
# > where a ring needs 1.26 ms. First I would measure both algorithms at 8 B, 1 MB and 1 GB, because my fit for the
# > small sizes was not the one for the large sizes.
#
# 3 points: all three.
#
# > Stage 1 is enough, because 31.4 GB is less than 32 GB. I would take the ring for the gradients (2.95 s instead of
# > 9 s with recursive doubling) and recursive doubling for the loss (60 µs instead of 1.26 ms). I would measure α and
# > β of both on the cluster first.
#
# 2 points: the second and the third. Stage 1 leaves 0.6 GB for activations.
#
# > ZeRO-3 saves the most memory, so stage 3. The ring is bandwidth-optimal, so the ring for both. I would measure the
# > training time.
#
# 0 points: stage 3 has no number, the ring is wrong for 8 bytes, and the training time says nothing about either sum.
# ### END SOLUTION
