# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Debug a hang
#
# Four GPUs stand still. Nothing crashed, nothing is printed, and `nvidia-smi` says that they are 100 % busy. Where do
# you look? In this lab you are handed five broken programs, each with a bug that real jobs had. Three stop and leave a
# report, two run to the end with wrong numbers. For each you say what you expect, run it, read what the ranks left
# behind, name the cause, and mend the function.
#
# The broken programs always run on four ranks of the CPU, so that everyone reads the same report. What you mend is
# checked on your `WORLD_SIZE` and `DEVICE` and on other numbers of ranks, and the checks look at what was sent. A
# program that stops hanging because it stops communicating is not mended. The score under a check is of the tests that
# you see; hidden tests, on other data, follow at hand-in.
#
# About 90 minutes. Wherever you see **Guess first**, do: write it down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero.lab import check_parameters

check_parameters()

import time

from ringzero import RankError, launch
from ringzero.figures import timeline

# %% [markdown]
# `examine(program, ...)` runs a program on four ranks. If it ends, you get back what each rank returned and printed,
# and a `trace` of every operation. If it hangs or dies, you get the report.


# %%
def examine(program, *args, ranks=4):
    try:
        return launch(program, *args, world_size=ranks, device="cpu", timeout=10, trace=True)
    except RankError as failure:
        print(failure)
        return None


# %% [markdown]
# The data. Every rank has its own, and the same every time.


# %% nbgrader={"grade_id": "data", "locked": true}
from itertools import pairwise

import torch
import torch.distributed as dist

from ringzero.collectives import chunk_bounds


def numbers(seed, rank, count):
    """Whole numbers from -100 to 100, ``count`` of them."""
    source = torch.Generator("cpu").manual_seed(1000 * seed + rank)
    return torch.randint(-100, 101, (count,), generator=source, device="cpu").to(torch.get_default_device()).float()


def batch(seed, rank, samples):
    """Inputs of shape (samples, 4) and what a model should make of them, shape (samples,)."""
    source = torch.Generator("cpu").manual_seed(1000 * seed + rank)
    with torch.device("cpu"):
        x = torch.randn(samples, 4, generator=source) * torch.tensor([1.0, 0.7, 0.5, 0.3])
        y = x @ torch.tensor([0.2, -1.0, 2.0, 1.5]) + 0.1 * torch.randn(samples, generator=source)
    return x.to(torch.get_default_device()), y.to(torch.get_default_device())


def make_model(seed, hidden):
    """Two layers, with the same parameters on every rank that uses the same seed."""
    torch.manual_seed(seed)
    with torch.device("cpu"):
        model = torch.nn.Sequential(torch.nn.Linear(4, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1))
    return model.to(torch.get_default_device())


# %% [markdown]
# ## How to read a timeline
#
# Nothing is wrong with this program: three rounds of work, each with an all-reduce at its end. In every round one rank
# is late.
#
# **Guess first.** A rank waits in the all-reduce until the last one has come. Whose bar is then the longest, and whose
# the shortest?
#
# <details><summary>Answer</summary>The late one's is the shortest, since nobody keeps it waiting. The longest belongs
# to the rank that came first.</details>


# %%
def three_rounds():
    for late in (2, 0, 3):
        time.sleep(0.06 if dist.get_rank() == late else 0.01)
        dist.all_reduce(torch.ones(1000))


timeline(examine(three_rounds).trace)

# %% [markdown]
# Time runs to the right, a row for each rank, a bar for each operation. The solid part is the time its rank waited.
# Three long bars and a short one: the *short* one belongs to the late rank, the others pay. In a profile of a real job
# the rank with hardly any communication time is the one to look at, and the ranks with much of it are well.
#
# A hang is the same picture with a bar that never ends. Then there is no timeline, and `launch` says in a sentence what
# it would have shown: who waits where, and who is missing.
#
# ## Thirteen causes
#
# You will be asked for the cause of each failure, by a name from this list. More than one often looks right; the
# numbers that are asked for with it tell them apart. The check under a program tells you whether your *numbers* are
# right. Whether they are numbers of the cause you named, you learn when you hand in.

# %% nbgrader={"grade_id": "causes", "locked": true}
CAUSES = {
    "not all enter": "some ranks of the group never call a collective that the others are in",
    "different order": "every rank calls the same collectives, but not in the same order",
    "different sizes": "every rank calls the collective with its own tensor, and these are not of one size",
    "wrong peer": "a message goes to, or is expected from, a rank that has no part in it",
    "all send first": "every rank waits for its send before it starts to receive, so nobody receives",
    "never waited": "an asynchronous operation is started, and its result used before wait()",
    "wrong tensor": "the right operation, on another tensor than the one that was meant",
    "late binding": "functions made in a loop all see the last value of the loop's variable",
    "sum for mean": "what should be averaged over the ranks is only added up",
    "no common start": "the ranks begin with different parameters",
    "same data": "every rank works on the same samples",
    "wrong group": "the operation runs in another process group than the one that was meant",
    "only slow": "nothing is wrong; the call needs more time than it was given",
}

# %% [markdown]
# ## 1. It trains, and hangs at the end
#
# A training run reports how it went. `losses` are one rank's losses, a step each. At every step the mean over the ranks
# is taken; at the end rank 0, which does the printing, reports the last mean and how far the ranks' losses lie from it
# on average. In the test with one GPU it worked.


