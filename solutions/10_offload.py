# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Past the GPU's memory
#
# ZeRO-3 divides parameters, gradients and the optimizer's numbers among N GPUs. What if a shard is still too large? A
# machine has more memory than its GPUs have: the host's memory, the CPU's, is often ten times as large. But between the
# two is a slow link. A GPU reads its own memory at some 3,000 GB/s; PCIe copies some 25 to 60 GB/s.
#
# In this lab you move the optimizer to the host (ZeRO-Offload, Ren et al., 2021), bring layers to the device only while
# they are computed (STRONGHOLD, Sun et al., 2022), and send numbers between ranks with one byte each (ZeRO++, Wang et
# al., 2023). All three exchange memory or time for something. You count both.
#
# A check shows a table: what was claimed, whether it holds, why not, and the points. It compares bits with torch's
# AdamW, counts bytes in both memories and on the link, and reads the order in which copies and computations began. It
# tries models, windows and numbers of ranks that you do not see here. The library has its own version of all this; a
# check refuses it.
#
# You need chapter 12 first. After this lab you can
#
# - step an optimizer on the host while copies are on their way (`OverlappedHostAdam`)
# - compute with a window of layers, and say how large it must be (`smallest_window`)
# - exchange numbers of one byte, and say which errors add up (`what_adds_up`)
#
# About 130 to 160 minutes. Wherever you see **Guess first**, do: write the number down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters, launch, slide, written

check_parameters()

from collections import deque

import torch
import torch.distributed as dist

from ringzero import all_gather, all_to_all, reduce_scatter
from ringzero.collectives import chunk_bounds
from ringzero_course.lab.tiers import Tiers

# %% [markdown]
# ## Two memories on one CPU
#
# Sections 1 to 5 need no GPU, and use none where there is one. Two *tiers* stand in for the two memories, and both are
# in this machine's memory. Inside `with Tiers(...)` each tensor belongs to the device or to the host:
#
# - what is made from nothing, such as `torch.zeros(3)`, is in host memory
# - what is computed is where its inputs are; an operation with inputs in both memories raises an error, as with a GPU
# - only the link brings a tensor to the other side
#
# ```python
# link.to_host(x)                  # a copy of x in host memory
# link.to_device(x)                # a copy of x in device memory
# copy = link.start_to_device(x)   # begins the copy and returns at once; start_to_host in the other direction
# copy.wait()                      # waits until it is there, and returns it
# ```
#
# A copy has the type of what was copied: 2 bytes a number in bf16, 4 in fp32. The link copies one tensor after another
# in each direction; the two directions do not disturb each other.
#
# Time is simulated. A copy takes its bytes over the link's bytes per second; a layer and an optimizer take a number of
# seconds for each parameter. So the clock shows the same on every machine, and you can predict it exactly.
#
# **Guess first.** The link copies 1,000 bytes a second. How many bytes does the device hold after the copy of 50 fp32
# numbers, and what does the clock show?
#
# <details><summary>Answer</summary>200 bytes: 50 numbers of 4 bytes. The clock shows 0.2 s.</details>


# %%
def try_the_link():
    with Tiers(bytes_per_second=1000) as tiers:
        x = torch.ones(50)
        y = tiers.link.to_device(x)
        print(f"device {tiers.held['device']} bytes, host {tiers.held['host']} bytes, {tiers.now} s")
        try:
            x + y
        except RuntimeError as error:
            print(error)
        copies = [tiers.link.start_to_host(y), tiers.link.start_to_device(x)]
        print(f"two copies begun at {tiers.now} s;", end=" ")
        copies = [copy.wait() for copy in copies]
        print(f"both are there at {tiers.now} s, since they go in opposite directions")


print(launch(try_the_link, world_size=1, device="cpu").output[0])

