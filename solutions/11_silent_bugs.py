# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Silent bugs
#
# A hang tells you that something is wrong. The eight programs in this lab tell you nothing: they end, their loss falls,
# and they train another model than they should. Each has a bug that people reported from real jobs. For each you guess,
# measure, name the cause, and mend the program.
#
# One rule decides what is right: **N ranks must train as one process does on all their samples.** The checks compare
# parameters with those of one process, in float64, where only mistakes differ, on 1 to 5 ranks. They look at the result
# and not at how you got there: any collective may be used. What you mend is checked on your `WORLD_SIZE` and `DEVICE`
# too; the broken programs run on the CPU, so that everyone sees the same numbers. The score under a check is of the
# tests that you see; hidden tests, on other data, follow at hand-in.
#
# You need chapter 6c first. After this lab you can
#
# - name the cause of a bug that a falling loss hides (`why_tokens_count_unlike`)
# - mend it so that N ranks train as one process does (`train_with_schedule`)
# - say which cheap check finds which bug (`what_a_loss_proves`)
#
# About 120 to 180 minutes. Wherever you see **Guess first**, do: write it down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters

check_parameters()

# %% [markdown]
# The tools. A program gets a model and *this rank's* batches, and trains the model in place. `trained` runs it on as
# many ranks as there are lists of batches. `joined` makes one list of them all, for one process.

# %% nbgrader={"grade_id": "tools", "locked": true}
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from ringzero import launch


def numbers(seed, *shape):
    """Random numbers in float64, the same in every process."""
    return torch.randn(shape, generator=torch.Generator("cpu").manual_seed(seed), dtype=torch.float64, device="cpu")


def make_model(*widths):
    """Two layers in float64, the same on every rank."""
    model = nn.Sequential(nn.Linear(*widths[:2]), nn.Tanh(), nn.Linear(*widths[1:])).double()
    for i, parameter in enumerate(model.parameters()):
        parameter.data.copy_(numbers(i, *parameter.shape) / 2)
    return model


def batches_of(rank, steps, samples):
    """``steps`` times (x, y), where y can be learnt from x."""
    xs = [numbers(100 * rank + step, samples, 4) for step in range(steps)]
    return [(x, x[:, :1].sin() + x[:, 1:2]) for x in xs]


def average_gradients(model):
    """Replace each gradient by its mean over the ranks."""
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def parameters_of(*modules):
    return torch.cat([p.detach().flatten() for module in modules for p in module.parameters()])


def trained(program, make, parts, *options):
    """Rank r trains with ``parts[r]``. What each rank returned, and each rank's parameters afterwards."""

    def on_rank():
        model = make()
        returned = program(model, parts[dist.get_rank()], *options)
        return returned, parameters_of(model)

    ranks = launch(on_rank, world_size=len(parts), device="cpu")
    return [returned for returned, _ in ranks.returns], [parameters for _, parameters in ranks.returns]


def joined(parts):
    """The batches of one process: in each step the samples of all ranks."""
    return [[tuple(torch.cat(tensors) for tensors in zip(*step, strict=True)) for step in zip(*parts, strict=True)]]


def losses_over_ranks(of_ranks):
    """The mean over the ranks, step by step, as text."""
    return " ".join(f"{sum(step) / len(step):.2f}" for step in zip(*of_ranks, strict=True))


# %% [markdown]
# ## Twelve causes
#
# You will be asked for a cause by a name from this list, and for one or two numbers. The check under a program tells
# you whether your *numbers* are right. Whether the cause is, you learn when you hand in.

# %% nbgrader={"grade_id": "causes", "locked": true}
CAUSES = {
    "orders of their own": "each rank puts the same things in an order of its own, and then takes its part",
    "mean of means": "each rank takes a mean, over more things or fewer, and all these means count alike",
    "wrong divisor": "a sum of fewer things is divided by the number of a full set",
    "same draws": "random numbers that should differ between the ranks are the same on all",
    "no way back": "what came from other ranks is a constant for autograd, so a part of the gradient is missing",
    "once for each rank": "something is done N times in a step that should be done once",
    "alone in deciding": "a rank goes by what it alone has seen, and the others do something else",
    "outside the wrapper": "what averages the gradients does not know of some parameters",
    "sum for mean": "what should be averaged over the ranks is only added up",
    "clipped too early": "each rank clips its own gradient, and the clipped ones are averaged",
    "never zeroed": "gradients of earlier steps are still in the sum",
    "averaged too late": "gradients are averaged after the optimizer has used them",
}

# %% [markdown]
# ## 1. Every sample once
#
# An epoch goes over all samples once, in a random order, and each rank takes its part. `count` is a multiple of the
# number of ranks.


