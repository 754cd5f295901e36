# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Data-parallel training
#
# Four ranks hold the same model. Each takes a quarter of the batch, and they average their gradients. If that is done
# right, the four take exactly the steps that one process would take with the whole batch, only sooner. If it is done
# wrong, the loss still falls, and nobody notices for a week.
#
# In this lab you build PyTorch's `DistributedDataParallel`: first an all-reduce in a hook on each parameter, then
# buckets, then all-reduces that travel while the backward pass is still at work, and last `no_sync` and parameters
# that go without a gradient.
#
# Your code runs on real ranks, processes that talk through `torch.distributed` (gloo on a CPU, NCCL with a GPU for
# each rank). A check shows a table: what was claimed, whether it holds, why not, and the points. It compares with one
# process on the whole batch, counts all-reduces and bytes, and looks at the order of events; and it tries models and
# numbers of ranks that you do not see here. Use `dist.all_reduce` and `dist.broadcast`, nothing that averages
# gradients for you.
#
# About 100 to 130 minutes. Wherever you see **Guess first**, do: write it down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero.lab import check_parameters, launch, slide, written

check_parameters()

import time
from contextlib import contextmanager

import torch
import torch.distributed as dist

from ringzero.figures import timeline
from ringzero.lab.harness.training import Model, batch

# %% [markdown]
# ## The model, and who sees what
#
# `Model(seed)` is a small network: 6 numbers in, 3 out, and layers of odd sizes between. `batch(number)` is a batch
# that every rank can make for itself: `x` with 6 and `y` with 3 numbers a sample. The loss is always the mean of
# `(model(x) - y).square()` over *all* its elements.
#
# Backward goes from the last layer to the first. A hook registered with `register_post_accumulate_grad_hook` is called
# with a parameter as soon as its `.grad` is complete:


# %%
def who_comes_first():
    model, order = Model(seed=1), []
    names = {p: name for name, p in model.named_parameters()}
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(lambda p: order.append((names[p], p.numel() * p.element_size())))
    x, y = batch(number=1)
    (model(x) - y).square().mean().backward()
    return order


for name, size in launch(who_comes_first, world_size=1, device=DEVICE).returns[0]:
    print(f"{name:16} {size:4} bytes")

# %% [markdown]
# ## 1. A part of the batch
#
# N ranks share a batch of b samples. Each computes a loss of its part and the gradient of that; then the gradients are
# summed and divided by N. The result should be the gradient of the mean over the whole batch.
#
# **Guess first.** 10 samples on 4 ranks. If each rank takes the mean over its own samples, which samples count for
# more than others, and how much more?
#
# Write `loss_of_part`. Every rank is given the whole batch and calls `model` once, on its own samples; no sample on two
# ranks, no rank with more than b/N rounded up. It returns a loss such that the *mean of the ranks' gradients* is the
# gradient of the whole batch's loss, for any b. (A rank may have no sample at all; the mean of nothing is `nan`, the
# sum of nothing is 0.) The mean of the ranks' losses is then the whole batch's loss, too. No communication, and `x` and
# `y` stay what they are.