# %% nbgrader={"grade_id": "broken_report", "locked": true}
def mean_over_ranks(value):
    total = value.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def broken_report(losses):
    """On rank 0 ``(mean of the last loss, mean distance from it)``, on other ranks None."""
    for step in range(len(losses)):
        mean = mean_over_ranks(losses[step])

    if dist.get_rank() == 0:
        distance = mean_over_ranks((losses[-1] - mean).abs())
        return mean.item(), distance.item()
    return None


# %% [markdown]
# **Guess first.** Six steps. Which ranks return, and in which all-reduce, counted from 1, do the others wait?
#
# <details><summary>Answer</summary>The first sentence of the report has both. You will be asked for them.</details>


# %%
def report_of_six_steps():
    return broken_report(numbers(1, dist.get_rank(), 6))


examine(report_of_six_steps)

# %% [markdown]
# The first sentence names the operation and who is missing. Below it each rank's place, the innermost line first. The
# line that waits is in `mean_over_ranks`, and there is nothing wrong with it: at every step it worked. Go outwards.
#
# Answer with a dict: the `cause`; `operation`, the number of the all-reduce; `waiting`, a list of the ranks in it;
# `line`, the line of `broken_report` from which that call was made, counted from 1 at the top of its cell.


# %% nbgrader={"grade_id": "why_report_hangs", "solution": true}
def why_report_hangs():
    """``{"cause": ..., "operation": ..., "waiting": [...], "line": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "not all enter", "operation": 7, "waiting": [0], "line": 13}
    ### END SOLUTION


# %% [markdown]
# Now write `report`, which does what `broken_report` was meant to do. Rank 0 still reports alone. Each rank calls
# `all_reduce` once a step, for that step's mean, and once more, and nothing else. `losses` stay as they are.


# %% nbgrader={"grade_id": "report", "solution": true}
def report(losses):
    """On rank 0 ``(mean of the last loss, mean distance from it)``, on other ranks None."""
    ### BEGIN SOLUTION
    for step in range(len(losses)):
        mean = mean_over_ranks(losses[step])
    distance = mean_over_ranks((losses[-1] - mean).abs())
    return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_report", "grade": true, "points": 5}
import torch

from ringzero.lab import Check, claims, harness, traffic

answer = Check("why_report_hangs", points=2, world_size=WORLD_SIZE, device=DEVICE)
said = answer.run()
operation = claims.sealed("operation", "4fdbfc0a4ea2", "it stands after the # in the report")
waiting = claims.sealed("waiting", "9f01003c7496", "a list of ranks that did not return", ordered=False)
line = claims.sealed("line", "af4e967845aa", "the report has it, one line further out")
answer.that("the cause is one of the list", said, claims.one_of("cause", CAUSES), weight=0)
answer.that("the number of the all-reduce", said, operation)
answer.that("the ranks that wait there", said, waiting)
answer.that("the line the call was made from", said, line)

options = {"built_from": ("all_reduce",), "harness": harness.reduced.noted}  # report(), and what it hands over
check = Check("report", points=3, world_size=WORLD_SIZE, device=DEVICE, **options)
six = check.run(numel=6)


def rank_0_has_mean_and_distance(run):
    last = torch.stack(run.inputs)[:, -1].double()
    right = last.mean().item(), (last - last.mean()).abs().mean().item()
    return claims.numbers(("the mean", "the distance"), run.reports[0].returned, right, 1e-4)


@claims.given(rank_0_has_mean_and_distance)
def the_others_return_nothing(run):
    returned = (report.returned for report in run.reports)
    return next((f"rank {r} returned {x!r}" for r, x in enumerate(returned) if r and x is not None), None)


def each_loss_is_handed_over(run):
    """In each step a rank hands over that step's loss, or an Nth of it; a single rank may hand over nothing."""
    n = run.world_size
    for rank, report in enumerate(run.reports if n > 1 else ()):
        for step, (given, loss) in enumerate(zip(report.given, run.inputs[rank].tolist(), strict=False)):
            if all(abs(given.item() - right) > 1e-4 * abs(right) for right in (loss, loss / n)):
                return f"in step {step} rank {rank} hands {given.item():g} to all_reduce, and its loss is {loss:g}"
    return None


each_step_and_once_more = claims.all_of(
    rank_0_has_mean_and_distance,
    traffic.operations_are(lambda run: (run.numel + 1) * [("all_reduce", run.element_size)]),
    each_loss_is_handed_over,
    claims.nothing_changes,
)
check.that("rank 0 returns the mean of the last loss and the distance", six, rank_0_has_mean_and_distance, weight=2)
check.that("and the other ranks None", six, the_others_return_nothing)
check.that("and every rank calls all_reduce once a step and once more, no more", six, each_step_and_once_more)
others = check.runs(ranks=(1, 3, 5), numel=5)
check.that("the same on 1, 3 and 5 ranks", others, claims.all_of(each_step_and_once_more, the_others_return_nothing))
### BEGIN HIDDEN TESTS
answer.that("the cause", said, claims.entry("cause", "not all enter", "not with these numbers"), weight=3)
several = [*others, *check.runs(ranks=(2, 4, 6), numel=5)]
more = [check.run(numel=1), check.run(numel=3, dtype=torch.float64), check.run(numel=40)]
check.that("1 to 6 ranks", several, rank_0_has_mean_and_distance, weight=2)
check.that("a single step, 40 steps, other kinds of numbers", more, rank_0_has_mean_and_distance)
check.that("as many calls on any number of ranks", [*several, *more], each_step_and_once_more)
check.that("only rank 0 reports", several, the_others_return_nothing)
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# The rule behind it: what communicates must not stand under an `if` that comes out differently on different ranks. It
# hides well, because the call is seldom written there as `dist.all_reduce`. It is a metric, a checkpoint of a sharded
# model, a data loader that lets one rank run out of batches first.

