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
# behind, name the cause, and mend the function. At the end there are four jobs of which nothing but files is left, and
# you say which rank is to blame.
#
# The broken programs always run on four ranks of the CPU, so that everyone reads the same report. What you mend is
# checked on your `WORLD_SIZE` and `DEVICE` and on other numbers of ranks, and the checks look at what was sent. A
# program that stops hanging because it stops communicating is not mended. The score under a check is of the tests that
# you see; hidden tests, on other data, follow at hand-in.
#
# You need chapter 14 first. After this lab you can
#
# - read the report of a hang and name its cause (`why_report_hangs`)
# - mend a program without taking its communication out (`ring_all_reduce`)
# - say what a time-out's message does not tell (`what_to_look_at`)
# - find in the dumps of a job that hung which rank is to blame (`culprit`)
#
# About 115 minutes. Wherever you see **Guess first**, do: write it down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters

check_parameters()

import time

from ringzero import RankError, launch
from ringzero_course.figures import timeline

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
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import hangs

answer = Check("why_report_hangs", points=2, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(hangs.why("report", CAUSES))
check = Check("report", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(hangs.report)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "not all enter", "not with these numbers"))
check.hidden_cases()
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
# Write `ring_all_reduce`, a ring for any number of ranks, on which each sends 2(N−1)/N of the buffer as in the broken
# one. `dist.all_reduce` would give the right numbers; it is not what was asked for.


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
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import hangs

answer = Check("why_ring_hangs", points=2, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(hangs.why("ring", CAUSES))
check = Check("ring_all_reduce", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.is_the("all_reduce", hangs.RING)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "wrong peer", "not with these numbers"))
check.hidden_cases()
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
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import hangs

answer = Check("why_training_diverges", points=2, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(hangs.why("training", CAUSES))
check = Check("train", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(hangs.train(batch))
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "sum for mean", "not with these numbers"))
check.hidden_cases()
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
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import hangs

answer = Check("why_models_differ", points=2, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(hangs.why("models", CAUSES))
check = Check("train_with_hooks", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(hangs.train_with_hooks(batch, make_model))
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "wrong tensor", "not with these numbers"))
check.hidden_cases()
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
# disagree; `odd`, the rank that stands alone; `bytes`, how many it brought; `line`, the line that chooses the order,
# counted from 1 at the top of the cell of `broken_sums`.