# %% nbgrader={"grade_id": "broken_order", "locked": true}
def broken_order(count, seed, epoch):
    """The samples that this rank takes in this epoch, a list of numbers below ``count``."""
    rank, n = dist.get_rank(), dist.get_world_size()
    source = torch.Generator("cpu").manual_seed(seed + rank)
    order = torch.randperm(count, generator=source, device="cpu").tolist()
    return order[rank::n]


# %% [markdown]
# **Guess first.** Four ranks, 24 samples, so 6 for each rank. How many of the 24 does nobody take?
#
# <details><summary>Answer</summary>Each rank leaves out 18 of 24 at random. All four leave out a sample with
# probability (3/4)⁴, which is about a third: eight samples or so.</details>


# %%
def epochs_of_training(order, epochs=3):
    """The loss over all samples after each epoch, and this rank's samples of each epoch."""
    model, (whole,) = make_model(4, 6, 1), batches_of(9, 1, 24)
    optimizer, lists, losses = torch.optim.SGD(model.parameters(), 0.2), [], []
    for epoch in range(epochs):
        lists.append(order(24, 6, epoch))
        for some in zip(lists[-1][::2], lists[-1][1::2], strict=True):
            optimizer.zero_grad()
            x, y = (tensor[list(some)] for tensor in whole)
            functional.mse_loss(model(x), y).backward()
            average_gradients(model)
            optimizer.step()
        losses.append(functional.mse_loss(model(whole[0]), whole[1]).item())
    return losses, lists


ranks = launch(epochs_of_training, broken_order, world_size=4, device="cpu").returns
print("loss after each epoch:", " ".join(f"{loss:.3f}" for loss in ranks[0][0]))
for rank, (_, lists) in enumerate(ranks):
    print(f"rank {rank} takes in epoch 0", lists[0], "and in epoch 1", lists[1])

# %% [markdown]
# The loss falls, as it would with a third of the samples. There is a second bug in the same line; look at both epochs.
#
# Answer for epoch 0: the `cause`; `never`, how many samples no rank takes; and find the sample that the most ranks
# take: `most`, how many ranks take it. A short cell of your own counts faster than you do.


# %% nbgrader={"grade_id": "why_samples_are_missing", "solution": true}
def why_samples_are_missing():
    """``{"cause": ..., "never": ..., "most": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "orders of their own", "never": 8, "most": 3}
    ### END SOLUTION


# %% [markdown]
# Write `epoch_order`. Each sample is taken once in an epoch, by one rank; all ranks take equally many. Each epoch has
# another order, and so has each seed. The same seed and epoch give the same order again, so that a job can go on
# where it stopped, whatever random numbers were drawn before.


# %% nbgrader={"grade_id": "epoch_order", "solution": true}
def epoch_order(count, seed, epoch):
    """The samples that this rank takes in this epoch, a list of numbers below ``count``."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    source = torch.Generator("cpu").manual_seed(1000 * seed + epoch)
    order = torch.randperm(count, generator=source, device="cpu").tolist()
    return order[rank::n]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_epoch_order", "grade": true, "points": 3}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

answer = Check("why_samples_are_missing", points=1, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(silent.why("orders", CAUSES))
check = Check("epoch_order", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.epoch_order)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "orders of their own", "not with these numbers"))
check.hidden_cases()
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# In torch this is `DistributedSampler`, which takes care of the first bug and leaves the second to you: without
# `set_epoch` [every epoch has one order](https://github.com/pytorch/pytorch/issues/31771).

# %% [markdown]
# ## 2. Sentences of different lengths
#
# A batch has sentences of different lengths. Where a sentence has ended, the label is -100, and `cross_entropy` leaves
# the place out of its mean.


# %% nbgrader={"grade_id": "broken_tokens", "locked": true}
def broken_tokens(model, batches, lr):
    """Train on (x, labels), with a step for each batch, by gradient descent; return this rank's losses."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, labels in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x).flatten(0, 1), labels.flatten(), ignore_index=-100)
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
# **Guess first.** The model should learn from every token alike. Does it?
#
# <details><summary>Answer</summary>The four means count alike, however many tokens are in them. A token on a rank that
# has few of them counts for more.</details>


# %%
def sentences(rank, counts):
    """For each count a batch with so many tokens."""
    parts = []
    for step, count in enumerate(counts):
        x = numbers(100 * rank + step, 4, 8, 4)
        labels = x[..., :3].argmax(-1).flatten()
        labels[count:] = -100
        parts.append((x, labels.reshape(4, 8)))
    return parts


TOKENS = [[9, 20, 7, 12, 30, 8], [3, 11, 5, 30, 2, 9], [12, 4, 6, 20, 8, 31], [24, 3, 32, 7, 5, 2]]
parts = [sentences(rank, counts) for rank, counts in enumerate(TOKENS)]
losses, parameters = trained(broken_tokens, lambda: make_model(4, 6, 3), parts, 0.5)
_, (alone,) = trained(broken_tokens, lambda: make_model(4, 6, 3), joined(parts), 0.5)
print("tokens in step 0, rank by rank:", [counts[0] for counts in TOKENS])
print("loss:", losses_over_ranks(losses))
print("the ranks differ from each other by", max((p - parameters[0]).abs().max().item() for p in parameters))
print(f"and from one process on all tokens by {(parameters[0] - alone).abs().max():.3f}")

# %% [markdown]
# The ranks agree to the last bit, so comparing them finds nothing.
#
# Answer for step 0: the `cause`; `heavy`, how many times as much as it should a token of rank 1 counts; `light`, the
# same for a token of rank 3.


# %% nbgrader={"grade_id": "why_tokens_count_unlike", "solution": true}
def why_tokens_count_unlike():
    """``{"cause": ..., "heavy": ..., "light": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "mean of means", "heavy": 4, "light": 0.5}
    ### END SOLUTION