# %% [markdown]
# ## 1. What is where
#
# One rank's bytes under ZeRO-3, in three tiers: the device, the host's memory, a file on a disk. Ψ parameters, N ranks.
# Each rank has a shard of Ψ/N of everything. In `"mixed"` precision a parameter and its gradient have 2 bytes each. The
# optimizer needs an fp32 copy of the parameter, called its *master*, and two numbers: 4 + 8 bytes. In `"fp32"` a
# parameter and a gradient have 4 bytes, and master and states 4 + 8.
#
# - `states` says where masters and the optimizer's two numbers are: `"device"`, `"host"` or `"file"`. The step is done
#   on the device in the first case and on the host in the other two; the gradients are kept where the step is done.
# - `parameters` says where the shard is kept from which layers are gathered.
# - One layer of `layer` parameters at a time is whole on the device, with the parameters' bytes.
# - In fp32 the master *is* the parameter: where `parameters` and `states` name the same tier, it is there once.
# - Where N does not divide Ψ, the bytes of a rank are no whole number: do not round.
#
# (A file is counted once. A program that must survive a crash while it writes keeps two generations of it.)
#
# **Guess first.** 10 billion parameters, mixed precision, one GPU: 16 bytes a parameter are 160 GB. What is left on the
# GPU if masters and states are on the host? And if the parameters are there too, with layers of 300 million?
#
# <details><summary>Answer</summary>20.6 GB: 2 bytes a parameter, and one layer of 0.6 GB. The gradients are on the
# host, where the step is done. With the parameters there too, the layer alone: 0.6 GB.</details>


# %% nbgrader={"grade_id": "tier_bytes", "solution": true}
def tier_bytes(params, n, layer, states="device", parameters="device", precision="mixed"):
    """``(device, host, file)``: bytes of one of ``n`` ranks."""
    ### BEGIN SOLUTION
    shard = params / n
    each = 2 if precision == "mixed" else 4  # bytes of a parameter, and of a gradient
    held = {"device": each * layer, "host": 0, "file": 0}
    held["device" if states == "device" else "host"] += each * shard
    held[states] += 12 * shard
    if precision == "mixed" or parameters != states:
        held[parameters] += each * shard
    return held["device"], held["host"], held["file"]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_tier_bytes", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import offload

check = Check("tier_bytes", points=3, world_size=WORLD_SIZE, device="cpu")
check.meets(offload.tier_bytes)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("tier_bytes"):
    print("40 billion parameters, 8 GPUs, layers of 500 million, mixed precision; GB of one rank")
    for states, parameters in (("device", "device"), ("host", "device"), ("host", "host"), ("file", "file")):
        device, host, file = (size / 1e9 for size in tier_bytes(40e9, 8, 5e8, states, parameters))
        where = f"states: {states}, parameters: {parameters}"
        print(f"{where:36} device {device:5.1f}   host {host:5.1f}   file {file:5.1f}")

# %% [markdown]
# ## 2. AdamW on the host
#
# Masters and states go to the host, and so does the step. In a step
#
# 1. each gradient is copied to the host, in the type that it has,
# 2. `torch.optim.AdamW` steps the fp32 masters,
# 3. each parameter is copied back, in the parameter's type.
#
# **Guess first.** With bf16 parameters, how many bytes cross the link for each parameter in a step, out and back? A
# program that copies the gradients as fp32 and the masters as they are: how many?
#
# <details><summary>Answer</summary>2 out and 2 back. The other program: 4 and 4, twice as long on the link, for the
# same result.</details>
#
# Write `HostAdam`. `parameters` are in device memory, some may be bf16 and some fp32. `__init__` makes the masters from
# them, and `torch.optim.AdamW(masters, **adamw)`. `step()` follows a backward pass. A parameter whose `.grad` is None
# is not stepped, and nothing is copied for it. Afterwards every `.grad` is None. Each parameter stays the object it
# was, in the memory that it had: `p.copy_(...)` writes into it. Between steps the device holds the parameters and
# nothing else.


# %% nbgrader={"grade_id": "HostAdam", "solution": true}
class HostAdam:
    """AdamW for ``parameters`` in device memory; masters, states and the step are on the host."""

    def __init__(self, parameters, link, **adamw):
        self.parameters, self.link = list(parameters), link
        ### BEGIN SOLUTION
        self.masters = [torch.nn.Parameter(link.to_host(p).float()) for p in self.parameters]
        self.optimizer = torch.optim.AdamW(self.masters, **adamw)
        ### END SOLUTION

    @torch.no_grad()
    def step(self):
        """Step all parameters that have a gradient."""
        ### BEGIN SOLUTION
        stepped = [pair for pair in zip(self.parameters, self.masters, strict=True) if pair[0].grad is not None]
        for p, master in stepped:
            master.grad = self.link.to_host(p.grad).float()
            p.grad = None
        self.optimizer.step()
        for p, master in stepped:
            master.grad = None
            p.copy_(self.link.to_device(master.to(p.dtype)))
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_HostAdam", "grade": true, "points": 5}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import offload