# %% nbgrader={"grade_id": "why_sums_fail", "solution": true}
def why_sums_fail():
    """``{"cause": ..., "collective": ..., "odd": ..., "bytes": ..., "line": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "different order", "collective": 3, "odd": 1, "bytes": 12, "line": 4}
    ### END SOLUTION


# %% [markdown]
# Write `sum_pieces`: one all-reduce for each piece, in the piece's own type, and no other communication.


# %% nbgrader={"grade_id": "sum_pieces", "solution": true}
def sum_pieces(tensor, sizes):
    """Replace ``tensor`` by the sum over ranks, a piece of ``sizes[i]`` elements at a time."""
    ### BEGIN SOLUTION
    for piece in tensor.split(list(sizes)):
        dist.all_reduce(piece)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_sum_pieces", "grade": true, "points": 5}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import hangs

answer = Check("why_sums_fail", points=2, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(hangs.why("sums", CAUSES))
check = Check("sum_pieces", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(hangs.sum_pieces)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "different order", "not with these numbers"))
check.hidden_cases()
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
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import hangs

check = Check("first_missing", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(hangs.first_missing)
### BEGIN HIDDEN TESTS
check.hidden_cases()
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
# One point for each of these:
#
# 1. Rank 17 is one that *waits*, so it is probably well. The message does not say who is missing.
# 2. Next one compares all ranks' records: the first collective that not all entered, or on which they differ in kind or
#    size, and the lines at which the absent ranks are (their stacks, a flight recorder).
# 3. A longer timeout turns a hang of ten minutes into one of an hour. A barrier is one more collective: under `if rank
#    == 0` it hangs itself; in the wrong order every rank passes every barrier and fails as before; the ring has no
#    all-reduce to put it before; the sum and the wrong tensor pass through unseen. And it costs latency at every call.
#
# Three answers and their points:
#
# > The message says that rank 17 is in all-reduce #4211 and somebody else is not, but not who. I would collect the
# > flight recorder of all 64 ranks and look for the first collective that is not the same everywhere, then for the
# > stack of the ranks that are not in it. An hour of timeout only makes us wait for an hour. Barriers do not mend any
# > of the five: bug 1 hangs in the barrier, bug 2 has no all-reduce, bugs 3 and 4 give wrong numbers and never wait,
# > and bug 5 still pairs different tensors.
#
# 3 points: all three.
#
# > Rank 17 waits for others, so it is not the culprit. One should look at the stacks of the other ranks to find the
# > one that is not in all-reduce #4211. A longer timeout does not help. A barrier helps, because afterwards all ranks
# > are at the same place.
#
# 2 points: the first two. Of the five bugs no one is mended by a barrier.
#
# > Rank 17 is broken. I would take its node out of the job and start it again with a longer timeout.
#
# 0 points: rank 17 is the one that waits.
# ### END SOLUTION

# %% [markdown]
# ## 8. Only dumps
#
# A job on a cluster often leaves nothing but files. With `TORCH_FR_BUFFER_SIZE=2000` in its environment, PyTorch's
# Flight Recorder keeps the last 2,000 operations of each rank. When a collective takes too long, NCCL's watchdog writes
# them into a file for each rank, the rank's *dump*. In this part you have dumps and no program. First you compare dumps
# by a function of your own. Then you let `ringzero explain` read four folders, and find out what it leaves open.
#
# **Guess first.** Rank 2 never calls the all-reduce in which all others wait. Which rank's dump looks healthy?
#
# <details><summary>Answer</summary>That of rank 2: each of its operations has ended. The dumps of the others hold an
# operation that never ended. No dump alone shows the cause: the ranks must be compared.</details>
#
# Here are the dumps of a job of four ranks whose fault is known: one whole entry, and the last four entries of each
# rank in short.

# %%
import pprint

from ringzero_course.lab.subjects import recorded

example = recorded.training(seed=7, world=4, fault="other size")
pprint.pprint(example.dumps[0]["entries"][-1])
for rank, dump in example.dumps.items():
    print(f"rank {rank}")
    for entry in dump["entries"][-4:]:
        print("   ", entry["collective_seq_id"], entry["profiling_name"], entry["input_sizes"], entry["state"])
print("from collective", example.number, "on, ranks", example.ranks, "have the fault:", example.fault)

# %% [markdown]
# `collective_seq_id` numbers the collectives of a process group on each rank, from 1. Equal numbers must be equal
# calls, with the same `profiling_name` and the same `input_sizes`. Two habits of the recorder matter:
#
# - On NCCL a rank does not wait in Python. It goes on and issues the next operations, so behind the operation that was
#   *started* stand others that are *scheduled*. Some ranks run further ahead than others.
# - A full buffer holds a rank's last operations only. The dump of one rank may begin at number 14 and that of another
#   at 18. Numbers 14 to 17 then cannot be compared, because one of the ranks no longer has them. Begin at the first
#   number from which on no dump has lost any. A dump without a single entry has lost none.
#
# The kinds of fault:

# %% nbgrader={"grade_id": "faults", "locked": true}
FAULTS = {
    "never came": "these ranks did not call the collective in which the others wait",
    "something else": "in its place these ranks called another collective",
    "other size": "these ranks called the same collective, with a tensor of another size",
    "no dump": "these ranks left no dump that can be read, so nobody knows where they are",
    "all came": "no rank is to blame: all ranks of the group came, with the same call",
}

# %% [markdown]
# Write `culprit` for `dumps`, a dict `{rank: dump}` with all ranks of a job. Each entry is a collective of the group of
# all ranks. Find the first number at which the ranks differ. There more than half of the ranks made the same call. The
# others are to blame, and all of them have the same fault, one of the first three. Return None if the ranks do not
# differ. A row of the check that fails names its job, so that you can look at the dumps:
# `recorded.training(seed=1, world=4, fault="never came").dumps`.


# %% nbgrader={"grade_id": "culprit", "solution": true}
def culprit(dumps):
    """``(number, ranks, fault)``: the first collective on which ranks differ, who is to blame, and a name of FAULTS."""
    ### BEGIN SOLUTION
    calls = {rank: {} for rank in dumps}  # of each rank, by their numbers
    for rank, dump in dumps.items():
        for entry in dump["entries"]:
            calls[rank][entry["collective_seq_id"]] = (entry["profiling_name"], entry["input_sizes"])
    first = max(min(mine, default=1) for mine in calls.values())
    last = max(max(mine, default=0) for mine in calls.values())
    for number in range(first, last + 1):
        at = {rank: mine.get(number) for rank, mine in calls.items()}
        usual = max(at.values(), key=list(at.values()).count)
        ranks = [rank for rank in at if at[rank] != usual]
        if ranks:
            odd = at[ranks[0]]
            if odd is None:
                return number, ranks, "never came"
            return number, ranks, "other size" if odd[0] == usual[0] else "something else"
    return None
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_culprit", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import hangs

check = Check("culprit", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(hangs.culprit)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Real dumps have more: several groups, messages between two ranks, formats of several versions of torch, files that are
# missing. `ringzero explain FOLDER`, in a terminal, reads them and prints a report. Try it with the first of the four
# folders below. In Python `explain` returns the report; it has a `.sentence`, `.rows()` and a `.figure()`.

# %%
from ringzero.dumps import explain

folders = {name: recorded.folder(name) for name in "abcd"}
print(*folders.values(), sep="\n")
explain([folders["a"]])

# %%
for name in "bcd":
    print(f"---- {name}", explain([folders[name]]), sep="\n", end="\n\n")

# %% [markdown]
# The report names the ranks to look at first. These need not be the ranks to blame: a tool says only what the records
# prove.
#
# - In `b` the dumps are gloo's, which do not name the members of a group. You know more: beside the group of all ranks,
#   each rank of this job is in one other group, and these groups are of one size. An entry's `process_group` is the
#   name of its group and a description. Which ranks used which group?
# - In `c` one rank's dump cannot be read. The dumps of the others tell something about that rank, too. What does an
#   all-reduce that has ended prove about all ranks of its group? What does a broadcast prove?
# - In `d`, what should the ranks at the head of the sentence have done instead?
#
# `recorded.read(folders["b"])` gives the dumps of a folder as a dict `{rank: dump}`, without those that cannot be read.
#
# Answer with a dict: `a`, `b`, `c` and `d`, in each folder the list of the ranks to blame, empty if none is; `a_fault`,
# `b_fault`, `c_fault` and `d_fault`, names from `FAULTS`; `last`, in `c` the `collective_seq_id` of the last collective
# to which the rank without a dump certainly came.


# %% nbgrader={"grade_id": "what_the_dumps_say", "solution": true}
def what_the_dumps_say():
    """``{"a": [...], "a_fault": ..., ..., "d": [...], "d_fault": ..., "last": ...}``"""
    ### BEGIN SOLUTION
    return {
        "a": [32],
        "a_fault": "something else",
        "b": [2],
        "b_fault": "never came",
        "c": [5],
        "c_fault": "no dump",
        "d": [],
        "d_fault": "all came",
        "last": 19,
    }
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_what_the_dumps_say", "grade": true, "points": 2}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import hangs

check = Check("what_the_dumps_say", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(hangs.why("dumps", FAULTS, chosen=("a_fault", "b_fault", "c_fault", "d_fault")))
### BEGIN HIDDEN TESTS
for name, fault in zip("abcd", ("something else", "never came", "no dump", "all came"), strict=True):
    check.that(f"the fault in {name}", check.run(), claims.entry(f"{name}_fault", fault, "not with these ranks"))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# The ranks that time out are rarely those at fault. So collect the dumps of *all* ranks before anybody restarts the
# job, compare them, and look for the rank whose dump looks healthy, or is not there. Where records end, go to that
# rank's process and log: `py-spy dump` shows the line at which it stands, and `ringzero explain --torchrun PID` shows
# it for all ranks of a machine while the job still hangs.