# %% [markdown]
# Write `train_on_tokens`. In some steps a rank has no token at all; its part of the loss is then zero, and not the mean
# of nothing. The check looks at the model alone; which losses you return is up to you.


# %% nbgrader={"grade_id": "train_on_tokens", "solution": true}
def train_on_tokens(model, batches, lr):
    """Train on (x, labels), with a step for each batch, by gradient descent; return this rank's losses."""
    ### BEGIN SOLUTION
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, labels in batches:
        optimizer.zero_grad()
        tokens = (labels != -100).sum()
        dist.all_reduce(tokens)
        total = functional.cross_entropy(model(x).flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
        loss = total * dist.get_world_size() / tokens  # average_gradients divides by N
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train_on_tokens", "grade": true, "points": 4}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

answer = Check("why_tokens_count_unlike", points=1, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(silent.why("tokens", CAUSES))
check = Check("train_on_tokens", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.train_on_tokens)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "mean of means", "not with these numbers"))
check.hidden_cases()
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# The same arithmetic goes wrong over the micro-batches of one GPU. In October 2024 most training libraries found that
# they had it: (x₁/n₁) + (x₂/n₂) is not (x₁+x₂)/(n₁+n₂), as
# [torchtune](https://github.com/meta-pytorch/torchtune/pull/1875) put it. It had been
# [reported](https://github.com/huggingface/transformers/issues/24725) more than a year before.

# %% [markdown]
# ## 3. The rest of the batches
#
# A batch that does not fit is computed in micro-batches: their gradients add up, and every `window` micro-batches there
# is a step. What is left at the end makes a smaller window. All micro-batches have equally many samples, and all ranks
# have equally many micro-batches.


# %% nbgrader={"grade_id": "broken_windows", "locked": true}
def broken_windows(model, batches, window, lr):
    """Train with a step for each ``window`` batches, by gradient descent; return the length of each step."""
    optimizer, lengths = torch.optim.SGD(model.parameters(), lr), []
    for i, (x, y) in enumerate(batches):
        loss = functional.mse_loss(model(x), y) / window
        loss.backward()
        if (i + 1) % window == 0 or i + 1 == len(batches):
            before = parameters_of(model)
            average_gradients(model)
            optimizer.step()
            optimizer.zero_grad()
            lengths.append((parameters_of(model) - before).norm().item())
    return lengths


# %% [markdown]
# **Guess first.** Ten micro-batches, windows of four. Which step is wrong, and is it too long or too short?
#
# <details><summary>Answer</summary>The third has two micro-batches, and their sum is divided by four.</details>

# %%
parts = [batches_of(rank, 10, 8) for rank in range(4)]


def lengths_and_losses(model, batches, window, lr):
    def loss():
        return sum(functional.mse_loss(model(x), y).item() for x, y in batches) / len(batches)

    before = loss()
    return broken_windows(model, batches, window, lr), [before, loss()]


returned, _ = trained(lengths_and_losses, lambda: make_model(4, 6, 1), parts, 4, 0.2)
print("loss before and after:", losses_over_ranks([losses for _, losses in returned]))
print("lengths of the steps:", " ".join(f"{length:.6f}" for length in returned[0][0]))


def last_two_in_their_own_window(model, batches, lr):
    broken_windows(model, batches[:8], 4, lr)
    return broken_windows(model, batches[8:], 2, lr)


returned, _ = trained(last_two_in_their_own_window, lambda: make_model(4, 6, 1), parts, 0.2)
print("the last step, if its two batches are a window of two:", f"{returned[0][0]:.6f}")

# %% [markdown]
# Answer: the `cause`; `steps`, how many steps the optimizer takes; `times`, how long the last step is, divided by how
# long it should be.