# %% nbgrader={"grade_id": "loss_of_part", "solution": true}
def loss_of_part(model, x, y):
    """This rank's share of ``(model(x) - y).square().mean()``."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    error = model(x[rank::n]) - y[rank::n]
    return error.square().sum() / y.numel() * n
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_loss_of_part", "grade": true, "points": 3}
from ringzero.lab import Check, claims, harness
from ringzero.lab.claims.training import each_sample_once, leaves_the_batch_alone, mean_is_that_of_the_whole_batch

part = harness.training.gradients_of_part
check = Check("loss_of_part", points=3, world_size=WORLD_SIZE, device=DEVICE, harness=part, built_from=())
even = check.run(samples=6 * WORLD_SIZE, seed=1)
uneven = check.run(samples=6 * WORLD_SIZE + 1, seed=2)
check.that("the mean of the gradients is that of the whole batch", even, mean_is_that_of_the_whole_batch, weight=2)
check.that("also when N does not divide it", uneven, mean_is_that_of_the_whole_batch, weight=2)
check.that("and each sample is on one rank, as many on each as can be", [even, uneven], each_sample_once, weight=2)
check.that("x and y stay what they are", [even, uneven], leaves_the_batch_alone)
check.on_nccl(even, mean_is_that_of_the_whole_batch)
### BEGIN HIDDEN TESTS
several = check.runs(ranks=(1, 2, 3, 5), samples=11, seed=lambda n: 3 + n)
few = [check.run(samples=samples, seed=9, ranks=4) for samples in (1, 3)]
fewer = [check.run(samples=13, seed=12, columns=columns) for columns in (1, 2)]
check.that("1 to 5 ranks", several, each_sample_once, weight=2)
check.that("fewer samples than ranks", few, each_sample_once)
check.that("other numbers of outputs", fewer, mean_is_that_of_the_whole_batch)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# From here on all parts have one size, and a rank's loss is the mean over its part.

# %% [markdown]
# ## 2. A common start
#
# Ranks that start alike and add the same gradients stay alike. They do not start alike by themselves: whoever builds
# the model has drawn random numbers.
#
# **Guess first.** Only the gradients of trained parameters are averaged. What else does the output of a model depend
# on that could differ between ranks?
#
# Write `start_alike`: all of rank 0's state goes to everyone, in place, by one `dist.broadcast` for each tensor. Frozen
# parameters count, and all buffers, those that no checkpoint holds too. What two layers share, a weight or a buffer, is
# one tensor. `dist.broadcast` does not take a tensor that requires a gradient as it is; `p.detach()` is the same memory
# without.


# %% nbgrader={"grade_id": "start_alike", "solution": true}
def start_alike(module):
    """Give every rank the parameters and buffers of rank 0."""
    ### BEGIN SOLUTION
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src=0)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_start_alike", "grade": true, "points": 3}
from ringzero.lab import Check, claims, harness
from ringzero.lab.claims import training

state = harness.training.state_after_start
check = Check("start_alike", points=3, world_size=WORLD_SIZE, device=DEVICE, harness=state, built_from=("broadcast",))
plain = check.run(seed=1)
frozen = check.run(seed=2, frozen=(1,))
tied = check.run(seed=3, hidden=(7, 7, 7), tied=(1, 2))
inside = check.run(seed=4, buffer_in=(1, 2), gain=True)
by_one_broadcast_each = claims.all_of(training.parameters_are_kept, training.one_broadcast_a_tensor)

check.that("trained parameters are rank 0's", [plain, frozen, inside], training.trained_are_those_of_rank_0, weight=2)
check.that("frozen ones too", frozen, training.frozen_are_those_of_rank_0, weight=2)
check.that("and buffers, those of modules inside too", [plain, inside], training.buffers_are_those_of_rank_0, weight=2)
check.that("by one broadcast for each tensor, in place", [plain, frozen, tied, inside], by_one_broadcast_each)
check.on_nccl(plain, training.trained_are_those_of_rank_0)
### BEGIN HIDDEN TESTS
several = check.runs(ranks=(1, 2, 3, 5), seed=lambda n: 10 * n, hidden=(3, 8), frozen=(0, 2))
check.that("1 to 5 ranks, another model", several, training.parameters_are_kept, weight=2)
check.that("a tied weight is sent once", tied, training.one_broadcast_a_tensor)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3. A hook on each parameter
#
# The first plan: as soon as a gradient is complete, sum it over the ranks, wait for that, and divide by N.
#
# **Guess first.** What is the hook called with, the gradient or the parameter?
#
# Write `average_in_hooks`: it puts such a hook on each parameter that is trained. (torch refuses one on the others.)
# One all-reduce for each parameter and backward pass; when `loss.backward()` returns, every `.grad` is the mean.


# %% nbgrader={"grade_id": "average_in_hooks", "solution": true}
def average_in_hooks(module):
    """From now on every backward pass leaves the mean over the ranks in the gradients."""

    ### BEGIN SOLUTION
    def average(parameter):
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(average)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_average_in_hooks", "grade": true, "points": 3}
from ringzero.lab import Check, harness
from ringzero.lab.claims import training

train = harness.training.train_in_place
check = Check(
    "average_in_hooks", points=3, world_size=WORLD_SIZE, device=DEVICE, harness=train, built_from=("all_reduce",)
)
two_steps = check.run(seed=1)
frozen = check.run(seed=2, frozen=(1,))
tied = check.run(seed=3, hidden=(7, 7, 7), tied=(1, 2), gain=True)
zeros = check.run(seed=4, zeros_on_odd=(2,))
every = [two_steps, frozen, tied, zeros]
twice = check.run(seed=5, passes=2, silent=False)
check.that("gradients are the mean, and two steps those of one process", two_steps, training.as_one_process, weight=2)
check.that("also with frozen and tied ones, and one in no layer", [frozen, tied], training.as_one_process, weight=2)
check.that("also where some ranks' gradients are zeros", zeros, training.as_one_process)
check.that("two backward passes before a step add up", twice, training.as_one_process)
beside = check.run(seed=6, beside=True)
check.that("two models, one beside the other", beside, training.as_one_process)
check.that("the ranks stay alike, to the last bit", every, training.alike_on_all_ranks)
check.that("one all-reduce for each trained parameter and step, no more", every, training.one_all_reduce_a_parameter)
### BEGIN HIDDEN TESTS
several = check.runs(ranks=(1, 2, 3, 5), seed=lambda n: 10 * n, hidden=(3, 9), steps=6)
check.that("1 to 5 ranks, another model, six steps", several, training.alike_on_all_ranks, weight=2)
check.that("as few messages on any number of ranks", several, training.one_all_reduce_a_parameter)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# It is right, and slow for two reasons. BERT-base has 199 parameters, so 199 times a step the ranks pay the cost of a
# message, for most of them to move 3 to 12 KiB. And while a gradient travels, the backward pass stands still.

# %% [markdown]
# ## 4. Buckets
#
# Against the first: put gradients that are ready about the same time into one message. Torch goes through the
# parameters *from the last to the first* and puts each in the current bucket. A bucket whose size has reached the cap
# is closed, and the next parameter opens a new one. So a bucket may be larger than the cap, by a part of its last
# parameter, and the last bucket may be smaller. (Torch also gives its first bucket a smaller cap, so that it leaves
# early. Not here.)
#
# **Guess first.** Parameters of 40, 10, 30 and 20 bytes, in this order, and a cap of 50. Which share a bucket?
#
# Write `assign`. `sizes` are bytes, in the order of the model's parameters. It returns a list of buckets, each a list
# of indices into `sizes`, in the order in which they were put there, and leaves `sizes` as it was.


# %% nbgrader={"grade_id": "assign", "solution": true}
def assign(sizes, cap):
    """Buckets of parameters, the last parameter first; a bucket is closed when it has ``cap`` bytes or more."""
    ### BEGIN SOLUTION
    buckets, room = [], 0
    for i in reversed(range(len(sizes))):
        if room <= 0:
            buckets.append([])
            room = cap
        buckets[-1].append(i)
        room -= sizes[i]
    return buckets
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_assign", "grade": true, "points": 3}
import torch

from ringzero.lab import Check, harness
from ringzero.lab.claims.buckets import assigned_as_torch_does

plain = {"harness": harness.buckets.plainly, "built_from": (), "ranks": 1}
check = Check("assign", points=3, world_size=WORLD_SIZE, device=DEVICE, **plain)
over = check.run([10, 100, 30, 20], 60)
large_and_small = [check.run([40, 10, 30, 20], cap) for cap in (1000, 1)]
check.that("40, 10, 30 and 20 bytes, cap 50", check.run([40, 10, 30, 20], 50), assigned_as_torch_does)
check.that("10, 100, 30 and 20 bytes, cap 60: a bucket may end up larger than the cap", over, assigned_as_torch_does)
check.that("a cap above all of them, and one below each", large_and_small, assigned_as_torch_does)
### BEGIN HIDDEN TESTS
numbers = torch.Generator("cpu").manual_seed(4)
random = torch.randint(1, 5000, (60,), generator=numbers, device="cpu").tolist()
others = [check.run(random, cap) for cap in (3_000, 10_000, 40_000)]
single_and_full = [check.run([7], 7), check.run([8, 8, 8, 8, 8], 16)]
check.that("60 parameters, as torch would", others, assigned_as_torch_does, weight=2)
check.that("a single one; a bucket that is exactly full", single_and_full, assigned_as_torch_does)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 5. One buffer, one message
#
# A bucket has one flat buffer, and each gradient a *view* of its part of it: when the buffer is reduced, the gradients
# are, and nothing has to be copied back.
#
# **Guess first.** `dist.all_reduce(flat, async_op=True)` returns at once. What may you do with `flat` before the
# `wait()` of what it returned?
#
# Write `Bucket`:
#
# - `self.parameters`, a list; `self.flat`, one 1-D tensor for all their gradients, the same in all steps;
#   `self.missing`, the set of parameters whose gradient has not been put yet
# - `put(parameter)`, called in any order, copies the parameter's gradient to its place in `flat`, zeros if it has none
#   (`.grad` is None), and makes `parameter.grad` the view of that place, in the parameter's shape. It is no longer
#   missing.
# - `launch()` starts one all-reduce of the whole buffer and does not wait for it
# - `wait()` waits for it. Now each `.grad` is the mean over the ranks. The bucket can be used for the next step: all
#   its parameters are missing again.
#
# `flat.split(sizes)` and `view_as` are useful. All parameters of this lab are float32, on one device.


# %% nbgrader={"grade_id": "Bucket", "solution": true}
class Bucket:
    """Gradients of ``parameters`` that travel together."""

    def __init__(self, parameters):
        ### BEGIN SOLUTION
        self.parameters = list(parameters)
        sizes = [p.numel() for p in self.parameters]
        self.flat = torch.zeros(sum(sizes))
        parts = self.flat.split(sizes)
        self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
        self.missing = set(self.parameters)
        ### END SOLUTION

    def put(self, parameter):
        """Take the parameter's gradient in; from now on ``parameter.grad`` is a view of ``flat``."""
        ### BEGIN SOLUTION
        view = self.views[parameter]
        if parameter.grad is None:
            view.zero_()
        else:
            view.copy_(parameter.grad)
        parameter.grad = view
        self.missing.discard(parameter)
        ### END SOLUTION

    def launch(self):
        """Start the all-reduce."""
        ### BEGIN SOLUTION
        self.flat /= dist.get_world_size()
        self.work = dist.all_reduce(self.flat, async_op=True)
        ### END SOLUTION

    def wait(self):
        """Return when the mean is there, ready for the next step."""
        ### BEGIN SOLUTION
        self.work.wait()
        self.missing = set(self.parameters)
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_Bucket", "grade": true, "points": 4}
from ringzero.lab import Check, claims, harness
from ringzero.lab.claims import buckets

