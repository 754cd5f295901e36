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
# About 90 minutes. Wherever you see **Guess first**, do: write the number down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero.lab import check_parameters, launch, written

check_parameters()

import time
from collections import Counter
from math import ceil, floor, sqrt

import torch
import torch.distributed as dist

import ringzero
from ringzero.collectives import ALGORITHMS, Round, Schedule
from ringzero.costs import alpha_beta
from ringzero.figures import chart, spacetime

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
from ringzero.collectives import ALGORITHMS, Round, Schedule
from ringzero.lab import Check, claims, harness

check = Check("count", points=3, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)


def gives(rounds, share):
    return claims.gives(("rounds", "share"), lambda schedule: (rounds, share))


as_in_the_closed_form = claims.gives(
    ("rounds", "share"), lambda s: claims.formulas.rounds_and_share(s.collective, s.name)(s.world_size)
)
ring_of_3 = check.run(ALGORITHMS["all_reduce"]["ring"](3))
flat = check.run(ALGORITHMS["broadcast"]["flat"](5))
halving = check.run(ALGORITHMS["all_reduce"]["rabenseifner"](8))
check.that("the ring on 3 ranks: 4 rounds, 4/3 of the buffer", ring_of_3, gives(4, 4 / 3))
check.that("a broadcast one by one on 5 ranks: 4 rounds, 4 buffers", flat, gives(4, 4.0))
check.that("halving-doubling on 8 ranks: several chunks in a message", halving, as_in_the_closed_form)
gathered = Round(src=[1, 2, 3], dst=[0, 0, 0], chunk=[1, 2, 3], reduce=False)  # rank 0 only receives,
handed_out = Round(src=[2, 2, 2], dst=[1, 3, 4], chunk=[1, 2, 3], reduce=False)  # and here it does nothing
busy = check.run(Schedule("broadcast", "two rounds", 5, 4, (gathered, handed_out)))
check.that("the busiest link is one into a rank, then one out of another: 3/4 twice", busy, gives(2, 1.5))
alone = check.run(ALGORITHMS["all_reduce"]["ring"](1))
check.that("a single rank: no rounds, and nothing sent", alone, gives(0, 0.0))
### BEGIN HIDDEN TESTS
uneven = Round(src=[0, 0, 0, 2], dst=[1, 1, 1, 3], chunk=[0, 1, 2, 3], reduce=True)
into_one = Round(src=[0, 2], dst=[1, 1], chunk=[0, 1], reduce=True)
out_of_one = Round(src=[1, 1, 1, 1], dst=[0, 2, 3, 0], chunk=[0, 1, 2, 3], reduce=False)
by_hand = check.run(Schedule("all_reduce", "by hand", 4, 4, (uneven, into_one, out_of_one)))
names = ("ring", "flat", "binomial", "recursive_doubling", "rabenseifner", "bruck", "parameter_server")
every = [check.run(ALGORITHMS["all_reduce"][name](n)) for name in names for n in (1, 2, 3, 6)]
twice = Round(src=[0, 0], dst=[1, 2], chunk=[0, 0], reduce=False)  # one chunk to two ranks
once_each = check.run(Schedule("broadcast", "one chunk to two", 4, 4, (twice, Round([2], [0], [0], False))))
far = Round(src=[0, 40, 40], dst=[1, 38, 39], chunk=[0, 1, 2], reduce=False)
of_many = check.run(Schedule("broadcast", "far away", 41, 4, (far, Round([37, 39], [40, 40], [1, 2], False))))
check.that("the busiest rank is the last of 41", of_many, gives(2, 0.5 + 0.5))
check.that("rounds in which links carry different loads", by_hand, gives(3, 0.75 + 0.5 + 1.0), weight=2)
check.that("a chunk that goes to two ranks in one round is sent twice", once_each, gives(2, 0.5 + 0.25))
check.that("seven all-reduces on 1, 2, 3 and 6 ranks", every, as_in_the_closed_form, weight=2)
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
from ringzero.lab import Check, claims, harness

check = Check("ring_cost", points=2, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)
as_a_ring = claims.gives(("rounds", "share"), claims.formulas.rounds_and_share("all_reduce", "ring"))

check.that("2 ranks", check.run(2), as_a_ring)
check.that("4 ranks", check.run(4), as_a_ring)
check.that("1, 3, 5, 9 and 1,000 ranks", [check.run(n) for n in (1, 3, 5, 9, 1000)], as_a_ring)
### BEGIN HIDDEN TESTS
check.that("6 to 30, 64 and 4099 ranks", [check.run(n) for n in (*range(6, 31), 64, 4099)], as_a_ring, weight=2)
check.that("a million ranks", check.run(1_000_003), as_a_ring)
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
from ringzero.lab import Check, claims, harness