# %% nbgrader={"grade_id": "why_the_last_step_is_wrong", "solution": true}
def why_the_last_step_is_wrong():
    """``{"cause": ..., "steps": ..., "times": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "wrong divisor", "steps": 3, "times": 0.5}
    ### END SOLUTION


# %% [markdown]
# Write `train_in_windows`. The check looks at the model alone.


# %% nbgrader={"grade_id": "train_in_windows", "solution": true}
def train_in_windows(model, batches, window, lr):
    """Train with a step for each ``window`` batches, and one for what is left, by gradient descent."""
    ### BEGIN SOLUTION
    optimizer = torch.optim.SGD(model.parameters(), lr)
    for start in range(0, len(batches), window):
        some = batches[start : start + window]
        optimizer.zero_grad()
        for x, y in some:
            (functional.mse_loss(model(x), y) / len(some)).backward()
        average_gradients(model)
        optimizer.step()
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train_in_windows", "grade": true, "points": 3}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

answer = Check("why_the_last_step_is_wrong", points=1, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(silent.why("windows", CAUSES))
check = Check("train_in_windows", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.train_in_windows)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "wrong divisor", "not with these numbers"))
check.hidden_cases()
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# This bug needs no second rank. It was in the Trainer of `transformers`
# [until 2025](https://github.com/huggingface/transformers/pull/39659), once in every epoch.

# %% [markdown]
# ## 4. One seed for all
#
# All ranks need the same parameters, so all get the same seed before the model is made. The model has dropout.


# %% nbgrader={"grade_id": "broken_dropout", "locked": true}
def broken_dropout(make, batches, seed, lr):
    """Make a model by ``make()`` and train it, with a step for each batch; return ``(model, losses)``."""
    torch.manual_seed(seed)
    model = make()
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return model, losses


# %% [markdown]
# **Guess first.** Dropout switches off half of 12 units, for each sample others. On four ranks, how many samples share
# what is switched off?
#
# <details><summary>Answer</summary>The first samples of the four ranks share it, the second samples do, and so on: four
# ranks average over as many different sub-networks as one rank does.</details>


# %%
def units_kept(program):
    """Losses, and for each step which of the 12 units the first sample keeps."""
    kept = []

    def make():
        model = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Dropout(0.5), nn.Linear(12, 1)).double()
        model[2].register_forward_hook(
            lambda _module, _inputs, output: kept.append("".join("x" if unit else "." for unit in output[0]))
        )
        return model

    _, losses = program(make, batches_of(dist.get_rank(), 6, 8), 5, 0.1)
    return losses, kept


ranks = launch(units_kept, broken_dropout, world_size=4, device="cpu").returns
print("loss:", losses_over_ranks([losses for losses, _ in ranks]))
for rank, (_, kept) in enumerate(ranks):
    print(f"rank {rank} keeps", "  ".join(kept[:4]))

# %% [markdown]
# Answer: the `cause`; `patterns`, how many different patterns there are among the sixteen.


# %% nbgrader={"grade_id": "why_dropout_is_weak", "solution": true}
def why_dropout_is_weak():
    """``{"cause": ..., "patterns": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "same draws", "patterns": 4}
    ### END SOLUTION


# %% [markdown]
# Write `train_with_dropout`. All ranks begin with one model; each switches off units of its own, in each step others;
# and the same seed gives the same run again. The check knows what was switched off, and compares the model with that of
# one process in which the same units are.


# %% nbgrader={"grade_id": "train_with_dropout", "solution": true}
def train_with_dropout(make, batches, seed, lr):
    """Make a model by ``make()`` and train it, with a step for each batch; return ``(model, losses)``."""
    ### BEGIN SOLUTION
    torch.manual_seed(seed)
    model = make()
    torch.manual_seed(1000 * seed + dist.get_rank())
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return model, losses
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train_with_dropout", "grade": true, "points": 3}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

answer = Check("why_dropout_is_weak", points=1, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(silent.why("dropout", CAUSES))
check = Check("train_with_dropout", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.train_with_dropout)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "same draws", "not with these numbers"))
check.hidden_cases()
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# The [report](https://github.com/huggingface/transformers/issues/31412) says that models came out clearly worse. The
# same bug is in augmentation. Many training scripts therefore seed with `seed + rank` before they make the model. They
# may, because DDP broadcasts rank 0's parameters.

# %% [markdown]
# ## 5. Pairs from all ranks
#
# A contrastive loss wants pictures and captions that belong together to be near each other, and all others far apart.
# More pairs are a better measure, so each rank gathers the pairs of all. `all_gather` gives plain numbers, which
# autograd knows nothing of; so the rank puts its own tensor back in its place.


# %% nbgrader={"grade_id": "broken_pairs", "locked": true}
def pair_loss(a, b):
    """``a[i]`` and ``b[i]`` belong together."""
    logits = functional.normalize(a, dim=1) @ functional.normalize(b, dim=1).T / 0.2
    right = torch.arange(len(a), device=a.device)
    return (functional.cross_entropy(logits, right) + functional.cross_entropy(logits.T, right)) / 2


def gather(own):
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own.detach())
    parts[dist.get_rank()] = own
    return torch.cat(parts)