fill = harness.buckets.fill_and_reduce
check = Check("Bucket", points=4, world_size=WORLD_SIZE, device=DEVICE, harness=fill, built_from=("all_reduce",))
once = check.run(names=("weight", "bias"))
shapes = check.run(names=("weight", "bias", "scalar", "column"))
again = check.run(names=("weight", "bias"), times=3)
check.that("after wait() every gradient is the mean", once, buckets.gradients_are_the_mean, weight=2)
check.that("of any shape, and the second and third time", [shapes, again], buckets.gradients_are_the_mean, weight=2)
check.that("one all-reduce, of all bytes", [once, shapes, again], buckets.one_message, weight=2)
check.that("launch() does not wait for it", [once, again], buckets.launch_does_not_wait, weight=2)
check.that("gradients are views of flat, which is made once", [once, shapes, again], buckets.gradients_are_views)
check.that("missing: what has not been put, and all again after wait()", [once, again], buckets.missing_is_counted)
both = check.run(names=("weight", "bias"), times=2, beside=True)
check.that("two buckets on their way at the same time", both, buckets.leaves_others_alone)
unlike = check.run(names=("weight", "bias", "column"), odd_ranks_forward=True)
check.that("also when the ranks put them in unlike orders", unlike, buckets.gradients_are_the_mean)
check.on_nccl(once, buckets.gradients_are_the_mean)
### BEGIN HIDDEN TESTS
several = check.runs(ranks=(1, 2, 3, 5), names=("bias", "column", "weight"), times=2)
holes = check.runs(ranks=(1, 2, 3, 5), names=("bias", "weight"), times=2, without=("weight", "bias"))
zeros = "zeros where there is no gradient, also when the bucket was used before"
asynchronous = claims.all_of(buckets.one_message, buckets.launch_does_not_wait)
check.that("1 to 5 ranks", several, buckets.gradients_are_the_mean, weight=2)
check.that(zeros, holes, buckets.gradients_are_the_mean)
in_place = check.run(names=("bias", "weight"), times=2, to_none=False)
check.that("a new gradient that lies in flat already", in_place, buckets.gradients_are_the_mean)
check.that("one message, not waited for, on any number of ranks", several, asynchronous)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6. While backward is still at work
#
# Now put it together. The backward pass fills the buckets from the last layer to the first. A bucket that is full
# leaves at once, and backward goes on; only when there is nothing left to compute do the ranks wait.
#
# **Guess first.** Backward takes 100 ms, and all gradients together need 80 ms to travel. With 10 equal buckets, how
# much of the 80 ms is still to be seen in the time of a step? With one bucket?
#
# Write `Overlapped`. A step is
#
# loss.backward()
# model.finish()
# optimizer.step()
#
# - `__init__` makes the ranks start alike, makes a list `self.buckets` of the module's *trained* parameters with your
#   `assign` and `Bucket`, and hooks `self.gradient_ready` to each of them
# - `gradient_ready(parameter)` puts the gradient in its bucket and launches the bucket when it is full
# - `finish()` waits for all buckets
#
# Nothing but the buckets is sent in a step.