check = Check("HostAdam", points=5, world_size=WORLD_SIZE, device="cpu")
check.meets(offload.host_adam)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3. While the link is busy
#
# `HostAdam` does one thing at a time. The backward pass, then the gradients out, then the step, then the parameters
# back. But the gradient of the last layer is complete long before that of the first. And while one vector is stepped,
# the one before can be on its way back.
#
# **Guess first.** A model has 1,128 parameters in bf16. The link copies 2,000 bytes a second each way, the host steps
# 800 parameters a second, the backward pass comes by 500 parameters a second. How long are the copies out, the step,
# and the copies back, one after another? Which of the three is the longest? About how long is the update if the other
# two go on beside it?
#
# <details><summary>Answer</summary>1.13 s, 1.41 s and 1.13 s: 3.67 s. The step is the longest. With the copies beside
# it, a little more than the step alone: the last vector's copy back has no step to go on beside.</details>
#
# Write `OverlappedHostAdam`.
#
# - During the backward pass: `p.register_post_accumulate_grad_hook(f)` calls `f(p)` as soon as `p.grad` is complete.
#   Begin its copy there, and let `p.grad` go: set it to None. Do not wait.
# - `step()`: for one vector after another, in the order in which the backward pass was done with them: wait for its
#   gradient, step this vector *alone*, begin to copy it back. Only when all are stepped, wait for what comes back, and
#   write it into the parameters.
# - A second backward pass before the step adds to the first, in fp32, on the host.
#
# `torch.optim.AdamW` leaves out every parameter whose `.grad` is None. So one optimizer can step one master at a time.
#
# (A class is built on the one that its name meant when its cell ran. When you change `HostAdam`, run this cell again.)


# %% nbgrader={"grade_id": "OverlappedHostAdam", "solution": true}
class OverlappedHostAdam(HostAdam):
    """As ``HostAdam``; copies go on during the backward pass and between the steps of single vectors."""

    def __init__(self, parameters, link, **adamw):
        super().__init__(parameters, link, **adamw)
        ### BEGIN SOLUTION
        self.master_of = dict(zip(self.parameters, self.masters, strict=True))
        self.leaving = {}  # parameter -> copies of its gradients, one for each backward pass; the first done is first
        for p in self.parameters:
            p.register_post_accumulate_grad_hook(self.gradient_ready)
        ### END SOLUTION

    def gradient_ready(self, p):
        """The gradient of parameter ``p`` is complete."""
        ### BEGIN SOLUTION
        self.leaving.setdefault(p, []).append(self.link.start_to_host(p.grad))
        p.grad = None
        ### END SOLUTION

    @torch.no_grad()
    def step(self):
        """Step vector after vector."""
        ### BEGIN SOLUTION
        returning = []
        for p, copies in self.leaving.items():
            master, gradients = self.master_of[p], [copy.wait().float() for copy in copies]
            master.grad = sum(gradients)
            self.optimizer.step()
            master.grad = None
            returning.append((p, self.link.start_to_device(master.to(p.dtype))))
        self.leaving = {}
        for p, copy in returning:
            p.copy_(copy.wait())
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_OverlappedHostAdam", "grade": true, "points": 5}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import offload

check = Check("OverlappedHostAdam", points=5, world_size=WORLD_SIZE, device="cpu")
check.meets(offload.overlapped)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# The clock of one step of each, in seconds, and what the device, the link and the host did.


# %%
def one_step(make):
    from ringzero_course.lab.subjects import offload

    report = offload.train(make, seed=0, steps=1)
    return report["events"], report["seconds"], offload.SIZES