# %% [markdown]
# ## 2. A ring for two
#
# This ring all-reduce went through its test on two ranks. Before that it said `left = rank - 1`, torch complained about
# rank -1, and somebody made the complaint go away.


# %% nbgrader={"grade_id": "broken_ring", "locked": true}
def broken_ring(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    rank, n = dist.get_rank(), dist.get_world_size()
    right = (rank + 1) % n
    left = abs(rank - 1)
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]

    def exchange(leaving, arriving):
        if n == 1:
            return
        together = [dist.P2POp(dist.isend, leaving, right), dist.P2POp(dist.irecv, arriving, left)]
        for work in dist.batch_isend_irecv(together):
            work.wait()

    for step in range(n - 1):
        arriving = chunks[(rank - 2 - step) % n]
        landing = torch.empty_like(arriving)
        exchange(chunks[(rank - 1 - step) % n], landing)
        arriving += landing
    for step in range(n - 1):
        exchange(chunks[(rank - step) % n], chunks[(rank - 1 - step) % n])


# %% [markdown]
# **Guess first.** On four ranks, who receives from whom? Draw it: four dots, an arrow into each.
#
# <details><summary>Answer</summary>In a ring each rank receives from the one before it, and rank 0 from rank 3, so that
# the four arrows make one circle. Whether this program does so, its code will tell.</details>


# %%
def ring_of_twelve():
    tensor = numbers(2, dist.get_rank(), 12)
    broken_ring(tensor)
    return tensor.tolist()


print(examine(ring_of_twelve, ranks=2), end="\n\n")
examine(ring_of_twelve)

# %% [markdown]
# Two ranks wait for each other: how can that be, on a ring of four? Draw the arrows again, this time from the code.
#
# Answer: the `cause`; `cycle`, a list of these two ranks; `sources`, a list: whom ranks 0, 1, 2 and 3 try to receive
# from; `line`, the line you would change, counted from 1 at the top of the cell of `broken_ring`.