# %% nbgrader={"grade_id": "Overlapped", "solution": true}
class Overlapped(torch.nn.Module):
    """``module``, whose gradients are the mean over the ranks after ``finish()``; buckets of ``cap`` bytes."""

    def __init__(self, module, cap):
        super().__init__()
        self.module = module
        ### BEGIN SOLUTION
        start_alike(module)
        trained = [p for p in module.parameters() if p.requires_grad]
        sizes = [p.numel() * p.element_size() for p in trained]
        self.buckets = [Bucket([trained[i] for i in members]) for members in assign(sizes, cap)]
        self.bucket_of = {p: bucket for bucket in self.buckets for p in bucket.parameters}
        for p in trained:
            p.register_post_accumulate_grad_hook(self.gradient_ready)
        ### END SOLUTION

    def forward(self, *args):
        return self.module(*args)

    def gradient_ready(self, parameter):
        """The hook: ``parameter.grad`` is complete."""
        ### BEGIN SOLUTION
        bucket = self.bucket_of[parameter]
        bucket.put(parameter)
        if not bucket.missing:
            bucket.launch()
        ### END SOLUTION

    def finish(self):
        """Return when all gradients are the mean. Called after each backward pass, before the optimizer's step."""
        ### BEGIN SOLUTION
        for bucket in self.buckets:
            bucket.wait()
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_Overlapped", "grade": true, "points": 6}
from ringzero.lab import Check, harness
from ringzero.lab.claims import training