def draw_one_step(make):
    from ringzero_course.lab.shown.two_tiers import two_tiers

    events, _, sizes = launch(one_step, make, world_size=1, device="cpu").returns[0]
    begin = next(start for kind, _, start, _ in events[0] if kind == "backward")
    caption = f"One step of {make.__name__}. Numbers are those of the parameters."
    return two_tiers([*events[0], *events[1]], sizes, begin=begin, span=6.0, caption=caption)


if written("HostAdam", "OverlappedHostAdam"):
    for make in (HostAdam, OverlappedHostAdam):
        _, (backward, update), sizes = launch(one_step, make, world_size=1, device="cpu").returns[0]
        print(f"{make.__name__:20} backward {backward:.3f} s, then {update:.3f} s")
    total = sum(sizes)
    print(f"copies out {total / 1000:.3f} s, step {total / 800:.3f} s, copies back {total / 1000:.3f} s")
    print(f"all three, one after another: {total / 1000 + total / 800 + total / 1000:.3f} s")

# %%
slide("step of", {"HostAdam": 0, "OverlappedHostAdam": 1}, lambda i: draw_one_step((HostAdam, OverlappedHostAdam)[i]))

# %% [markdown]
# What is left after the backward pass is the step itself and the last copy back, which has no step to hide behind.
# ZeRO-Offload hides the step too: it runs beside the next forward and backward pass, which then compute with parameters
# that are one step older.
#
# ## 4. A window of layers
#
# Now the parameters are on the host, and a layer comes to the device when it is needed. With room for one layer only,
# the device waits for every copy. With room for k layers, the next copies go on while a layer is computed.
#
# At most k layers are on the device: the one that is computed, and up to k − 1 that are there already or on their way.
# When a layer is computed, its memory is free for the next copy.
#
# **Guess first.** Copying a layer takes 1 s, computing it 1 s. How long is a forward pass through 7 layers with k = 1?
# With k = 2? And with k = 7?
#
# <details><summary>Answer</summary>14 s with k = 1, since nothing goes on beside anything. 8 s with k = 2: only the
# first copy is waited for. 8 s with k = 7, too.</details>
#
# Write two functions. `vectors[i]`, in host memory, has the parameters of layer i, and stays what it was.
#
# - `forward_through_window(vectors, x, k, link, compute)` calls `compute(i, vector, x)` for each layer, with the vector
#   in device memory; it returns the layer's output. It returns `(output, inputs)`: the last output, and the list of
#   what each layer was given, which the backward pass needs.
# - `backward_through_window(vectors, inputs, gradient, k, link, differentiate)` takes the layers from last to first.
#   `differentiate(i, vector, x, gradient)`, with `inputs[i]` as `x` and the gradient of the layer's output, returns
#   `(the gradient of x, the gradient of the vector)`, both on the device. It returns `(gradient of the first input,
#   gradients)`, where `gradients[i]` is that of `vectors[i]`, in host memory. Begin the copy of a gradient as soon as
#   it is there; wait for none before the last layer is computed.
#
# Each layer is copied to the device once in each pass. When layer i is computed, the copies of all layers that the
# window has room for have begun, and your code has waited for no layer that comes after it.
#
# A name keeps its tensor alive. After `w = copy.wait()` the memory of w is free when you say `del w`, or when w names
# another tensor. A new copy that begins before that is one layer too many.


# %% nbgrader={"grade_id": "through_window", "solution": true}
def forward_through_window(vectors, x, k, link, compute):
    """The layers' output for ``x``, and each layer's input; at most ``k`` layers are on the device."""
    ### BEGIN SOLUTION
    inputs, coming = [], deque()
    for i in range(len(vectors)):
        while len(coming) < k and i + len(coming) < len(vectors):
            coming.append(link.start_to_device(vectors[i + len(coming)]))
        inputs.append(x)
        x = compute(i, coming.popleft().wait(), x)
    return x, inputs
    ### END SOLUTION


def backward_through_window(vectors, inputs, gradient, k, link, differentiate):
    """The gradient of the first input, and in host memory that of every vector."""
    ### BEGIN SOLUTION
    leaving, coming = {}, deque()
    for i in reversed(range(len(vectors))):
        while len(coming) < k and i - len(coming) >= 0:
            coming.append(link.start_to_device(vectors[i - len(coming)]))
        gradient, of_vector = differentiate(i, coming.popleft().wait(), inputs[i], gradient)
        leaving[i] = link.start_to_host(of_vector)
        del of_vector
    return gradient, [leaving[i].wait() for i in range(len(vectors))]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_through_window", "grade": true, "points": 6}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import offload