def broken_pairs(model, batches, lr):
    """Train on pairs (a, b), with a step for each batch, by gradient descent; return the losses."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for a, b in batches:
        optimizer.zero_grad()
        loss = pair_loss(gather(model(a)), gather(model(b)))
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
# **Guess first.** The loss is computed from all pairs, and it is the same on all ranks. Is its gradient, after it was
# averaged, the gradient of one process?
#
# <details><summary>Answer</summary>A rank has the gradient through its own pairs. The whole gradient is the *sum* of
# these over the ranks, and average_gradients takes their mean.</details>


# %%
def pairs_of(rank, steps, count):
    xs = [numbers(100 * rank + step, count, 4) for step in range(steps)]
    return [(x, x + 0.3 * numbers(5000 + 100 * rank + step, count, 4)) for step, x in enumerate(xs)]


parts = [pairs_of(rank, 10, 12) for rank in range(4)]
for some in (joined(parts), parts):
    losses, _ = trained(broken_pairs, lambda: make_model(4, 6, 3), some, 0.2)
    _, (after, *_) = trained(broken_pairs, lambda: make_model(4, 6, 3), [part[:1] for part in some], 0.2)
    length = (after - parameters_of(make_model(4, 6, 3))).norm()
    print(f"{len(some)} ranks, the same pairs: loss {losses_over_ranks(losses)}; length of the first step {length:.5f}")

# %% [markdown]
# The first loss is right to the last digit. Then it falls, only more slowly, as it does with many other causes.
#
# Answer: the `cause`; `four`, how long a step of four ranks is, divided by how long it should be; `eight`, the same for
# eight ranks.


# %% nbgrader={"grade_id": "why_pairs_learn_slowly", "solution": true}
def why_pairs_learn_slowly():
    """``{"cause": ..., "four": ..., "eight": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "no way back", "four": 0.25, "eight": 0.125}
    ### END SOLUTION


# %% [markdown]
# Write `train_on_pairs`. All ranks have equally many pairs. You may use `pair_loss`, and `gather` or another one.


# %% nbgrader={"grade_id": "train_on_pairs", "solution": true}
def train_on_pairs(model, batches, lr):
    """Train on pairs (a, b), with a step for each batch, by gradient descent; return the losses."""
    ### BEGIN SOLUTION
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for a, b in batches:
        optimizer.zero_grad()
        loss = pair_loss(gather(model(a)), gather(model(b)))
        (loss * dist.get_world_size()).backward()  # each rank has a part of the gradient: their sum, not their mean
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train_on_pairs", "grade": true, "points": 4}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

answer = Check("why_pairs_learn_slowly", points=1, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(silent.why("pairs", CAUSES))
check = Check("train_on_pairs", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.train_on_pairs)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "no way back", "not with these numbers"))
check.hidden_cases()
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# The [discussion in open_clip](https://github.com/mlfoundations/open_clip/issues/616) compares both kinds of gather.
# `torch.distributed.nn.functional.all_gather` sends gradients back to where the numbers came from; new versions of
# torch warn and name the function that takes its place. Adam divides a gradient by its own size, so with Adam the
# factor hardly shows.

# %% [markdown]
# ## 6. The schedule
#
# The learning rate goes up over `warmup` steps and then down to zero at step `total`. The schedule was made for one
# GPU. Four see four times as many samples in a step, so it is to advance faster, somebody thought.


# %% nbgrader={"grade_id": "broken_schedule", "locked": true}
def broken_schedule(model, batches, lr, warmup, total):
    """Train with a step for each of ``total`` batches, by gradient descent; return ``(losses, learning rates)``."""

    def up_and_down(step):
        return min(step / warmup, max(0.0, (total - step) / (total - warmup)))

    optimizer = torch.optim.SGD(model.parameters(), lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, up_and_down)
    losses, rates = [], []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        losses.append(loss.item())
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        for _ in range(dist.get_world_size()):
            schedule.step()
    return losses, rates


# %% [markdown]
# **Guess first.** `total` is 40. In how many of the 40 steps does the model learn anything?
#
# <details><summary>Answer</summary>After a quarter of the steps the schedule is at its end, and the rate is
# zero.</details>

# %%
parts = [batches_of(rank, 40, 8) for rank in range(4)]
for some in (joined(parts), parts):
    returned, _ = trained(broken_schedule, lambda: make_model(4, 6, 1), some, 0.5, 8, 40)
    print(f"{len(some)} ranks, every third loss:", losses_over_ranks([losses[::3] for losses, _ in returned]))

# %% [markdown]
# Both curves fall, and a model that has stopped learning looks like one that has learnt what there is.
#
# Answer for four ranks: the `cause`; `peak`, the step with the highest rate; `idle`, the first step from which on the
# rate is zero. Steps count from 0.