train, allowed = harness.training.train, ("broadcast", "all_reduce")
check = Check("Overlapped", points=6, world_size=WORLD_SIZE, device=DEVICE, harness=train, built_from=allowed)
each_layer = check.run(seed=1, cap=100, steps=3)
larger = check.run(seed=2, cap=600)
one = check.run(seed=3, cap=100_000)
frozen = check.run(seed=4, cap=300, frozen=(1,))
alike, one_a_bucket = training.alike_on_all_ranks, training.one_all_reduce_a_bucket
overlaps = training.leaves_while_backward_runs

check.that("three steps are those of one process", each_layer, training.as_one_process, weight=2)
check.that("with larger buckets, a single one, and a frozen layer", [larger, one, frozen], alike, weight=2)
check.that("one all-reduce a bucket and step, of all its bytes", [each_layer, larger, one], one_a_bucket, weight=2)
check.that(
    "a bucket leaves before backward comes to the next layer; all waits come after it",
    [each_layer, larger],
    overlaps,
    weight=3,
)
beside = check.run(seed=7, cap=300, beside=True)
check.that("two models, one beside the other", beside, training.as_one_process)
check.on_nccl(each_layer, training.as_one_process)
### BEGIN HIDDEN TESTS
several = check.runs(ranks=(1, 2, 3, 5), seed=lambda n: 10 * n, cap=200, steps=5, hidden=(9, 4, 8, 8))
zeroed = check.run(seed=5, cap=200, steps=3, to_none=False)
tied = check.run(seed=6, cap=150, hidden=(7, 7, 7), tied=(1, 2), gain=True)
check.that("1 to 5 ranks, another model, five steps", several, alike, weight=2)
check.that("gradients set to zero and not to None, tied parameters", [zeroed, tied], alike)
check.that("as many messages, as large, on any number of ranks", [*several, frozen], one_a_bucket)
check.that("and as early", [*several, frozen], overlaps, weight=2)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7. `no_sync`
#
# A batch that does not fit in memory is cut into smaller ones, whose gradients add up in `.grad` before one step of the
# optimizer. Only the sum has to travel:
#
# with model.no_sync():
#     for part in parts[:-1]:
#         loss_of(part).backward()      # adds to the gradients of this rank, sends nothing
# loss_of(parts[-1]).backward()         # the sum of all of them travels
# model.finish()
#
# **Guess first.** With 8 parts, how many bytes does this save? Is the result the same?
#
# Write `Accumulating`. What counts is where a backward pass is made, wherever its forward pass was. An exception inside
# the `with`, that of an interrupted cell too, goes on to the caller and must not leave it silent for ever, and where
# one `no_sync` stands inside another, the end of the inner one, by an exception too, is not the end of the outer one.
#
# (A class is built on the one that its name meant when its cell ran. When you change `Overlapped`, run this cell again,
# and the next.)


