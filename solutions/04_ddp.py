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
# You need chapters 6 and 6b first. After this lab you can
#
# - average gradients so that N ranks train as one process does (`average_in_hooks`)
# - send buckets while the backward pass goes on (`Overlapped`)
# - accumulate without sending, and cope with parameters that get no gradient (`DDP`)
# - compute how large a bucket should be (`how_large_a_bucket`)
#
# About 100 to 130 minutes. Wherever you see **Guess first**, do: write it down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters, launch, slide, written

check_parameters()

import time
from contextlib import contextmanager

import torch
import torch.distributed as dist

from ringzero_course.figures import timeline
from ringzero_course.lab.harness.training import Model, batch

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
# <details><summary>Answer</summary>Two ranks have three samples, two have two. One of two counts 1/8 of the whole,
# one of three 1/12: half as much again.</details>
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
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import replicas

check = Check("loss_of_part", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(replicas.loss_of_part)
### BEGIN HIDDEN TESTS
check.hidden_cases()
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
# <details><summary>Answer</summary>Frozen parameters, and buffers, such as the running mean of a batch
# norm.</details>
#
# Write `start_alike`: all of rank 0's state goes to everyone, in place, by one `dist.broadcast` for each tensor. Frozen
# parameters count, and all buffers, those that no checkpoint holds too. What two layers share, a weight or a buffer, is
# one tensor. Send `p.detach()`: it is the same memory, and no part of any graph.


# %% nbgrader={"grade_id": "start_alike", "solution": true}
def start_alike(module):
    """Give every rank the parameters and buffers of rank 0."""
    ### BEGIN SOLUTION
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src=0)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_start_alike", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import replicas

check = Check("start_alike", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(replicas.start_alike)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3. A hook on each parameter
#
# The first plan: as soon as a gradient is complete, sum it over the ranks, wait for that, and divide by N.
#
# **Guess first.** What is the hook called with, the gradient or the parameter?
#
# <details><summary>Answer</summary>The parameter. Its gradient is `parameter.grad`.</details>
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
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import replicas

check = Check("average_in_hooks", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(replicas.average_in_hooks)
### BEGIN HIDDEN TESTS
check.hidden_cases()
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
# <details><summary>Answer</summary>From the last: 20 and 30 bytes fill the first one, 10 and 40 the second: `[[3, 2],
# [1, 0]]`.</details>
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
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import replicas

check = Check("assign", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(replicas.assign)
### BEGIN HIDDEN TESTS
check.hidden_cases()
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
# <details><summary>Answer</summary>Nothing: neither read it nor write to it.</details>
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
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import replicas

check = Check("Bucket", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(replicas.bucket)
### BEGIN HIDDEN TESTS
check.hidden_cases()
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
# <details><summary>Answer</summary>8 ms: every 10 ms a bucket is full, which takes 8 ms, so that only the last one is
# seen. With one bucket all 80 ms.</details>
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
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import replicas

check = Check("Overlapped", points=6, world_size=WORLD_SIZE, device=DEVICE)
check.meets(replicas.overlapped)
### BEGIN HIDDEN TESTS
check.hidden_cases()
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
# <details><summary>Answer</summary>Seven eighths. The result is the same, but for rounding.</details>
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
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import replicas

check = Check("Accumulating", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(replicas.accumulating)
### BEGIN HIDDEN TESTS
check.hidden_cases()
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
# <details><summary>Answer</summary>On rank 0: 2, 1, 0. On rank 1: 2, 0. Rank 0's layer 1 and rank 1's layer 0 are
# added up, and rank 0's layer 0 waits for ever.</details>
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
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import replicas

check = Check("DDP", points=5, world_size=WORLD_SIZE, device=DEVICE)
check.meets(replicas.ddp)
### BEGIN HIDDEN TESTS
check.hidden_cases()
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
#
# <details><summary>Answer</summary>To five or six: single precision has seven, and the sums are taken in another
# order.</details>


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
#
# <details><summary>Answer</summary>With the smallest many short all-reduces, each with its fixed cost; with the
# largest a single one when backward is over.</details>


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
# One point for each of these:
#
# 1. One bucket leaves at 200 ms and takes 100.5 ms: 300.5 ms. Buckets of 25 MB are full at 50, 100, 150 and 200 ms and
#    take 25.5 ms, less than they take to fill, so only the last is seen: 225.5 ms. With 1 MB: 201.5 ms.
# 2. Buckets of 0.1 MB are full every 0.2 ms and take 0.6 ms each, so they queue: 1,000 of them end at about 600 ms.
# 3. A bucket of m MB fills in 2m ms and travels in 0.5 + m ms. These are equal at m = 0.5, so below 0.5 MB the queue
#    grows. At 0.5 MB the last gradient comes first, at 201 ms.
#
# Three answers and their points:
#
# > One bucket: 200 + 100.5 = 300.5 ms. 25 MB: the first three are hidden, the last one ends at 200 + 25.5 = 225.5 ms.
# > 1 MB: 201.5 ms. 0.1 MB: 1,000 messages of 0.6 ms cannot end before 600 ms. A bucket must travel in the time in
# > which the next one fills: 0.5 + m ≤ 2m, so m ≥ 0.5 MB. Below that they wait for each other.
#
# 3 points: all three.
#
# > 300.5 ms with one bucket, 225.5 ms with 25 MB, 201.5 ms with 1 MB and 200.6 ms with 0.1 MB. So smaller is always
# > better here, until the latency of 0.5 ms is larger than the message.
#
# 1 point: the first. 200.6 ms forgets that the buckets before the last still queue, and no size is named.
#
# > Small buckets overlap better, but each has a latency. I would take 25 MB like PyTorch.
#
# 0 points: no time is computed.
# ### END SOLUTION