# %% nbgrader={"grade_id": "why_training_stops", "solution": true}
def why_training_stops():
    """``{"cause": ..., "peak": ..., "idle": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "once for each rank", "peak": 2, "idle": 10}
    ### END SOLUTION


# %% [markdown]
# Write `train_with_schedule`: the rate of step k, from 0, is `lr` times `up_and_down(k)`, on any number of ranks. The
# check looks at the model alone.


# %% nbgrader={"grade_id": "train_with_schedule", "solution": true}
def train_with_schedule(model, batches, lr, warmup, total):
    """Train with a step for each of ``total`` batches, by gradient descent; return ``(losses, learning rates)``."""
    ### BEGIN SOLUTION

    def up_and_down(step):
        return min(step / warmup, max(0.0, (total - step) / (total - warmup)))

    optimizer = torch.optim.SGD(model.parameters(), lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, up_and_down)
    losses, rates = [], []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        losses.append(loss.item())
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return losses, rates
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train_with_schedule", "grade": true, "points": 3}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

answer = Check("why_training_stops", points=1, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(silent.why("schedule", CAUSES))
check = Check("train_with_schedule", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.train_with_schedule)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "once for each rank", "not with these numbers"))
check.hidden_cases()
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# The scheduler that `accelerate` prepares advances N times in a step on purpose: it takes `total` for a number of one
# GPU's batches. If `total` already counts the steps of N GPUs,
# [the schedule ends too soon](https://github.com/huggingface/accelerate/issues/2926). Use one unit in both
# places.

# %% [markdown]
# ## 7. A broken sample
#
# Now and then a sample is broken, and the loss is NaN. A NaN in one gradient would come to all ranks with the average,
# so the rank with the broken sample sends zeros, and does not step.


# %% nbgrader={"grade_id": "broken_skip", "locked": true}
def broken_skip(model, batches, lr):
    """Train with a step for each batch, by gradient descent, but not on NaN; return the losses of this rank's steps."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        good = loss.isfinite().item()
        if not good:
            for parameter in model.parameters():
                parameter.grad.zero_()
        average_gradients(model)
        if good:
            optimizer.step()
            losses.append(loss.item())
    return losses


# %% [markdown]
# **Guess first.** Nothing hangs: every rank calls `all_reduce` as often as the others. What is different on the rank
# that did not step?
#
# <details><summary>Answer</summary>Its parameters are those from before the step. From then on it computes gradients
# at another place than the others, and never comes back to them.</details>

# %%
parts = [batches_of(rank, 12, 8) for rank in range(4)]
for rank, step in ((3, 5), (1, 8), (3, 10)):
    parts[rank][step][1][2] = torch.nan
losses, parameters = trained(broken_skip, lambda: make_model(4, 6, 1), parts, 0.2)
for rank, own in enumerate(losses):
    first, last = sum(own[:4]) / 4, sum(own[-4:]) / 4
    print(f"rank {rank}: {len(own)} losses, the mean of the first four {first:.2f}, of the last four {last:.2f}")
print("differ from rank 0 by", " ".join(f"{(p - parameters[0]).abs().max():.4f}" for p in parameters))

# %% [markdown]
# All four losses fall. Which model will the checkpoint have?
#
# Answer: the `cause`; `step`, the first step that leaves the ranks with different parameters, counted from 0; `rank`,
# which rank is then apart from the three others. Check it by a run, as in a job where nobody knows which samples are
# broken: `trained` with `[part[:k] for part in parts]` runs the first `k` steps. If the ranks are equal after `k` steps
# and differ after `k + 1`, the answer is `k`.


# %% nbgrader={"grade_id": "why_a_rank_is_apart", "solution": true}
def why_a_rank_is_apart():
    """``{"cause": ..., "step": ..., "rank": ...}``"""
    ### BEGIN SOLUTION
    return {"cause": "alone in deciding", "step": 5, "rank": 3}
    ### END SOLUTION


# %% [markdown]
# Write `train_past_nan`. One process that sees all samples has a NaN in its loss if any sample is broken, and leaves
# the whole step out. A step is left out by all ranks or by none.


# %% nbgrader={"grade_id": "train_past_nan", "solution": true}
def train_past_nan(model, batches, lr):
    """Train with a step for each batch, by gradient descent, but not where any rank has NaN; return the losses."""
    ### BEGIN SOLUTION
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        broken = (~loss.isfinite()).double()
        dist.all_reduce(broken)
        if broken.item():
            continue
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train_past_nan", "grade": true, "points": 3}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

answer = Check("why_a_rank_is_apart", points=1, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(silent.why("votes", CAUSES))
check = Check("train_past_nan", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.train_past_nan)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "alone in deciding", "not with these numbers"))
check.hidden_cases()
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# It is as wrong when [rank 0 decides for all](https://github.com/ecmwf/WeatherGenerator/issues/2724) by its own loss.
# [How to skip a step with DDP](https://github.com/Lightning-AI/pytorch-lightning/issues/5243) has been asked for years:
# a rank that leaves out its backward pass keeps the others waiting there.