# %% nbgrader={"grade_id": "Accumulating", "solution": true}
class Accumulating(Overlapped):
    """As ``Overlapped``, with ``no_sync``."""

    syncing = True

    @contextmanager
    def no_sync(self):
        """Backward passes inside only add up gradients on this rank; the next one outside sends the sum."""
        ### BEGIN SOLUTION
        before, self.syncing = self.syncing, False
        try:
            yield
        finally:
            self.syncing = before
        ### END SOLUTION

    def gradient_ready(self, parameter):
        ### BEGIN SOLUTION
        if self.syncing:
            super().gradient_ready(parameter)
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_Accumulating", "grade": true, "points": 4}
from ringzero.lab import Check, claims, harness
from ringzero.lab.claims import training

train, allowed = harness.training.train_accumulating, ("broadcast", "all_reduce")
check = Check("Accumulating", points=4, world_size=WORLD_SIZE, device=DEVICE, harness=train, built_from=allowed)
passes = [check.run(seed=1, cap=300, passes=3), check.run(seed=2, cap=100_000, passes=2)]
interrupted = check.run(before="an exception inside", seed=3, cap=300)
inside = check.run(before="one inside another", seed=4, cap=300, passes=3)
silent, alike = training.silent_inside_no_sync, training.alike_on_all_ranks

check.that("the step is that of the sum of all passes", passes, training.as_one_process, weight=2)
check.that("nothing is sent inside no_sync", passes, silent, weight=2)
check.that("and outside one all-reduce a bucket", passes, training.one_all_reduce_a_bucket)
check.that("after an exception inside, the ranks average again", interrupted, alike)
check.that("one no_sync inside another", inside, silent)
elsewhere = check.run(before="another model's", seed=6, cap=300)
check.that("inside another model's no_sync this one averages", elsewhere, alike)
check.on_nccl(passes[0], training.as_one_process)
### BEGIN HIDDEN TESTS
several = check.runs(ranks=(1, 2, 3, 5), seed=lambda n: 10 * n, cap=200, passes=lambda n: 1 + n, steps=4, hidden=(9, 4))
zeroed = check.run(seed=5, cap=200, steps=3, passes=2, to_none=False)
check.that("1 to 5 ranks, 2 to 6 passes, another model, four steps", several, alike, weight=2)
check.that("gradients set to zero and not to None", zeroed, alike)
inner = check.run(before="an exception in an inner one", seed=7, cap=300, passes=2)
outside = check.run(seed=8, cap=300, passes=2, forward_outside=True)
check.that("an inner one that ends with an exception; forward passes before no_sync", [inner, outside], silent)
check.that("silent on any number of ranks", [*several, zeroed], silent)
check.that("and still while backward runs", several, claims.all_of(alike, training.leaves_while_backward_runs))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 8. Gradients that do not come
#
# A mixture of experts, a layer that is dropped at random, a head for another task: on some rank, in some step, a
# parameter goes without a gradient. Its bucket is never full there, and full elsewhere.
#
# **Guess first.** Rank 0 uses layers 0, 1, 2 and rank 1 uses layers 0 and 2; each layer is a bucket. In which order do
# the buckets of the two fill up? If each rank launches whatever is full, which buffers are added up?
#
# Write `DDP`, such that
#
# - all ranks launch their buckets in the same order, that of `self.buckets`, each as soon as it is full and those
#   before it have left
# - `finish()` puts what is still missing, launches what has not left, and waits. A parameter that got no gradient on
#   this rank counts as zero in the mean; one that no rank has used ends with a gradient of zeros. What was added up
#   inside `no_sync` counts, also if the last pass did not use the parameter.