check = Check("tree_cost", points=2, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)
as_a_tree = claims.gives(("rounds", "share"), claims.formulas.rounds_and_share("all_reduce", "binomial"))

check.that("2 and 8 ranks", [check.run(2), check.run(8)], as_a_tree)
check.that("6 ranks: a tree with a few leaves missing is as deep", check.run(6), as_a_tree)
check.that("1, 3, 5, 9 and 1,000 ranks", [check.run(n) for n in (1, 3, 5, 9, 1000)], as_a_tree)
### BEGIN HIDDEN TESTS
others = [check.run(n) for n in (*range(7, 34), 64, 65, 1024, 1025, 2**49 + 1)]
check.that("7 to 33 ranks, and around large powers of two", others, as_a_tree, weight=2)
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
from ringzero.lab import Check, claims, harness

check = Check("doubling_cost", points=3, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)
as_doubling = claims.gives(("rounds", "share"), claims.formulas.rounds_and_share("all_reduce", "recursive_doubling"))

check.that("2 and 8 ranks", [check.run(2), check.run(8)], as_doubling)
check.that("6 ranks: a round before and a round after", check.run(6), as_doubling)
check.that("1, 3, 5, 9 and 1,000 ranks", [check.run(n) for n in (1, 3, 5, 9, 1000)], as_doubling)
### BEGIN HIDDEN TESTS
check.that("4, 16 and 1024 ranks", [check.run(n) for n in (4, 16, 1024)], as_doubling)
check.that("a few less than a large power of two", check.run(2**60 - 100), as_doubling)
check.that("7, 9 to 15, 63, 65 and 1025 ranks", [check.run(n) for n in (7, *range(9, 16), 63, 65, 1025)], as_doubling)
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
from ringzero.lab import Check, claims, harness

check = Check("halving_doubling_cost", points=3, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)
as_halving = claims.gives(("rounds", "share"), claims.formulas.rounds_and_share("all_reduce", "rabenseifner"))

check.that("2 and 8 ranks", [check.run(2), check.run(8)], as_halving)
check.that("6 ranks", check.run(6), as_halving)
check.that("1, 3, 5, 9 and 1,000 ranks", [check.run(n) for n in (1, 3, 5, 9, 1000)], as_halving)
### BEGIN HIDDEN TESTS
check.that("4, 16 and 1024 ranks", [check.run(n) for n in (4, 16, 1024)], as_halving)
check.that("a few less than a large power of two", check.run(2**60 - 100), as_halving)
check.that("7, 9 to 15, 63, 65 and 1025 ranks", [check.run(n) for n in (7, *range(9, 16), 63, 65, 1025)], as_halving)
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
            said, counted = globals()[formula](n), count(ALGORITHMS["all_reduce"][name](n))
            same = all(abs(a - b) < 1e-9 for a, b in zip(said, counted, strict=True))
            verdict = "the same" if same else f"COUNTED {counted[0]} rounds, {counted[1]:.4g} S"
            print(f"{formula:22} {n:3} ranks: {said[0]:3} rounds, {said[1]:6.4g} S   {verdict}")

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
from ringzero.lab import Check, harness
from ringzero.lab.claims.formulas import both_take_the_same_time, there_is_none

check = Check("crossover", points=3, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)
eight = check.run((3, 3.0), (14, 1.75), 10e-6, 1e-10)
turned = check.run((14, 1.75), (3, 3.0), 10e-6, 1e-10)
never = check.run((14, 1.75), (6, 1.75), 10e-6, 1e-10)
check.that("recursive doubling and the ring on 8 ranks", eight, both_take_the_same_time)
check.that("and the other way round", turned, both_take_the_same_time)
check.that("the ring and halving-doubling on 8 ranks do not cross", never, there_is_none)
worse = check.run((6, 2.0), (12, 12.0), 10e-6, 1e-9)
check.that("nor do two of which one has fewer rounds and sends less", worse, there_is_none)
at_0 = check.run((3, 3.0), (14, 1.75), 0.0, 1e-10)
check.that("nor do any two where a message itself takes no time: they meet at 0 bytes", at_0, there_is_none)
### BEGIN HIDDEN TESTS
others = [
    check.run((126, 1.96875), (12, 12.0), 3e-6, 4e-11),
    check.run((6, 6.0), (12, 1.96875), 50e-6, 1e-9),
    check.run((2, 2.0), (4, 1.5), 1e-6, 1e-12),
    check.run((2, 1.0), (2_000_000, 0.5), 1e-3, 1e-13),  # beyond all that is ever sent
    check.run((2, 9.0), (3, 1.0), 1e-9, 1e-7),  # below a byte
]
never_either = [
    check.run((12, 12.0), (6, 2.0), 10e-6, 1e-9),  # worse in both
    check.run((6, 2.0), (6, 3.0), 10e-6, 1e-9),  # as many rounds
    check.run((6, 2.0), (6, 2.0), 10e-6, 1e-9),
]
check.that("other pairs, latencies and bandwidths", others, both_take_the_same_time, weight=2)
check.that("None wherever one is never worse", never_either, there_is_none, weight=2)
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
        print("so they would cross at", f"{predicted / 1024:.0f} KiB" if predicted else "no size")
        fitted[name] = (costs[name][0] * alpha, costs[name][1] * beta)  # seconds at size 0, and for each byte
    if len(fitted) == 2:
        predicted = crossover(fitted["recursive_doubling"], fitted["ring"], 1.0, 1.0)
        print("the two fitted lines cross at", f"{predicted / 1024:.0f} KiB" if predicted else "no size")

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
from ringzero.lab import Check, harness
from ringzero.lab.claims.formulas import no_other_number_of_pieces_is_faster as nothing_is_faster