# %% [markdown]
# ## 8. A new head
#
# `Averaged` does in small what `DistributedDataParallel` does: it broadcasts the parameters of rank 0 and averages each
# gradient as soon as it is there. For a new task the body gets a new head.


# %% nbgrader={"grade_id": "broken_head", "locked": true}
class Averaged:
    """A module whose parameters begin alike on all ranks, and whose gradients are averaged during backward."""

    def __init__(self, module):
        self.module = module
        for parameter in module.parameters():
            dist.broadcast(parameter.data, src=0)
            parameter.register_post_accumulate_grad_hook(self.average)

    def average(self, parameter):
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()

    def __call__(self, x):
        return self.module(x)


def broken_head(make_body, make_head, batches, lr):
    """Train body and head, with a step for each batch, by gradient descent; return ``(body, head, losses)``."""
    body = make_body()
    model = Averaged(body)
    head = make_head()
    optimizer, losses = torch.optim.SGD([*body.parameters(), *head.parameters()], lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(head(model(x)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return body, head, losses


# %% [markdown]
# **Guess first.** Nobody seeded anything, so each rank makes parameters of its own. After training, which are the same
# on all ranks?
#
# <details><summary>Answer</summary>Those that `Averaged` was given: the ones that were there when it was
# made.</details>


# %%
def parts_of_a_model(program):
    torch.manual_seed(100 + dist.get_rank())  # as processes have that nobody seeded
    body, head, losses = program(
        lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh()).double(),
        lambda: nn.Sequential(nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 1)).double(),
        batches_of(dist.get_rank(), 10, 8), 0.2,
    )  # fmt: skip
    named = [*body.named_parameters(prefix="body"), *head.named_parameters(prefix="head")]
    return losses, {name: parameter.detach() for name, parameter in named}


ranks = launch(parts_of_a_model, broken_head, world_size=4, device="cpu").returns
print("loss:", losses_over_ranks([losses for losses, _ in ranks]))
print("parameters of rank 0:", {name: tuple(p.shape) for name, p in ranks[0][1].items()})

# %% [markdown]
# Answer: the `cause`; `apart`, a list of the names of the parameters that are not the same on all ranks, for which you
# compare `ranks[0][1]` with the others; `count`, how many numbers these parameters have together.


# %% nbgrader={"grade_id": "why_heads_differ", "solution": true}
def why_heads_differ():
    """``{"cause": ..., "apart": [...], "count": ...}``"""
    ### BEGIN SOLUTION
    apart = ["head.0.weight", "head.0.bias", "head.2.weight", "head.2.bias"]
    return {"cause": "outside the wrapper", "apart": apart, "count": 25}
    ### END SOLUTION


# %% [markdown]
# Write `train_with_head`. `make_body` and `make_head` are called once, and give modules with other parameters on each
# rank; the ranks may begin with those of any one of them. The model is `head(body(x))`.


# %% nbgrader={"grade_id": "train_with_head", "solution": true}
def train_with_head(make_body, make_head, batches, lr):
    """Train body and head, with a step for each batch, by gradient descent; return ``(body, head, losses)``."""
    ### BEGIN SOLUTION
    body, head = make_body(), make_head()
    model = Averaged(nn.Sequential(body, head))
    optimizer, losses = torch.optim.SGD(model.module.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return body, head, losses
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_train_with_head", "grade": true, "points": 3}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

answer = Check("why_heads_differ", points=1, world_size=WORLD_SIZE, device=DEVICE)
answer.meets(silent.why("head", CAUSES))
check = Check("train_with_head", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.train_with_head)
### BEGIN HIDDEN TESTS
answer.that("the cause", answer.run(), claims.entry("cause", "outside the wrapper", "not with these numbers"))
check.hidden_cases()
### END HIDDEN TESTS
answer.score() + check.score()

# %% [markdown]
# `DistributedDataParallel` registers its hooks when it is made. A parameter that comes later
# [has none](https://github.com/pytorch/pytorch/issues/12603): a head, an adapter, or a weight that was replaced.

# %% [markdown]
# ## 9. Let a tool look
#
# You have compared N ranks with one process eight times. `ringzero same` does it for a file: it trains on N ranks and
# in one process on the same samples, says where they first differ, and names what it thinks is the cause.
#
#     ringzero same train.py:step
#
# or, in Python, `compare("train.py", "step")`. The cell writes three programs. One is right.

# %% nbgrader={"grade_id": "three_files", "locked": true}
START = """
import torch, torch.distributed as dist
from torch import nn
from torch.nn import functional

rank, ranks = dist.get_rank(), dist.get_world_size()
source = torch.Generator().manual_seed(3)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

def average(scale=ranks):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= scale
"""
SAMPLES = """
inputs = torch.randn(4, 12, 4, generator=source)
batches = [(x, x[:, :3].sin()) for x in inputs]
"""
TEXTS = """
inputs = torch.randn(4, 12, 5, 4, generator=source)
lengths = torch.randint(1, 6, (4, 12, 1), generator=source)
batches = [(x, x[..., :3].argmax(-1).where(torch.arange(5) < n, -100)) for x, n in zip(inputs, lengths)]
"""
PROGRAMS = {
    "a": SAMPLES + '''
def step(batch):
    x, y = batch
    optimizer.zero_grad()
    loss = functional.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    average()
    optimizer.step()
    return loss
''',
    "b": TEXTS + '''
def step(batch):
    x, labels = batch
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(x).flatten(0, 1), labels.flatten(), reduction="sum")
    loss.backward()
    tokens = (labels != -100).sum()
    dist.all_reduce(tokens)
    average(tokens)
    optimizer.step()
    return loss / tokens
''',
    "c": TEXTS + '''
def step(batch):
    x, labels = batch
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(x).flatten(0, 1), labels.flatten())  # -100 is what it leaves out by default
    loss.backward()
    average()
    optimizer.step()
    return loss
''',
}  # fmt: skip
FILES = {name: Path(tempfile.mkdtemp()) / f"train_{name}.py" for name in PROGRAMS}
for name, path in FILES.items():
    path.write_text(START + PROGRAMS[name])

# %% [markdown]
# **Guess first.** Read the three `step`s. Which one is right?
#
# Then let `compare` look at each of the three `FILES`. The cell shows the first.

# %%
from ringzero.same import compare

print(compare(str(FILES["a"]), "step", ranks=2))

# %% [markdown]
# Answer with a dict: for each of `a`, `b` and `c` the name of the cause, or "nothing". Take the name that `compare`
# gives, which stands before the colon, and not one of our list `CAUSES`. And `clip`: in which order should program `a`
# have clipped and averaged? Write "average, clip" or "clip, average"; whether it is right, you learn when you hand in.


# %% nbgrader={"grade_id": "what_compare_says", "solution": true}
def what_compare_says():
    """``{"a": ..., "b": ..., "c": ..., "clip": ...}``"""
    ### BEGIN SOLUTION
    return {"a": "clipped before the reduction", "b": "nothing", "c": "mean of means", "clip": "average, clip"}
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_what_compare_says", "grade": true, "points": 3}
from ringzero_course.lab import Check, claims
from ringzero_course.lab.subjects import silent

check = Check("what_compare_says", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(silent.names_the_files)
### BEGIN HIDDEN TESTS
check.that("the order", check.run(), claims.entry("clip", "average, clip", "what would one process clip?"))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Which of the eight would `compare` have found? It compares steps. The order of samples is made before them, and
# dropout it has to switch off, as one process cannot draw what N ranks draw. So it looks by other means whether ranks
# share samples of a `DataLoader`, and whether they have one seed. The third program is "the same" to it: its last
# window is as wrong in one process. A tool that says "the same" has compared what it can.

# %% [markdown]
# ## 10. In your own words
#
# A colleague moves a training job from 1 GPU to 64. The loss falls smoothly, so "it works". Three to six sentences:
# what does a falling loss prove, and what not? Which two cheap checks would you run before the long job, and which of
# the eight bugs does each of them find? Name one of the eight that both of them miss.

# %% [markdown] nbgrader={"grade_id": "what_a_loss_proves", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. A falling loss proves that steps go roughly downhill on some samples, and all eight programs do that. It does not
#    prove that the step is the one meant, nor that the ranks have one model.
# 2. Two checks, with what they find. A checksum of the parameters over the ranks after a few steps finds 7 and 8. A few
#    steps of N ranks beside one process on the same samples, in float64 with SGD, find 2, 5 and 6, and also 7 and 8 if
#    the data has a NaN.
# 3. One that both miss: the order of samples (1), which counting the samples of an epoch finds; dropout's seed (4),
#    which is seen by comparing masks; or the last window (3), as it is wrong on one process too.
#
# Three answers and their points:
#
# > A falling loss shows that some samples are fitted better, nothing more: all eight bugs let it fall. First I would
# > compare a hash of the parameters of all ranks after ten steps, which finds the skipped step (7) and the head (8).
# > Then I would run ten steps in float64 with SGD on one process and on N ranks with the same samples: that finds
# > tokens (2), pairs (5) and the schedule (6). Both miss the sampler (1), because they begin after the samples were
# > chosen.
#
# 3 points: all three.
#
# > The loss says only that training goes downhill. I would compare all ranks' parameters, and I would compare N ranks
# > with one process. One of them finds nearly all bugs. The missing samples are found by neither.
#
# 2 points: the first and the third. The second needs which bug each check finds.
#
# > If the loss falls on 64 GPUs as on one, the job is right. Otherwise I would lower the learning rate.
#
# 0 points: all eight programs have a falling loss.
# ### END SOLUTION