# %% nbgrader={"grade_id": "DDP", "solution": true}
class DDP(Accumulating):
    """As ``Accumulating``; parameters may go without a gradient on some ranks, or on all."""

    launched = 0  # buckets on their way

    def gradient_ready(self, parameter):
        ### BEGIN SOLUTION
        if self.syncing:
            self.bucket_of[parameter].put(parameter)
            self.launch_full_ones()
        ### END SOLUTION

    def finish(self):
        ### BEGIN SOLUTION
        for bucket in self.buckets:
            for parameter in list(bucket.missing):
                bucket.put(parameter)
        self.launch_full_ones()
        super().finish()
        self.launched = 0

    def launch_full_ones(self):
        while self.launched < len(self.buckets) and not self.buckets[self.launched].missing:
            self.buckets[self.launched].launch()
            self.launched += 1
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_DDP", "grade": true, "points": 5}
from ringzero.lab import Check, claims, harness
from ringzero.lab.claims import training

train, allowed = harness.training.train, ("broadcast", "all_reduce")
check = Check("DDP", points=5, world_size=WORLD_SIZE, device=DEVICE, harness=train, built_from=allowed)
seven = {"hidden": (7, 7, 7, 7), "cap": 200}
all_used = check.run(seed=1, cap=300)
never = check.run(seed=2, skipped=(2,), steps=3, **seven)
some = check.run(seed=3, skipped_on_odd=(2,), steps=3, **seven)
tied = check.run(seed=4, tied=(1, 2), **seven)
alike, one_a_bucket = training.alike_on_all_ranks, training.one_all_reduce_a_bucket
overlaps = claims.all_of(alike, training.leaves_while_backward_runs)
as_before = "as before where all are used: overlapped, one all-reduce a bucket"

check.that(as_before, all_used, claims.all_of(overlaps, one_a_bucket))
check.that("a layer that no rank uses", never, alike, weight=2)
check.that("a layer that odd ranks do not use", some, alike, weight=2)
check.that("a weight that two layers share", tied, claims.all_of(alike, one_a_bucket))
check.on_nccl(all_used, alike)
### BEGIN HIDDEN TESTS
holes = {"cap": 1, "skipped": (1,), "skipped_on_odd": (3,), "hidden": (7, 7, 7, 7, 7), "steps": 3}
several = check.runs(ranks=(1, 2, 3, 5), seed=lambda n: 10 * n, **holes)
added_up = [check.run(seed=5 + i, passes=2, last_skips=(2,), to_none=not i, **seven) for i in (0, 1)]
check.that("1 to 5 ranks, several layers, each parameter a bucket", several, alike, weight=2)
check.that("added up inside no_sync, not used in the last pass", added_up, alike)
by_step = check.run(seed=7, skips=((2,), (1,), ()), steps=3, **seven)
check.that("one layer in one step and another in the next, and then none", by_step, overlaps)
beside = check.run(seed=8, cap=300, beside=True)
check.that("two models, one beside the other", beside, alike)
check.that("no other messages", [never, some, *several], one_a_bucket)
check.that("the others still leave while backward runs", all_used, overlaps)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Torch calls this `find_unused_parameters=True`. It walks the graph before backward begins, so it knows at once what
# will not come, and the buckets behind need not wait for `finish()`. Nor does it need `finish()` to be called: a
# callback at the end of the backward pass does it. What no rank has used keeps the `.grad` it had, most often None. To
# plain SGD zeros are the same; momentum and weight decay move a parameter whose gradient is zero.

# %% [markdown]
# ## Beside torch's own
#
# One process with the whole batch, your `DDP`, and `torch.nn.parallel.DistributedDataParallel`, which has the same
# buckets and hooks in C++, on two ranks. Each rank begins with a seed of its own.
#
# **Guess first.** To how many digits will the losses agree?