check = Check("forward_through_window", points=6, world_size=WORLD_SIZE, device="cpu")
check.meets(offload.window)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 5. How large a window?
#
# A larger window takes memory. Does it save time? Layers are copied one at a time, in order. A copy begins when the
# copy before it has ended and a place in the window is free: layer i + k can come when layer i is computed. A layer is
# computed when it is there and the layer before it is computed.
#
# **Guess first.** Every layer takes 2 s to copy and 1 s to compute. Is k = 3 faster than k = 2? And if it is 1 s and
# 2 s? When could k = 3 be faster at all?
#
# <details><summary>Answer</summary>No, in both: with k = 2 the link, or the device, never waits after the first layer.
# Where layers differ it can be: the copy of a large one must begin several small ones ahead.</details>
#
# Write `smallest_window`, for the forward pass. `copies[i]` and `computes[i]` are the seconds of layer i. It returns
# `(k, seconds)`: the smallest k with which the pass is as fast as with all layers on the device, and how long it takes.
# A loop over the layers is enough. Sums of floats differ in the last bits: take times as equal within 1e-9 of
# each other.


# %% nbgrader={"grade_id": "smallest_window", "solution": true}
def smallest_window(copies, computes):
    """``(k, seconds)``: the smallest window that loses no time, and the seconds of a forward pass with it."""
    ### BEGIN SOLUTION
    layers = len(copies)

    def seconds(k):
        copied, done = 0.0, []
        for i in range(layers):
            free = done[i - k] if i >= k else 0.0
            copied = max(copied, free) + copies[i]
            done.append(max(copied, done[-1] if done else 0.0) + computes[i])
        return done[-1]

    best = seconds(layers)
    k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
    return k, seconds(k)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_smallest_window", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import offload

check = Check("smallest_window", points=3, world_size=WORLD_SIZE, device="cpu")
check.meets(offload.smallest_window)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# The clock of your forward pass through seven layers for each window, and what `smallest_window` says of the same
# layers.


# %%
def forward_passes(forward):
    from ringzero_course.lab.subjects import offload

    sizes = offload.sizes_of(offload.WIDTHS)
    took = [offload.through(forward, None, seed=0, k=k)["forward"]["seconds"] for k in range(1, len(sizes) + 1)]
    copies = [4 * size / offload.WINDOW_BYTES_PER_SECOND for size in sizes]
    return took, copies, [size / offload.FORWARDS_PER_SECOND for size in sizes]


if written("forward_through_window", "smallest_window"):
    took, copies, computes = launch(forward_passes, forward_through_window, world_size=1, device="cpu").returns[0]
    print("window ", *(f"{k:7}" for k in range(1, len(took) + 1)))
    print("seconds", *(f"{seconds:7.3f}" for seconds in took))
    print("smallest_window says k = {}, {:.3f} s".format(*smallest_window(copies, computes)))

# %% [markdown]
# These seven layers have about the same size. With k = 2 and computing slower than copying, the device waits for the
# first layer only. With copying slower, the link never waits. So a third place saves nothing. It does save time where
# one layer is much larger than the others: its copy takes as long as the computation of several small layers, and so it
# must begin several layers ahead.
#
# ## 6. A byte for a number
#
# Between nodes the network is slower than PCIe. There it pays to send fewer bits. Cut a vector into blocks of
# `block` numbers; the last block may be shorter. A block with the largest magnitude m has the scale s = m/127. Each
# number x of it becomes the integer round(x/s), between −127 and 127, one byte. Back again, it is the integer times s.
#
# **Guess first.** A block's largest number is 2.54. How far off can a number be? What does one number that is 100 times
# as large as all others do to the block? And what is the payload of 1,000 numbers in blocks of 256, in bytes?
#
# <details><summary>Answer</summary>By 0.01, half of the scale 2.54/127 = 0.02. One number that is 100 times as large
# makes the scale 100 times as large: the others become −1, 0 or 1. The payload is 1,000 + 4 · 4 = 1,016
# bytes.</details>
#
# Write both. `quantise` returns the integers (`torch.int8`, as many as `x` has) and the scales (`torch.float32`, one a
# block). `dequantise` returns fp32. `x` is 1-D, fp32 or bf16, and may be empty. A block may be all zeros: they stay
# zeros. Neither function changes what it was given, and each call returns new tensors.