# %% nbgrader={"grade_id": "why_ring_hangs", "solution": true}
def why_ring_hangs():
    """``{"cause": ..., "cycle": [...], "sources": [...], "line": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "wrong peer", "cycle": [0, 1], "sources": [1, 0, 1, 2], "line": 5}
    ### END SOLUTION


# %% [markdown]
# Write `ring_all_reduce`, a ring for any number of ranks. `dist.all_reduce` would give the right numbers; it is not
# what was asked for.


# %% nbgrader={"grade_id": "ring_all_reduce", "solution": true}
def ring_all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % n, (rank - 1) % n
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]

    def exchange(leaving, arriving):
        if n == 1:
            return
        together = [dist.P2POp(dist.isend, leaving, right), dist.P2POp(dist.irecv, arriving, left)]
        for work in dist.batch_isend_irecv(together):
            work.wait()

    for step in range(n - 1):
        arriving = chunks[(rank - 2 - step) % n]
        landing = torch.empty_like(arriving)
        exchange(chunks[(rank - 1 - step) % n], landing)
        arriving += landing
    for step in range(n - 1):
        exchange(chunks[(rank - step) % n], chunks[(rank - 1 - step) % n])
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_ring_all_reduce", "grade": true, "points": 5}
import torch

from ringzero.lab import Check, claims, traffic

answer = Check("why_ring_hangs", points=2, world_size=WORLD_SIZE, device=DEVICE)
said = answer.run()
cycle = claims.sealed("cycle", "1327f741b19d", "the report names them; a list", ordered=False)
sources = claims.sealed("sources", "587e6bcc62a9", "work it out for each of four ranks")
line = claims.sealed("line", "7599a046ac41", "not the one that waits: what does it go by?")
answer.that("the cause is one of the list", said, claims.one_of("cause", CAUSES), weight=0)
answer.that("the two that wait for each other", said, cycle)
answer.that("whom each rank tries to receive from", said, sources)
answer.that("the line to change", said, line)

check = Check("ring_all_reduce", points=3, world_size=WORLD_SIZE, device=DEVICE)
even = check.run(numel=120 * WORLD_SIZE)
uneven = check.run(numel=120 * WORLD_SIZE + 3)
everyone_has_the_sum = claims.everyone_has_the_sum
along_the_ring = claims.all_of(everyone_has_the_sum, traffic.neighbours_only)
as_little_as_a_ring = claims.all_of(everyone_has_the_sum, traffic.sends_as_little_as("all_reduce", "ring"))
cannot_deadlock = claims.all_of(everyone_has_the_sum, traffic.cannot_deadlock)

check.that("every rank ends with the sum", [even, uneven], everyone_has_the_sum, weight=2)
check.that("and every message goes to a neighbour on the ring", even, along_the_ring)
check.that("and each rank sends 2(N−1)/N of the buffer", [even, uneven], as_little_as_a_ring)
check.that("and the order of sends and receives cannot deadlock", even, cannot_deadlock)
others = check.runs(ranks=(1, 3, 5), numel=101)
wide = check.run(numel=99, dtype=torch.float64)
ring = claims.all_of(along_the_ring, as_little_as_a_ring)
check.that("the same on 1, 3 and 5 ranks, and with float64", [*others, wide], ring)
### BEGIN HIDDEN TESTS
answer.that("the cause", said, claims.entry("cause", "wrong peer", "not with these numbers"), weight=3)
several = [*others, *check.runs(ranks=(2, 4, 6, 7), numel=101)]
few = [check.run(numel=size) for size in (1, WORLD_SIZE + 1)]
whole = check.run(numel=99, dtype=torch.int64)
more = [*several, *few, whole]
check.that("1 to 7 ranks, fewer elements than ranks, whole numbers", more, everyone_has_the_sum, weight=3)
check.that("a ring of every size", several[1:], along_the_ring)
check.that("and no more bytes than a ring needs", several[1:], as_little_as_a_ring)
check.that("and no deadlock on any of them", several[1:], cannot_deadlock)
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# On a ring of four no two ranks can wait for each other: everyone listens to the left and to nobody else. So one of the
# two listened to a rank that was never going to send to it, and the other waited only because of that. Two ranks are a
# poor test of a ring: left and right are the same rank. Test on three, with a size that three does not divide.

# %% [markdown]
# ## 3. The same learning rate
#
# No report this time. The program fits `x @ w` to `y` by gradient descent, each rank on its own samples, with an
# all-reduce of the gradient at every step: N ranks should take the steps that one process would take on all the samples
# together. The learning rate of 0.25 was found on one GPU.


# %% nbgrader={"grade_id": "broken_train", "locked": true}
def broken_train(seed, samples, lr, steps):
    """``(w, this rank's loss before each step)``; every rank has as many samples as the others."""
    x, y = batch(seed, dist.get_rank(), samples)
    w = torch.zeros(4)
    losses = []
    for _ in range(steps):
        error = x @ w - y
        losses.append(error.square().mean().item())
        gradient = 2 * x.T @ error / samples
        dist.all_reduce(gradient)
        w -= lr * gradient
    return w, losses


# %% [markdown]
# **Guess first.** With four times the samples the gradient is less noisy. Will the loss fall faster, slower, or alike?
#
# <details><summary>Answer</summary>It should fall alike: the mean over four times the samples is nearly the same
# gradient. Compare that with the table.</details>

# %%
alone, four = (examine(broken_train, 5, 16, 0.25, 20, ranks=n) for n in (1, 4))
print("step   1 rank  4 ranks")
for step, (one, another) in enumerate(zip(alone.returns[0][1], four.returns[0][1], strict=True)):
    print(f"{step:4} {one:8.3f} {another:8.3f}")
print("bitwise the same w on all ranks:", all(torch.equal(w, four.returns[0][0]) for w, _ in four.returns))
timeline(four.trace)

# %% [markdown]
# The timeline is as it should be, the ranks agree to the last bit, and the first steps are even better than on one
# rank. When the messages are in order, ask what was in them: compare a single step with what one process makes of all
# the samples.

# %%
x, y = (torch.cat(parts) for parts in zip(*(batch(5, rank, 16) for rank in range(4)), strict=True))
print("one process:", (-0.25 * 2 * x.T @ (x @ torch.zeros(4) - y) / len(x)).tolist())
print("four ranks: ", examine(broken_train, 5, 16, 0.25, 1).returns[0][0].tolist())

# %% [markdown]
# Answer: the `cause`; `worse`, the first step in the table at which the loss of the four ranks is higher than at step
# 0; `times`, how many times as long as it should be a step of the four ranks is.


# %% nbgrader={"grade_id": "why_training_diverges", "solution": true}
def why_training_diverges():
    """``{"cause": ..., "worse": ..., "times": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "sum for mean", "worse": 11, "times": 4}
    ### END SOLUTION


# %% [markdown]
# Write `train`. One all-reduce a step, of the gradient, and nothing else.


# %% nbgrader={"grade_id": "train", "solution": true}
def train(seed, samples, lr, steps):
    """``(w, this rank's loss before each step)``; every rank has as many samples as the others."""
    ### BEGIN SOLUTION
    x, y = batch(seed, dist.get_rank(), samples)
    w = torch.zeros(4)
    losses = []
    for _ in range(steps):
        error = x @ w - y
        losses.append(error.square().mean().item())
        gradient = 2 * x.T @ error / samples
        dist.all_reduce(gradient)
        w -= lr * gradient / dist.get_world_size()
    return w, losses
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train", "grade": true, "points": 5}
import torch

from ringzero.lab import Check, claims, harness, traffic

answer = Check("why_training_diverges", points=2, world_size=WORLD_SIZE, device=DEVICE)
said = answer.run()
hint = "compare the right column with its own first line; steps count from 0"
answer.that("the cause is one of the list", said, claims.one_of("cause", CAUSES), weight=0)
answer.that("the first step that is worse than the start", said, claims.sealed("worse", "c7b2678959b3", hint))
times = claims.sealed("times", "b7e2c0272aa9", "divide one w by the other")
answer.that("how many times too long a step is", said, times)

options = {"built_from": ("all_reduce",), "harness": harness.reduced.noted}  # train(), and what it hands over
check = Check("train", points=3, world_size=WORLD_SIZE, device=DEVICE, **options)
twelve = check.run(seed=7, samples=8, lr=0.2, steps=12)


def of_one_process(run, brought=1):
    """w after all steps, and for each step the loss and the gradient of each rank's part of the samples.

    All-reduces have ``brought`` so many times the sum.
    """
    seed, samples, lr, steps, *_ = run.case.options.values()
    parts = [[t.double() for t in batch(seed, rank, samples)] for rank in range(run.world_size)]
    x, y = (torch.cat(some) for some in zip(*parts, strict=True))
    w, losses, gradients = torch.zeros(4, dtype=torch.float64), [], []
    for _ in range(steps):
        losses.append([(a @ w - b).square().mean().item() for a, b in parts])
        gradients.append([[2 * a.T @ (a @ w - b) / samples] for a, b in parts])
        w = w - brought * lr * 2 * x.T @ (x @ w - y) / len(y)
    return w, losses, gradients


def weights_of_one_process(run):
    for rank, report in enumerate(run.reports):
        if not isinstance(report.returned, (tuple, list)) or len(report.returned) != 2:
            return f"rank {rank} returned {report.returned!r}, not (w, losses)"
    return claims.close("w", [report.returned[0] for report in run.reports], [of_one_process(run)[0]] * run.world_size)


@claims.given(weights_of_one_process)
def the_same_on_all_ranks(run):
    return claims.same("w", [report.returned[0] for report in run.reports])


@claims.given(weights_of_one_process)
def losses_of_its_own(run):
    for rank, report in enumerate(run.reports):
        losses, right = report.returned[1], [of_a_step[rank] for of_a_step in of_one_process(run)[1]]
        if len(losses) != len(right):
            return f"rank {rank} returned {len(losses)} losses in {len(right)} steps"
        for step, (loss, expected) in enumerate(zip(losses, right, strict=True)):
            if (why := claims.number(f"rank {rank}'s loss before step {step}", loss, expected, 1e-3)) is not None:
                return why
    return None


one_gradient_a_step = claims.all_of(
    weights_of_one_process,
    traffic.operations_are(lambda run: run.option("steps") * [("all_reduce", 16)]),
    claims.reduced.is_the_gradient(lambda run: of_one_process(run)[2]),
)


@claims.given(weights_of_one_process)
def made_of_what_comes_back(run):
    twice = [of_one_process(run, brought=2)[0]] * run.world_size
    return claims.close("w", [report.doubled[0] for report in run.reports], twice) and claims.reduced.NOT_USED


check.that("w is that of one process on all the samples", twelve, weights_of_one_process, weight=2)
check.that("and the same on all ranks, to the last bit", twelve, the_same_on_all_ranks)
check.that("each rank returns its own loss before each step", twelve, losses_of_its_own)
check.that("by one all-reduce of its gradient, 16 bytes, a step", twelve, one_gradient_a_step)
others = check.runs(ranks=(1, 3, 5), seed=8, samples=5, lr=0.1, steps=4)
check.that("the same on 1, 3 and 5 ranks", others, claims.all_of(losses_of_its_own, one_gradient_a_step))
again = check.run(seed=9, samples=6, lr=0.05, steps=3, again=True)
check.that("and w is made of what all_reduce brings", again, made_of_what_comes_back)
### BEGIN HIDDEN TESTS
answer.that("the cause", said, claims.entry("cause", "sum for mean", "not with these numbers"), weight=2)
several = check.runs(ranks=(1, 2, 3, 4, 5, 6), seed=lambda n: 20 + n, samples=5, lr=0.1, steps=8)
several += check.runs(ranks=(2,), seed=31, samples=5, lr=0.1, steps=30)
check.that("1 to 6 ranks, other samples", several, weights_of_one_process, weight=2)
check.that("their losses", several, losses_of_its_own)
check.that("alike on any number of ranks", several, the_same_on_all_ranks)
check.that("no other communication", several, one_gradient_a_step)
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# The classic symptom is a learning rate that must be divided by the number of GPUs. With Adam, which divides the
# gradient by its own size, the factor all but cancels, and nobody notices until gradients are clipped.

# %% [markdown]
# ## 4. Four models
#
# Now a real backward pass. A hook on each parameter averages its gradient while backward is still busy with the layer
# before. It once used `register_hook`, and was moved to the newer `register_post_accumulate_grad_hook`.


# %% nbgrader={"grade_id": "broken_hooks", "locked": true}
def broken_hooks(seed, samples, hidden, lr, steps):
    """All parameters after training, in one tensor."""
    n = dist.get_world_size()
    model = make_model(seed, hidden)

    def average(gradient):
        dist.all_reduce(gradient)
        gradient /= n

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(average)

    x, y = batch(seed, dist.get_rank(), samples)
    for _ in range(steps):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= lr * parameter.grad
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


# %% [markdown]
# **Guess first.** If some rank's gradient were left out of the average, which would you see first: a wrong loss, a
# hang, or models that differ?
#
# <details><summary>Answer</summary>Models that differ, after the first step. Nothing hangs, and each of the losses
# falls.</details>

# %%
for steps in range(4):
    ranks = examine(broken_hooks, 5, 16, 5, 0.1, steps)
    gaps = [(parameters - ranks.returns[0]).abs().max().item() for parameters in ranks.returns]
    print(f"after {steps} steps the ranks differ from rank 0 by", [f"{gap:.3f}" for gap in gaps])
print("rank 0 summed", [(op.kind, op.bytes) for op in ranks.trace if op.rank == 0])
timeline(ranks.trace)

# %% [markdown]
# They start alike and are four different models after one step. Yet the trace is what a right program would leave: an
# all-reduce for each parameter and step, of the right size, the last layer first. A trace says how much went where, not
# what it was. So look inside: copy the program, let the hook print, and `examine` your copy.
#
# Answer: the `cause`; `bytes_a_step`, the bytes that a rank passes to `all_reduce` in one step; `given`, the type of
# what the hook is given, as `type(gradient).__name__` prints it.


# %% nbgrader={"grade_id": "why_models_differ", "solution": true}
def why_models_differ():
    """``{"cause": ..., "bytes_a_step": ..., "given": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "wrong tensor", "bytes_a_step": 124, "given": "Parameter"}
    ### END SOLUTION


# %% [markdown]
# Write `train_with_hooks`. Each gradient is still averaged by a hook of its own, one all-reduce for each parameter and
# step, while backward runs.


# %% nbgrader={"grade_id": "train_with_hooks", "solution": true}
def train_with_hooks(seed, samples, hidden, lr, steps):
    """All parameters after training, in one tensor."""
    ### BEGIN SOLUTION
    n = dist.get_world_size()
    model = make_model(seed, hidden)

    def average(parameter):
        dist.all_reduce(parameter.grad)
        parameter.grad /= n

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(average)

    x, y = batch(seed, dist.get_rank(), samples)
    for _ in range(steps):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= lr * parameter.grad
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train_with_hooks", "grade": true, "points": 5}
import torch

from ringzero.lab import Check, claims, harness, traffic

answer = Check("why_models_differ", points=2, world_size=WORLD_SIZE, device=DEVICE)
said = answer.run()
in_one_step = claims.sealed("bytes_a_step", "bec2e68a64fc", "rank 0's line is of three steps; add up one")
given = claims.sealed("given", "b32d85d0d671", "let the hook print type(gradient).__name__")
answer.that("the cause is one of the list", said, claims.one_of("cause", CAUSES), weight=0)
answer.that("the bytes in one step", said, in_one_step)
answer.that("what the hook is given", said, given)

# On each rank the harness calls train_with_hooks(), and notes what it hands over and how far backward is then.
options = {"built_from": ("all_reduce",), "harness": harness.reduced.noted}
check = Check("train_with_hooks", points=3, world_size=WORLD_SIZE, device=DEVICE, **options)
five_steps = check.run(seed=3, samples=8, hidden=5, lr=0.1, steps=5)


def model_of_one_process(run, brought=1):
    """All its parameters, in one tensor, where all-reduces have ``brought`` so many times the sum."""
    seed, samples, hidden, lr, steps, *_ = run.case.options.values()
    parts = [batch(seed, rank, samples) for rank in range(run.world_size)]
    x, y = (torch.cat(some) for some in zip(*parts, strict=True))
    model = make_model(seed, hidden)
    optimizer = torch.optim.SGD(model.parameters(), brought * lr)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def parameters_of_one_process(run):
    expected = [model_of_one_process(run)] * run.world_size
    why = claims.close("the model", [report.returned for report in run.reports], expected)
    return why and (claims.reduced.steps_added_up(gradients_of_the_parts)(run) or why)


def gradients_of_the_parts(run):
    """For each step, of one process, the gradients of each rank's part of the samples."""
    seed, samples, hidden, lr, steps, *_ = run.case.options.values()
    parts = [batch(seed, rank, samples) for rank in range(run.world_size)]
    everything = tuple(torch.cat(some) for some in zip(*parts, strict=True))
    model, found = make_model(seed, hidden), []
    parameters = list(model.parameters())
    for _ in range(steps):
        *of_parts, of_all = (
            torch.autograd.grad(torch.nn.functional.mse_loss(model(x).squeeze(1), y), parameters)
            for x, y in (*parts, everything)
        )
        found.append([[gradient.cpu() for gradient in some] for some in of_parts])
        with torch.no_grad():
            for parameter, gradient in zip(parameters, of_all, strict=True):
                parameter -= lr * gradient
    return found


def sizes(run):
    """Bytes of the parameters, in the model's order."""
    hidden = run.option("hidden")
    return [4 * numel for numel in (4 * hidden, hidden, hidden, 1)]


@claims.given(parameters_of_one_process)
def the_same_on_all_ranks(run):
    return claims.same("the model", [report.returned for report in run.reports])


@claims.given(parameters_of_one_process)
def made_of_what_comes_back(run):
    twice = [model_of_one_process(run, brought=2)] * run.world_size
    return claims.close("", [report.doubled for report in run.reports], twice) and claims.reduced.NOT_USED


one_for_each_parameter = claims.all_of(
    parameters_of_one_process,
    traffic.operations_are(lambda run: run.option("steps") * [("all_reduce", size) for size in sizes(run)]),
    claims.reduced.is_the_gradient(gradients_of_the_parts),
)
while_backward_runs = claims.all_of(one_for_each_parameter, claims.reduced.leaves_while_backward_runs(2, messages=4))
check.that("the model is that of one process on all the samples", five_steps, parameters_of_one_process, weight=2)
check.that("and the same on all ranks, to the last bit", five_steps, the_same_on_all_ranks)
check.that("by an all-reduce for each parameter's gradient and step, no more", five_steps, one_for_each_parameter)
check.that(
    "while backward runs: the last layer's leave before the first layer is done", five_steps, while_backward_runs
)
others = check.runs(ranks=(1, 3, 5), seed=4, samples=6, hidden=7, lr=0.1, steps=2)
check.that("the same on 1, 3 and 5 ranks, with another model", others, while_backward_runs)
again = check.run(seed=6, samples=5, hidden=6, lr=0.05, steps=2, again=True)
check.that("and the model is made of what all_reduce brings", again, made_of_what_comes_back)
### BEGIN HIDDEN TESTS
answer.that("the cause", said, claims.entry("cause", "wrong tensor", "not with these numbers"), weight=2)
grows = {"seed": lambda n: 10 + n, "samples": lambda n: 6 + n, "hidden": lambda n: 3 + n, "lr": 0.2, "steps": 4}
several = check.runs(ranks=(1, 2, 3, 4, 5, 6), **grows)
several += check.runs(ranks=(2,), **{**grows, "steps": 12})
check.that("1 to 6 ranks, other models", several, parameters_of_one_process, weight=2)
check.that("alike on any number of ranks", several, the_same_on_all_ranks)
check.that("no other communication", several, one_for_each_parameter)
check.that("during backward", several, while_backward_runs)
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# The newer hook is given the parameter; its gradient is in `.grad`. That the parameters were averaged hid it: at every
# step the models are pulled together again, so they never drift far, and the loss falls. One line finds it in any job:
# compare a checksum of the parameters over the ranks after the first step.

# %% [markdown]
# ## 5. The largest first
#
# The pieces of a gradient are summed over the ranks one by one. An optimisation: the pieces with the largest values
# matter most, so they go first.


# %% nbgrader={"grade_id": "broken_sums", "locked": true}
def broken_sums(tensor, sizes):
    """Replace ``tensor`` by the sum over ranks, a piece of ``sizes[i]`` elements at a time."""
    pieces = tensor.split(list(sizes))
    largest_first = sorted(pieces, key=lambda piece: piece.abs().max().item(), reverse=True)
    for piece in largest_first:
        dist.all_reduce(piece)


# %% [markdown]
# **Guess first.** Every rank sums all pieces, in a loop that is the same on every rank. What could go wrong?
#
# <details><summary>Answer</summary>The loop is the same. Whether it runs over the same things in the same order is
# another question.</details>


# %%
def sums(seed, sizes):
    tensor = numbers(seed, dist.get_rank(), sum(sizes))
    broken_sums(tensor, sizes)
    return tensor.tolist()


examine(sums, 2462, (6, 2, 4, 3))

# %% [markdown]
# The ranks disagree, and two all-reduces went well before that. With other sizes gloo notices that a message is too
# long for its place, and ends the rank. Now pieces of one size:

# %%
print(examine(sums, 3, (3, 3, 3)), end="\n\n")
print("the sums are", sum(numbers(3, rank, 9) for rank in range(4)).tolist())

# %% [markdown]
# No report at all, and the ranks end with different numbers.
#
# Answer for the first run, the one with the report: the `cause`; `collective`, the number of the one on which the ranks
# disagree; `odd`, the rank that stands alone; `bytes`, how many it brought; `line`, the line you would change, counted
# from 1 at the top of the cell of `broken_sums`.


# %% nbgrader={"grade_id": "why_sums_fail", "solution": true}
def why_sums_fail():
    """``{"cause": ..., "collective": ..., "odd": ..., "bytes": ..., "line": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "different order", "collective": 3, "odd": 1, "bytes": 12, "line": 4}
    ### END SOLUTION


# %% [markdown]
# Write `sum_pieces`: one all-reduce for each piece, and no other communication.


# %% nbgrader={"grade_id": "sum_pieces", "solution": true}
def sum_pieces(tensor, sizes):
    """Replace ``tensor`` by the sum over ranks, a piece of ``sizes[i]`` elements at a time."""
    ### BEGIN SOLUTION
    for piece in tensor.split(list(sizes)):
        dist.all_reduce(piece)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_sum_pieces", "grade": true, "points": 5}
import torch

from ringzero.lab import Check, claims, traffic

answer = Check("why_sums_fail", points=2, world_size=WORLD_SIZE, device=DEVICE)
said = answer.run()
collective = claims.sealed("collective", "d1d6c9ce4bbb", "it stands after the # in the report")
brought = claims.sealed("bytes", "7d33b1941cfc", "the report has them, for each party")
line = claims.sealed("line", "ea8d6120a91a", "not the one that waits: what does it go by?")
answer.that("the cause is one of the list", said, claims.one_of("cause", CAUSES), weight=0)
answer.that("the number of the collective", said, collective)
answer.that("the rank that stands alone", said, claims.sealed("odd", "0dcc7d323a07", "the report names two parties"))
answer.that("the bytes it brought", said, brought)
answer.that("the line to change", said, line)

check = Check("sum_pieces", points=3, world_size=WORLD_SIZE, device=DEVICE, built_from=("all_reduce",))
uneven = check.run(numel=15, sizes=(6, 2, 4, 3))
alike = check.run(numel=12, sizes=(3, 3, 3, 3))
one_for_each_piece = claims.all_of(
    claims.everyone_has_the_sum,
    traffic.operations_are(lambda run: [("all_reduce", run.element_size * size) for size in run.option("sizes")]),
)
check.that("every piece is summed, where sizes differ", uneven, claims.everyone_has_the_sum, weight=2)
check.that("and where they do not", alike, claims.everyone_has_the_sum, weight=2)
check.that("by one all-reduce for each piece, no more", [uneven, alike], one_for_each_piece)
others = check.runs(ranks=(1, 3, 5), numel=21, sizes=(1, 9, 4, 7))
wide = check.run(numel=20, sizes=(5, 5, 5, 5), dtype=torch.float64)
check.that("the same on 1, 3 and 5 ranks, and with float64", [*others, wide], one_for_each_piece)
### BEGIN HIDDEN TESTS
answer.that("the cause", said, claims.entry("cause", "different order", "not with these numbers"), weight=4)
several = [*others, *check.runs(ranks=(2, 4, 6), numel=21, sizes=(1, 9, 4, 7))]
many = check.run(numel=60, sizes=(1, 2) * 20)
doubles = check.run(numel=20, sizes=(3, 5, 5, 7), dtype=torch.float64)
check.that("1 to 6 ranks", several, claims.everyone_has_the_sum, weight=2)
check.that("many pieces, other kinds of numbers", [many, doubles], claims.everyone_has_the_sum, weight=2)
check.that("the pieces one by one", [*several, many], one_for_each_piece)
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# A collective has no name and no address: the k-th call of a rank meets the k-th call of every other, whatever tensor
# it brings. So what a rank knows alone must not choose the order: its values, its clock, the layout of a `set`, which
# gradient happened to be ready first. PyTorch's DDP goes by a fixed order of buckets; when it forms them anew after the
# first step, rank 0 broadcasts its order to the others.

# %% [markdown]
# ## 6. Write the report
#
# On 64 GPUs nobody reads timelines by eye. Every rank leaves a list of what it called, and a short program looks for
# the first call that not all of them made; this is how the dumps of PyTorch's flight recorder are read. Write it for
# all-reduces. `trace` is a list of operations as in `examine(...).trace`, those of all ranks together; of each
# operation `op` you need `op.rank` and `op.kind`. A rank that called nothing is not in it. The trace stays as it is.


# %% nbgrader={"grade_id": "first_missing", "solution": true}
def first_missing(trace, world_size):
    """``(number, ranks)`` of the first all_reduce, from 1, that not all ranks called: who did not. None if all did."""
    ### BEGIN SOLUTION
    calls = [0] * world_size
    for op in trace:
        calls[op.rank] += op.kind == "all_reduce"
    fewest = min(calls)
    if fewest == max(calls):
        return None
    return fewest + 1, [rank for rank in range(world_size) if calls[rank] == fewest]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_first_missing", "grade": true, "points": 2}
from ringzero.lab import Check, claims, harness
from ringzero.record.operation import Operation

check = Check("first_missing", points=2, world_size=WORLD_SIZE, device=DEVICE, **harness.paper.PLAIN)


def trace_of(calls, others=("send", "recv")):
    """Rank r makes ``calls[r]`` all_reduces, and some other calls between them."""
    return [
        Operation(kind, rank, start=turn + rank / 8, bytes=4, line="cell 1 line 1")
        for turn in range(max(calls))
        for rank in range(len(calls))
        for kind in (*others[: (rank + turn) % 3], *["all_reduce"] * (turn < calls[rank]))
    ]


def says(expected):
    def claim(run):
        got = run.returned[0]
        got = (got[0], sorted(got[1])) if isinstance(got, (tuple, list)) else got
        return None if got == expected else f"returned {run.returned[0]!r}, expected {expected}"

    return claim


one = check.run(trace_of([7, 6, 6, 6]), 4)
check.that("rank 0 alone in its seventh: all_reduce 7, ranks 1, 2, 3", one, says((7, [1, 2, 3])))
check.that("None when all called alike", check.run(trace_of([3, 3, 3]), 3), says(None))
absent = check.run(trace_of([2, 2, 0, 2, 2], others=()), 5)
check.that("rank 2 of five called nothing, so it is not in the trace: all_reduce 1, rank 2", absent, says((1, [2])))
uneven = check.run(trace_of([2, 3, 1]), 3)
check.that("three ranks, each in another call: the first that was missed", uneven, says((2, [2])))
check.that("a single rank misses nothing", check.run(trace_of([2]), 1), says(None))
### BEGIN HIDDEN TESTS
never = check.run(trace_of([2, 0, 0, 2], others=()), 4)
apart = check.run(trace_of([5, 3, 9, 3]), 4)
many = check.run(trace_of([40] * 17 + [39] + [40] * 46), 64)
others = [
    check.run(trace_of([3, 2, 3], others=kinds), 3)
    for kinds in (("broadcast", "barrier"), ("all_gather", "reduce"), ("reduce_scatter", "all_to_all"))
]
check.that("other collectives do not count", others, says((3, [1])))
by_rank = check.run(sorted(trace_of([5, 2, 4]), key=lambda op: op.rank), 3)
check.that("two ranks that called nothing", never, says((1, [1, 2])))
check.that("the first, where ranks are far apart", apart, says((4, [1, 3])), weight=2)
check.that("one rank's operations after another's", by_rank, says((3, [1])))
check.that("one rank of 64", many, says((40, [17])))
check.that("nobody called anything", check.run(trace_of([0, 0, 0]), 3), says(None))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7. In your own words
#
# A job on 64 GPUs has stood still for ten minutes. Then NCCL's watchdog says that rank 17 timed out in all-reduce
# #4211. A colleague wants to raise the timeout to an hour and to put `dist.barrier()` before every all-reduce. Three to
# six sentences: what does the message tell you, and what does it not? What would you look at next? And what would each
# of the two proposals do to the five bugs above?

# %% [markdown] nbgrader={"grade_id": "what_to_look_at", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# A full answer says (one point each): rank 17 is one that *waits*, so it is probably well; the message does not say who
# is missing. Next one compares all ranks' records: the first collective that not all entered, or on which they differ
# in kind or size, and the lines at which the absent ranks are (their stacks, a flight recorder). A longer timeout turns
# a hang of ten minutes into one of an hour. A barrier is one more collective: under `if rank == 0` it hangs itself; in
# the wrong order every rank passes every barrier and fails as before; the ring has no all-reduce to put it before; the
# sum and the wrong tensor pass through unseen. And it costs latency at every call.
# ### END SOLUTION