# %%
def losses(kind, steps, samples, rate=0.5):
    rank, n = dist.get_rank(), dist.get_world_size()
    model = Model(seed=rank)
    if kind == "yours":
        wrapped = DDP(model, cap=400)
    elif kind == "torch's":
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
    else:
        wrapped = model
    x, y = (whole[rank::n] for whole in batch(number=0, samples=samples))
    seen = []
    for _ in range(steps):
        loss = (wrapped(x) - y).square().mean()
        seen.append(loss.item())
        loss.backward()
        if kind == "yours":
            wrapped.finish()
        with torch.no_grad():
            for p in model.parameters():
                p -= rate * p.grad
                p.grad = None
    return seen


if written("start_alike", "assign", "Bucket", "Overlapped", "Accumulating", "DDP"):
    columns = {}
    for kind, ranks in (("one process", 1), ("yours", WORLD_SIZE), ("torch's", min(2, WORLD_SIZE))):
        by_rank = launch(losses, kind, 41, 8 * WORLD_SIZE, world_size=ranks, device=DEVICE).returns
        columns[kind] = [sum(loss) / ranks for loss in zip(*by_rank, strict=True)]
    print("step", *(f"{kind:>12}" for kind in columns))
    for step in range(0, 41, 10):
        print(f"{step:4}", *(f"{column[step]:12.7f}" for column in columns.values()))

# %% [markdown]
# Sums over ranks are taken in another order than sums over a batch, and floating point knows the difference. That is
# the only one there may be.
#
# ## How large a bucket?
#
# This is a step of your `DDP`, drawn from what your ranks did: a model with 5 layers of 1 MiB of gradients each. The
# pale part of a bar is an all-reduce on its way while its rank computes, the solid part its rank waiting for it. Move
# the slider: every position is a new run.
#
# **Guess first.** What will you see with the smallest buckets, what with the largest?


# %%
def one_step(cap):
    rank, n = dist.get_rank(), dist.get_world_size()
    model = DDP(Model(seed=0, hidden=(512,) * 6), cap)
    x, y = (whole[rank::n] for whole in batch(number=0, samples=128 * n))
    for _ in range(2):  # the first step warms up
        loss = (model(x) - y).square().mean()
        dist.barrier()
        begin = time.time()
        loss.backward()
        model.finish()
        if x.is_cuda:
            torch.cuda.synchronize()
    return begin, time.time(), len(model.buckets)


def draw_a_step(cap):
    ranks = launch(one_step, cap, world_size=WORLD_SIZE, device=DEVICE, trace=True)
    begins, ends, buckets = zip(*ranks.returns, strict=True)
    span = max(ends) - min(begins)
    caption = f"{buckets[0]} bucket{'s' * (buckets[0] > 1)}; the backward pass and finish() took {1e3 * span:.1f} ms."
    return timeline(ranks.trace, begin=min(begins), span=span, caption=caption)


kib = 1024
slide(
    "bucket size",
    {"1 KiB": kib, "256 KiB": 256 * kib, "1 MiB": kib**2, "2 MiB": 2 * kib**2, "25 MiB": 25 * kib**2},
    draw_a_step,
)

# %% [markdown]
# Where the ranks share the cores of one machine, an all-reduce takes time from the backward pass it travels with, so a
# picture of four ranks on a laptop shows the overlap and little of its gain. On a GPU the copying is done beside the
# computing.

# %% [markdown]
# ## 9. In your own words
#
# Three to six sentences, with numbers. A backward pass of 200 ms makes 100 MB of gradients at an even pace. An
# all-reduce of m MB takes 0.5 + m ms, one at a time, and costs backward nothing. When is the last gradient there with
# one bucket, with buckets of 25 MB, of 1 MB, of 0.1 MB? Below which size do smaller buckets make it worse, and why
# there?

# %% [markdown] nbgrader={"grade_id": "how_large_a_bucket", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# A full answer says (one point each): one bucket leaves at 200 ms and takes 100.5 ms, so 300.5 ms; buckets of 25 MB are
# full at 50, 100, 150, 200 ms and take 25.5 ms, less than they take to fill, so only the last is seen: 225.5 ms, and
# with 1 MB 201.5 ms. Buckets of 0.1 MB are full every 0.2 ms and take 0.6 ms each: they queue, and 1000 of them end at
# about 600 ms. A bucket of m MB fills in 2m ms and travels in 0.5 + m ms; these are equal at m = 0.5, so below 0.5 MB
# the queue grows, and there the last gradient comes first, at 201 ms.
# ### END SOLUTION