# %% nbgrader={"grade_id": "quantise", "solution": true}
def quantise(x, block):
    """``(integers, scales)``: x is about integers · scale, in blocks of ``block`` numbers."""
    ### BEGIN SOLUTION
    scales = torch.zeros(-(-x.numel() // block))
    integers = torch.zeros(x.numel(), dtype=torch.int8)
    for i, part in enumerate(x.float().split(block) if x.numel() else []):
        scales[i] = part.abs().max() / 127
        if scales[i] > 0:
            integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.int8)
    return integers, scales
    ### END SOLUTION


def dequantise(integers, scales, block):
    """What ``quantise`` was given, about."""
    ### BEGIN SOLUTION
    return integers.float() * scales.repeat_interleave(block)[: integers.numel()]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_quantise", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import quantised

check = Check("quantise", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(quantised.quantise)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7. Gather integers
#
# In ZeRO-3 every rank has a shard of the parameters, the exact master copy, and gathers the rest. Now the shards travel
# as integers and scales: a quarter of the bytes of fp32, half of those of bf16.
#
# Rank r's shard is chunk r of `chunk_bounds(numel, N)`, so shards may differ by one number, and may be empty. The
# `all_gather(vector)` of lab 02 works in place, and cuts what it is given into N chunks. If every rank's row of a
# matrix of N rows is equally long, row r *is* chunk r of `matrix.view(-1)`: make the rows as long as the longest shard
# needs, and leave the rest of a shorter one unused. It takes integers too. Of torch's own collectives you may use
# `dist.all_gather`.
#
# **Guess first.** After the gather, rank 0 has rank 1's shard off by up to half a step. And its own, which it has
# exactly? All ranks must compute with the *same* parameters. What follows?
#
# <details><summary>Answer</summary>It must compute with the rounded numbers of its own shard, too: those that all
# others got.</details>
#
# Write `quantised_gather`. `shard` stays what it was.


# %% nbgrader={"grade_id": "quantised_gather", "solution": true}
def quantised_gather(shard, numel, block):
    """The vector of ``numel`` numbers of which this rank has ``shard``: the same bits on every rank."""
    ### BEGIN SOLUTION
    n, rank = dist.get_world_size(), dist.get_rank()
    bounds = chunk_bounds(numel, n).tolist()
    sizes = [stop - start for start, stop in zip(bounds, bounds[1:], strict=False)]
    integers = torch.zeros(n, max(sizes), dtype=torch.int8)
    scales = torch.zeros(n, -(-max(sizes) // block))
    mine, its_scales = quantise(shard, block)
    integers[rank, : mine.numel()] = mine
    scales[rank, : its_scales.numel()] = its_scales
    all_gather(integers.view(-1))
    all_gather(scales.view(-1))
    return torch.cat([dequantise(integers[r, :size], scales[r], block) for r, size in enumerate(sizes)])
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_quantised_gather", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import quantised

check = Check("quantised_gather", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(quantised.gather)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 8. Sum up integers
#
# Gradients are added up: each rank needs its chunk of the sum over ranks. A ring passes partial sums from rank to rank.
# With integers on the wire each of the N − 1 hops would round again. An all-to-all rounds once: rank r sends chunk d of
# its vector to rank d, as integers. Rank d turns each of the N parts that arrive into fp32, each with its own scales,
# and adds those up.
#
# `all_to_all(output, input)` sends chunk d of `input` to rank d, and puts what rank r sends at place r of `output`.
# Rows of equal length help here, too. Of torch's own collectives you may use `dist.all_to_all_single`.
#
# **Guess first.** Why not add up the integers, which are smaller? In which type would 4 ranks' sums fit, and which
# scale would the sum have?
#
# <details><summary>Answer</summary>Each rank's integers have another scale, so their sum means nothing. With one scale
# for all ranks, a sum of four is up to 508: int16, twice the bytes, and the ranks would have to agree on the scale
# first.</details>
#
# Write `quantised_reduce_scatter`. It returns this rank's chunk of the sum, in fp32, and leaves `vector` as it was.


# %% nbgrader={"grade_id": "quantised_reduce_scatter", "solution": true}
def quantised_reduce_scatter(vector, block):
    """This rank's chunk of the sum over ranks of ``vector``; every part travels as integers."""
    ### BEGIN SOLUTION
    n, rank = dist.get_world_size(), dist.get_rank()
    bounds = chunk_bounds(vector.numel(), n).tolist()
    longest = max(stop - start for start, stop in zip(bounds, bounds[1:], strict=False))
    integers = torch.zeros(n, longest, dtype=torch.int8)
    scales = torch.zeros(n, -(-longest // block))
    for r in range(n):
        part, its_scales = quantise(vector[bounds[r] : bounds[r + 1]], block)
        integers[r, : part.numel()] = part
        scales[r, : its_scales.numel()] = its_scales
    got, got_scales = torch.empty_like(integers), torch.empty_like(scales)
    all_to_all(got.view(-1), integers.view(-1))
    all_to_all(got_scales.view(-1), scales.view(-1))
    mine = bounds[rank + 1] - bounds[rank]
    return sum(dequantise(got[r, :mine], got_scales[r], block) for r in range(n))
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_quantised_reduce_scatter", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import quantised

check = Check("quantised_reduce_scatter", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(quantised.reduce)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## Does it still train?
#
# 100 steps of gradient descent on a noisy linear problem of 503 parameters, four ways: exact numbers on the wire;
# quantised weights; quantised weights and gradients; and quantised weights where each rank also quantises its *shard*
# after each step, so that there is no exact master copy. The loss at the end is that of the shards as they are.
#
# **Guess first.** Which of the four do not come down to the loss of the first?
#
# <details><summary>Answer</summary>Only the last, whose masters are quantised.</details>


# %%
WAYS = {
    "exact": (False, False, False),
    "weights": (True, False, False),
    "weights and gradients": (True, True, False),
    "weights, and masters": (True, False, True),
}


def train_on(wires, size=503, block=64, steps=100, rate=0.2):
    """The mean squared error at the end, with what is to be quantised: weights, gradients, masters."""
    weights, gradients, masters = wires
    rank, n = dist.get_rank(), dist.get_world_size()
    start, stop = chunk_bounds(size, n)[rank : rank + 2].tolist()
    here, source = torch.get_default_device(), torch.Generator("cpu").manual_seed(1)
    right = torch.randn(size, generator=source, device="cpu").to(here)
    source.manual_seed(2 + rank)
    inputs = torch.randn(1600 // n, size, generator=source, device="cpu").to(here)
    targets = inputs @ right + torch.randn(1600 // n, generator=source, device="cpu").to(here)
    shard = torch.zeros(stop - start)

    def gathered():
        whole = torch.zeros(size)
        whole[start:stop] = shard
        return all_gather(whole)

    for _ in range(steps):
        off = inputs @ (quantised_gather(shard, size, block) if weights else gathered()) - targets
        gradient = inputs.T @ off / 1600
        mine = quantised_reduce_scatter(gradient, block) if gradients else reduce_scatter(gradient)
        shard = shard - rate * mine
        if masters:
            shard = dequantise(*quantise(shard, block), block)
    loss = (inputs @ gathered() - targets).square().sum().reshape(1)
    dist.all_reduce(loss)
    return loss.item() / (1600 // n * n)


if written("quantise", "quantised_gather", "quantised_reduce_scatter"):
    found = launch(lambda: [train_on(wires) for wires in WAYS.values()], world_size=WORLD_SIZE, device=DEVICE)
    for way, loss in zip(WAYS, found.returns[0], strict=True):
        print(f"{way:22} mean squared error {loss:.4f}")

# %% [markdown]
# The exact masters make the difference. Where they are quantised, a step that moves a number by less than half of its
# block's step is rounded away, in every step anew.
#
# ## Beside the library
#
# The library's ZeRO-3 with the states on the host, in mixed precision, on real ranks: bytes that its tensors take in
# each memory before a step, beside your `tier_bytes`.
#
# **Guess first.** After the backward pass no layer is gathered. Which argument of `tier_bytes` says so?
#
# <details><summary>Answer</summary>layer = 0.</details>


# %%
def held_by_the_library():
    from ringzero.zero import Host, ZeroStage3, resident

    found = []
    for parameters in (False, True):
        torch.manual_seed(0)
        module = torch.nn.Sequential(*[torch.nn.Linear(64, 64, bias=False) for _ in range(4)])
        how = {"units": list(module), "mixed_precision": torch.bfloat16, "home": Host(parameters=parameters)}
        model = ZeroStage3(module, torch.optim.AdamW, lr=1e-3, **how)
        for _ in range(2):  # AdamW makes its states in the first step
            model(torch.randn(2, 64)).float().square().mean().backward()
            held = resident(model)
            model.step()
            model.zero_grad()
        found.append((held["device"], held["host"]))
    return found


if written("tier_bytes"):
    measured = launch(held_by_the_library, world_size=WORLD_SIZE, device="cpu").returns[0]
    for parameters, (device, host) in zip(("device", "host"), measured, strict=True):
        on_device, on_host, _ = tier_bytes(4 * 64 * 64, WORLD_SIZE, 0, "host", parameters)
        print(f"states on the host, parameters on the {parameters}:")
        print(f"    device {device:,} bytes, yours {on_device:,.0f}; host {host:,}, yours {on_host:,.0f}")

# %% [markdown]
# ## 9. In your own words
#
# Three to six sentences, with numbers. 40 billion parameters, 8 GPUs of 80 GB in one node, mixed precision, PCIe of 25
# GB/s for each GPU in each direction, a host that steps one billion parameters a second for each GPU. With ZeRO-3 and
# the states on the host: what is on each GPU, what is on the host in all, how long are the copies of a step, how long
# is the step, and which of them is worth hiding? Then: weights are quantised anew in every step. Why do their errors
# not add up, while those of quantised gradients might? And why does training stop early where the masters are
# quantised too?

# %% [markdown] nbgrader={"grade_id": "what_adds_up", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. A shard is 5 billion parameters. 10 GB of bf16 parameters are on each GPU, and a layer that is gathered. Gradients,
#    masters and states are 14 bytes a parameter: 70 GB a GPU and 560 GB in all on the host. (With all on the GPU it
#    would be 80 GB.)
# 2. 10 GB go out and 10 GB come back, 0.4 s each. The step takes 5 s, more than ten times as long. Overlapping the
#    copies saves at most 0.8 s; the step itself is what must be hidden, behind the next forward and backward pass (a
#    delayed step), or made faster.
# 3. Weights: each gather rounds the exact masters anew, so the error of a step is half a quantisation step at most and
#    does not depend on the errors before. A gradient's error goes into the states and the masters, and stays; errors
#    without a bias average out over ranks and steps, a biased rounding adds up. Where masters are quantised, an update
#    smaller than half a quantisation step is rounded away every time, so training stops while the gradient is not 0.
#
# Three answers and their points:
#
# > Each GPU keeps 5 billion parameters in bf16, 10 GB, and for a moment a gathered layer. The host holds 14 · 40
# > billion = 560 GB. The copies take 0.4 s out and 0.4 s back, the Adam step 5 s, so hiding the copies hardly helps
# > and one must hide the step. Weights are rounded from exact masters every time, so yesterday's error is gone; a
# > gradient's error is added into the master and stays. If the master is quantised, small steps round to nothing.
#
# 3 points: all three.
#
# > 10 GB on each GPU and 560 GB on the host. The copies take 0.8 s, so they should overlap with the backward pass.
# > Quantised weights come from the masters, so their errors are new in each step. Gradient errors are summed up in
# > the masters. Quantised masters lose small updates.
#
# 2 points: the first and the third. The step of 5 s is missing, and it is the part worth hiding.
#
# > ZeRO-3 puts 80 GB on each GPU, so it does not fit. Quantisation makes errors, and they add up, so training
# > diverges.
#
# 0 points: with the states on the host 10 GB stay, and errors of weights do not add up.
# ### END SOLUTION