check = Check("best_chunks", points=3, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)
check.that("1 GB on 8 ranks", check.run(8, 10**9, 5e-6, 1e-11), nothing_is_faster)
check.that("1 kB on 8 ranks", check.run(8, 1_000, 5e-6, 1e-11), nothing_is_faster)
check.that("2 ranks: nobody passes anything on", check.run(2, 10**9, 5e-6, 1e-11), nothing_is_faster)
check.that("3 ranks, 21 bytes of 0.1 s each, α = 1 s", check.run(3, 21, 1.0, 0.1), nothing_is_faster)
### BEGIN HIDDEN TESTS
others = [check.run(n, size, 10e-6, 1e-10) for n in (3, 4, 5, 64) for size in (3_000_000, 10_500_000, 64_000_000)]
long = [check.run(n, 10**11, 1e-6, 1e-11) for n in (1_000, 20_000)]  # K = 31,591 and 141,407
few = [check.run(n, size, 1.0, 1.0) for n in (3, 4, 6) for size in (1, 2, 5, 7)]  # where rounding decides
check.that("3, 4, 5 and 64 ranks, three sizes", others, nothing_is_faster, weight=2)
check.that("100 GB on many ranks: very many pieces", long, nothing_is_faster)
check.that("an empty buffer", check.run(64, 0, 10e-6, 1e-10), nothing_is_faster)
check.that("where one piece more or less is easily told", few, nothing_is_faster)
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
from ringzero.costs import alpha_beta
from ringzero.lab import Check, claims, harness

check = Check("bandwidths", points=3, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)
NAMES = ("algbw", "busbw")


def by_definition(line, collective, n):
    size, elapsed = float(line.split()[0]), 1e-6 * float(line.split()[5])
    both = alpha_beta.algorithm_bandwidth(size, elapsed), alpha_beta.bus_bandwidth(collective, n, size, elapsed)
    return [bandwidth / 1e9 for bandwidth in both]


as_printed = claims.gives(NAMES, lambda line, *_: [float(column) for column in line.split()[-2:]], 0.005 / 11.4)
as_nccl_tests_defines_them = claims.gives(NAMES, by_definition)
V100 = "    33554432       8388608     float     sum      -1  2943.25   11.40   11.40"
EMPTY = "    33554432       8388608     float     sum      -1  2943.25       ?       ?"
check.that("the line above, to two decimals", check.run(V100, "all_reduce", 2), as_printed)
check.that("had it been 8 ranks", check.run(EMPTY, "all_reduce", 8), as_nccl_tests_defines_them)
check.that("or an all-gather on 8 ranks", check.run(EMPTY, "all_gather", 8), as_nccl_tests_defines_them)
rooted = [check.run(EMPTY, kind, 3) for kind in ("broadcast", "reduce")]
check.that("or a broadcast or a reduce on 3 ranks", rooted, as_nccl_tests_defines_them)
### BEGIN HIDDEN TESTS
OTHER = "1048576 524288 half none 0 57.5 0 0"
kinds = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "gather", "scatter", "broadcast", "reduce")
every = [check.run(OTHER, kind, n) for kind in kinds for n in (2, 3, 16, 1024)]
LONGER = "  2097152  524288  float  sum  -1  123.4  0  0  0  99.5  0  0  0"  # in place too, as nccl-tests prints it
more = [check.run(LONGER, kind, n) for kind in ("all_reduce", "all_gather", "reduce") for n in (1, 5)]
check.that("eight collectives on 2, 3, 16 and 1024 ranks", every, as_nccl_tests_defines_them, weight=3)
check.that("a line with more columns, on 1 rank and on 5", more, as_nccl_tests_defines_them)
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
from ringzero.lab import Check, claims, harness

check = Check("state_bytes", points=3, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)
# GB by stage and ranks, of 7.5e9 parameters; Rajbhandari et al., "ZeRO", 2020, figure 1.
PUBLISHED = {(0, 64): 120, (1, 64): 31.4, (2, 64): 16.6, (3, 64): 1.9}


def as_published(run):
    params, stage, n = run.case.args
    gb = PUBLISHED[stage, n]
    what, expected = f"stage {stage}: the memory in bytes", gb * 1e9 * params / 7.5e9
    return claims.number(what, run.returned[0], expected, tolerance=0.05 / max(gb, 1.0))  # one decimal is printed


stages = [check.run(7_500_000_000, stage, 64) for stage in range(4)]
check.that("120 GB without ZeRO", stages[0], as_published)
check.that("31.4 GB at stage 1, 16.6 at stage 2", stages[1:3], as_published)
check.that("1.9 GB at stage 3", stages[3], as_published)
five = claims.gives(
    "the memory in bytes", lambda params, stage, n: params * ({1: 6.4, 2: 4.8, 3: 3.2}[stage] if n == 5 else 16)
)
on_five = [check.run(1_001, stage, n) for stage in (1, 2, 3) for n in (1, 5)]
check.that("1,001 parameters on 1 rank and on 5, not rounded", on_five, five)
### BEGIN HIDDEN TESTS
PUBLISHED |= {(1, 16): 35.6, (2, 16): 21.6, (3, 16): 7.5, (1, 1024): 30.1, (2, 1024): 15.1, (3, 1024): 0.12}  # table 1
BY_HEAD = {0: 16, 1: 5.2, 2: 3.4, 3: 1.6}  # bytes a parameter on ten ranks
exactly = claims.gives("the memory in bytes", lambda params, stage, n: params * (BY_HEAD[stage] if n == 10 else 16))
thousand = [check.run(1_000, stage, 10) for stage in range(4)]
alone = [check.run(1_000, stage, 1) for stage in range(4)]
in_table_1 = [check.run(7_500_000_000, *case) for case in PUBLISHED if case[1] != 64]
check.that("each stage, to the byte", thousand, exactly, weight=2)
check.that("on 16 and 1024 GPUs as in the paper's first table", in_table_1, as_published)
check.that("on one rank no stage saves anything", alone, exactly)
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
from ringzero.lab import Check, harness

check = Check("least_ranks", points=3, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)


def it_takes(*expected):
    def claim(run):
        got, stage = run.returned[0], run.case.args[1]
        if type(got) is type(expected[stage]) and got == expected[stage]:
            return None
        right = f", expected {expected[stage]}" if expected[stage] else ", and no number of ranks is enough"
        return f"stage {stage}: returned {got!r}{right}"

    return claim


gpt_3 = [check.run(175_000_000_000, stage, 141_000_000_000) for stage in range(4)]  # 2.8 TB in all
check.that("GPT-3 on GPUs of 141 GB, at stages 0, 1 and 2", gpt_3[:3], it_takes(None, None, None, 20))
check.that("and at stage 3", gpt_3[3], it_takes(None, None, None, 20))
in_1_gb = check.run(175_000_000_000, 3, 1_000_000_000)
check.that("and at stage 3 in 1 GB each", in_1_gb, it_takes(None, None, None, 2_800))
### BEGIN HIDDEN TESTS
huge = check.run(10**15, 3, 5 * 10**9)
check.that("ten to the 15 parameters in 5 GB each", huge, it_takes(None, None, None, 3_200_000))
larger = [check.run(7_500_000_000, stage, 34_000_000_000) for stage in range(4)]
just = [check.run(2_000_000_000, stage, 32_000_000_000) for stage in range(4)]  # 32 GB to the byte
nearly = check.run(1_000_000_005, 3, 2_285_714_297)  # on 7 ranks a seventh of a byte is too much
full = [check.run(8_000_000_000, stage, 32_000_000_000) for stage in (0, 1)]  # what stage 1 leaves whole fills it
check.that("7.5 billion parameters in 34 GB", larger, it_takes(None, 23, 6, 4), weight=2)
check.that("a model that just fits on one", just, it_takes(1, 1, 1, 1))
check.that("a part of a byte too much is too much", nearly, it_takes(None, None, None, 8))
check.that("no room for any part, however small", full, it_takes(None, None))
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
# A full answer says (one point each): the states take 31.4 GB at stage 1, which leaves 0.6 GB of 32 for activations, so
# stage 2 (16.6 GB) or 3 (1.9 GB); for 15 GB the ring or halving-doubling, both 1.97 S or 2.95 s, with 126 α = 1.3 ms or
# 12 α = 0.12 ms on top, where recursive doubling would take 6 S = 9 s and the tree 12 S = 18 s; for 8 bytes recursive
# doubling, 6 α = 60 µs, where the ring would take 126 α = 1.26 ms; before that, measure both algorithms over sizes on
# the machine in question (or fit α and β to each), since the fits above did not agree, and the switch lies where the
# measurements cross.
# ### END SOLUTION
