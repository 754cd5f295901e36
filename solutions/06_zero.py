# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # ZeRO
#
# In data-parallel training every rank holds all parameters, all gradients and all of the optimizer's numbers, the same
# on each. N copies of everything, of which one would do. ZeRO (Rajbhandari et al., 2020) cuts that up: every rank
# *owns* a shard, and gets from the others what it needs, when it needs it. Stage 1 shards the optimizer's numbers,
# stage 2 the gradients too, stage 3 the parameters too.
#
# In this lab you build all three. They fit on a page each, since they are the same step with less and less kept.
#
# Your code runs on real ranks. A check shows a table: what was claimed, whether it holds, why not, and the points. It
# compares with torch's AdamW in one process, measures the bytes that each rank holds at every moment of a step, counts
# the bytes that it sends, and tries models and numbers of ranks that you do not see here. Anyone can call plain data
# parallelism "ZeRO": the values are the same. The bytes are not. The library has ZeRO, too, in `ringzero.zero`, and its
# bytes in `ringzero.costs`; a check refuses them.
#
# You need chapter 11 and lab 4 first. After this lab you can
#
# - predict what a rank holds and sends at each stage of ZeRO (`plan`)
# - write stages 1 to 3 so that they train as one process does (`Zero3`)
# - clip by the norm of a gradient that no rank has whole (`clip`)
#
# About 120 to 160 minutes. Wherever you see **Guess first**, do: write it down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters, launch, slide, written

check_parameters()

import torch
import torch.distributed as dist

from ringzero import all_gather, reduce_scatter
from ringzero.collectives import chunk_bounds

# %% [markdown]
# ## What you have
#
# `reduce_scatter(vector)` and `all_gather(vector)` are those of lab 02: the ring, in place, for any number of elements.
# Rank r's chunk is `vector[bounds[r] : bounds[r + 1]]` with `bounds = chunk_bounds(numel, N)`. `reduce_scatter`
# *returns* this rank's chunk of the sum, a view of `vector`; all the rest of `vector` is rubbish afterwards.
# `all_gather` fills `vector` with everybody's chunks.


# %%
def both():
    rank = dist.get_rank()
    vector = torch.arange(6.0) + 10 * rank
    mine = reduce_scatter(vector).tolist()
    vector = torch.full((6,), float(rank))
    return mine, all_gather(vector).tolist()


launch(both, world_size=WORLD_SIZE, device=DEVICE)

# %% [markdown]
# And the AdamW of lab 05, for any tensor: a parameter, a row of it, or a shard of a vector. It looks at each element on
# its own, so that it does not matter. (`eps` is larger than usual. Otherwise rounding would decide about a step whose
# gradient is nearly 0, and no two runs on different numbers of ranks could be compared.)


# %%
@torch.no_grad()
def adamw(parameter, gradient, state, lr=1e-2, betas=(0.9, 0.999), eps=1e-5, weight_decay=0.01):
    """One step of AdamW, in place. ``state``, a dict that is empty at first, keeps two numbers for each element."""
    if not state:
        state.update(step=0, exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter))
    state["step"] += 1
    state["exp_avg"].lerp_(gradient, 1 - betas[0])
    state["exp_avg_sq"].lerp_(gradient.square(), 1 - betas[1])
    mean = state["exp_avg"] / (1 - betas[0] ** state["step"])
    square = state["exp_avg_sq"] / (1 - betas[1] ** state["step"])
    parameter.mul_(1 - lr * weight_decay).sub_(lr * mean / (square.sqrt() + eps))


# %% [markdown]
# ## 1. Predict
#
# All of this lab is in fp32: 4 bytes for a parameter, 4 for its gradient, 8 for AdamW's two numbers. Ψ parameters, N
# ranks, each with a shard of Ψ/N.
#
# - Stage 0, plain data parallelism: all-reduces the gradients.
# - Stage 1: each rank steps only the parameters it owns. What must it be told of the gradient for that? And of the
#   others' parameters afterwards?
# - Stage 2: the same, but gradients that it does not own are given away during the backward pass.
# - Stage 3: it keeps only its shard of the parameters. Whoever computes with a layer gathers it, in the forward pass
#   and once more in the backward pass.
#
# An all-reduce is a reduce-scatter and an all-gather. Each of these makes a rank send (N−1)/N of the vector.
#
# **Guess first.** Which stage sends more than stage 0, and how much more?
#
# <details><summary>Answer</summary>Stage 3: half as much again, three vectors in place of two.</details>
#
# Write `plan`: the four numbers, in bytes on *one* rank. Gradients are those held when the backward pass ends, before
# `reduce()` is called; a single layer that is gathered for a moment does not count. Where N does not divide Ψ, do not
# round.


# %% nbgrader={"grade_id": "plan", "solution": true}
def plan(stage, params, n):
    """``(parameters, gradients, states, sent)``: bytes that a rank holds of each, and that it sends in a step."""
    ### BEGIN SOLUTION
    shard = params / n
    parameters = 4 * (shard if stage >= 3 else params)
    gradients = 4 * (shard if stage >= 2 else params)
    states = 8 * (shard if stage >= 1 else params)
    vectors = 3 if stage == 3 else 2
    return parameters, gradients, states, 4 * vectors * params * (n - 1) / n
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_plan", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import sharding

check = Check("plan", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(sharding.plan)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 2. One vector
#
# The parameters of a layer are laid end to end in one vector, and the vector is cut into N shards as equal as whole
# elements allow. A shard begins and ends anywhere, in the middle of a weight for instance.
#
# The parameters become *views* of the vector: `p.data = ...` gives a parameter other memory, and it stays the object
# that it was. So what an all-gather writes into the vector is at once what the layer computes with, and there is no
# second copy.
#
# **Guess first.** A `Linear(33, 33)` has 33 · 33 + 33 parameters. On 4 ranks, how many does each own?
#
# <details><summary>Answer</summary>280 or 281 of the 1,122.</details>
#
# Write `Flat`. `parameters` may be a generator, such as `layer.parameters()`, which can be gone through once only.
#
# - `self.parameters`, the list of them; `self.whole`, the 1-D vector
# - `self.owned`, a `slice`: what of `whole` this rank owns. `self.shard` is `whole[owned]`, no copy.
# - each parameter is a view of `whole`, in its shape, with the values it had


# %% nbgrader={"grade_id": "Flat", "solution": true}
class Flat:
    """``parameters`` laid end to end in one vector, of which this rank owns a shard."""

    def __init__(self, parameters):
        ### BEGIN SOLUTION
        self.parameters = list(parameters)
        self.whole = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        for p, part in zip(self.parameters, self.whole.split([p.numel() for p in self.parameters]), strict=True):
            p.data = part.view(p.shape)
        rank, n = dist.get_rank(), dist.get_world_size()
        start, stop = chunk_bounds(self.whole.numel(), n)[rank : rank + 2].tolist()
        self.owned = slice(start, stop)
        self.shard = self.whole[self.owned]
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_Flat", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import sharding

check = Check("Flat", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(sharding.flat)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3. A shard of the mean gradient
#
# **Guess first.** Lab 04 all-reduced the gradients. A rank that steps only its shard of the parameters: what of the
# all-reduce can it do without?
#
# <details><summary>Answer</summary>Of its second half, the all-gather, and so of half of the bytes.</details>
#
# Write `mean_gradient`. After the backward pass it returns this rank's shard of the *mean* over the ranks of the
# gradient of `flat.whole`, a 1-D tensor. A parameter whose `.grad` is None counts as zeros. Two things are to be gone
# when it returns: every parameter's `.grad` (set it to None), and the vector that was reduced. A view keeps *all* of
# its memory alive, and what `reduce_scatter` returns is a view.


# %% nbgrader={"grade_id": "mean_gradient", "solution": true}
def mean_gradient(flat):
    """This rank's shard of the mean gradient of ``flat``; the whole gradients are let go."""
    ### BEGIN SOLUTION
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in flat.parameters]
    vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
    for p in flat.parameters:
        p.grad = None
    vector /= dist.get_world_size()
    return reduce_scatter(vector).clone()
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_mean_gradient", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import sharding

check = Check("mean_gradient", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(sharding.mean_gradient)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4. Stage 1: a step of one's own shard
#
# From here on you train a network of ten layers. A step of all three stages is
#
# ```python
# loss.backward()
# zero.reduce()
# zero.step()
# ```
#
# **Guess first.** On 4 ranks, how many bytes of AdamW's numbers does a rank keep for a layer of 1,122 parameters?
#
# <details><summary>Answer</summary>Two numbers of 4 bytes for 280 or 281 elements: 2,240 or 2,248 bytes.</details>
#
# Write the two methods of `Zero1`. `self.flats[i]` is layer i; the ranks start alike.
#
# - `reduce()` puts this rank's shard of the mean gradient of flat i into `self.gradients[i]`
# - `step()` lets `adamw` step the shard of flat i with that gradient and `self.states[i]`, sees to it that every rank
#   has the new parameters, and sets `self.gradients[i]` back to None


# %% nbgrader={"grade_id": "Zero1", "solution": true}
class Zero1:
    """Trains ``layers`` with AdamW; each rank keeps AdamW's numbers for the shard that it owns."""

    flat_class = Flat

    def __init__(self, layers):
        self.flats = [self.flat_class(layer.parameters()) for layer in layers]
        self.gradients = [None for _ in self.flats]
        self.states = [{} for _ in self.flats]

    def reduce(self):
        """After the backward pass: shards of the mean gradient take the place of the gradients."""
        ### BEGIN SOLUTION
        self.gradients = [mean_gradient(flat) for flat in self.flats]
        ### END SOLUTION

    def step(self):
        """Step what this rank owns; afterwards all ranks have all parameters."""
        ### BEGIN SOLUTION
        for i, flat in enumerate(self.flats):
            adamw(flat.shard, self.gradients[i], self.states[i])
            all_gather(flat.whole)
            self.gradients[i] = None
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_Zero1", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import stages

check = Check("Zero1", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(stages.stage_1)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 5. Stage 2: no whole gradients
#
# In stage 1 all gradients of all layers are there when the backward pass ends. But a layer's gradient is complete long
# before: it can be reduced, and given away, while backward is on its way to the layer below.
#
# **Guess first.** With ten equal layers and 4 ranks, how many layers' worth of gradients does a rank hold at most in
# stage 1, and in stage 2?
#
# <details><summary>Answer</summary>In stage 1 all ten. In stage 2 about three and a half: shards of ten layers are
# two and a half, and one layer is whole.</details>
#
# Write `Zero2`. `p.register_post_accumulate_grad_hook(f)` makes the backward pass call `f(p)` as soon as `p.grad` is
# complete (lab 04). A layer is complete when all of its parameters have a `.grad`. A second backward pass before a step
# *adds* to `self.gradients[i]`. `step` is that of `Zero1`.
#
# (A class is built on the one that its name meant when its cell ran. When you change `Zero1`, run this cell again.)


# %% nbgrader={"grade_id": "Zero2", "solution": true}
class Zero2(Zero1):
    """As ``Zero1``; a layer's gradients are reduced and let go during the backward pass."""

    def __init__(self, layers):
        super().__init__(layers)
        ### BEGIN SOLUTION
        for i, flat in enumerate(self.flats):
            for p in flat.parameters:
                p.register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))
        ### END SOLUTION

    def gradient_ready(self, i):
        """A parameter of flat i has its gradient, perhaps the last one."""
        ### BEGIN SOLUTION
        flat = self.flats[i]
        if any(p.grad is None for p in flat.parameters):
            return
        shard = mean_gradient(flat)
        self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
        ### END SOLUTION

    def reduce(self):
        """Nothing is left to do."""


# %% nbgrader={"grade_id": "test_Zero2", "grade": true, "points": 5}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import stages

check = Check("Zero2", points=5, world_size=WORLD_SIZE, device=DEVICE)
check.meets(stages.stage_2)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Where a step has several backward passes, this has a price: stage 1 adds up whole gradients and sends them once,
# stage 2 has no whole gradient to add to and sends each time.
#
# ## 6. Clipping
#
# Large gradients are scaled down so that their norm is at most `max_norm`. The norm is that of *all* gradients of the
# model, one number. Now every rank has another part of them.
#
# **Guess first.** Rank 0's shards have norm 3, rank 1's norm 4. What is the norm of the whole? If each rank clipped by
# its own, what would happen to the direction of the step?
#
# <details><summary>Answer</summary>5. Each rank would scale its part by another number: the step would go in another
# direction.</details>
#
# Write `clip`, for a list of shards such as `zero.gradients`. It changes them in place and returns the norm that they
# had, as a tensor with one element. Here you may use `dist.all_reduce`, once, on one number. A rank's shards may be
# empty, and all gradients may be 0.


# %% nbgrader={"grade_id": "clip", "solution": true}
def clip(shards, max_norm):
    """Scale all ranks' ``shards`` so that their norm together is at most ``max_norm``. Returns the norm they had."""
    ### BEGIN SOLUTION
    squares = sum(shard.square().sum() for shard in shards)
    dist.all_reduce(squares)
    norm = squares.sqrt()
    if norm > max_norm:
        for shard in shards:
            shard *= max_norm / norm
    return norm
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_clip", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import sharding

check = Check("clip", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(sharding.clip)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7. A vector that comes and goes
#
# In stage 3 a rank keeps its shard of the parameters in memory of its own, and the whole vector only while a layer is
# computed. The parameters stay views of `whole`: what comes and goes is the memory *behind* it.
#
# ```python
# storage = vector.untyped_storage()
# storage.resize_(0)                 # the memory is given back; vector keeps its shape, but nobody may look
# storage.resize_(vector.nbytes)     # memory again, with anything in it
# ```
#
# It has to be the same storage, not a new vector: the forward pass leaves views of it with autograd for the backward
# pass.
#
# **Guess first.** A forward pass has saved the weight for the backward pass. Then you free it, gather it again, and go
# backward. Does autograd notice?
#
# <details><summary>Answer</summary>No. It has kept a view of the same storage, in which the same numbers are
# again.</details>
#
# Write `Sharded`. `self.shard` becomes a copy. After `__init__` and after `free()` only that is left; after `gather()`
# all parameters have their values, from the ranks' shards as they are now.


# %% nbgrader={"grade_id": "Sharded", "solution": true}
class Sharded(Flat):
    """As ``Flat``, but ``whole`` has memory only between ``gather()`` and ``free()``; ``shard`` has its own."""

    def __init__(self, parameters):
        super().__init__(parameters)
        ### BEGIN SOLUTION
        self.shard = self.shard.clone()
        self.free()
        ### END SOLUTION

    def gather(self):
        """Let all parameters have their values."""
        ### BEGIN SOLUTION
        self.whole.untyped_storage().resize_(self.whole.nbytes)
        self.whole[self.owned] = self.shard
        all_gather(self.whole)
        ### END SOLUTION

    def free(self):
        """Give the memory of ``whole`` back."""
        ### BEGIN SOLUTION
        self.whole.untyped_storage().resize_(0)
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_Sharded", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import sharding

check = Check("Sharded", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(sharding.sharded)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 8. Stage 3: one layer at a time
#
# A layer is gathered just before it computes, and freed right after; then once more for the backward pass, until its
# gradients are reduced. torch has a hook for each of these moments:
#
# ```python
# layer.register_forward_pre_hook(f)          # f(layer, inputs)
# layer.register_forward_hook(f)              # f(layer, inputs, output)
# layer.register_full_backward_pre_hook(f)    # f(layer, gradients of the output)
# ```
#
# What such a hook returns, if not None, takes the place of inputs, output, or gradients.
#
# **Guess first.** How many layers does a rank have whole at the same time? What would it save not to free the *last*
# layer after the forward pass?
#
# <details><summary>Answer</summary>One. The last layer is the first that the backward pass needs: it would save one
# gather of this layer.</details>
#
# Write `Zero3`. `self.flats` are made by `Sharded` already. `gradient_ready` is called as in `Zero2`.


# %% nbgrader={"grade_id": "Zero3", "solution": true}
class Zero3(Zero2):
    """As ``Zero2``; parameters too are there as shards alone, but for the layer that is computed."""

    flat_class = Sharded

    def __init__(self, layers):
        super().__init__(layers)
        ### BEGIN SOLUTION
        for layer, flat in zip(layers, self.flats, strict=True):
            layer.register_forward_pre_hook(lambda *_, flat=flat: flat.gather())
            layer.register_forward_hook(lambda *_, flat=flat: flat.free())
            layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
        ### END SOLUTION

    def gradient_ready(self, i):
        """As in ``Zero2``; when the gradients are reduced, nobody needs the layer any more."""
        ### BEGIN SOLUTION
        super().gradient_ready(i)
        if all(p.grad is None for p in self.flats[i].parameters):
            self.flats[i].free()
        ### END SOLUTION

    def step(self):
        """Step what this rank owns. The others will ask for it."""
        ### BEGIN SOLUTION
        for i, flat in enumerate(self.flats):
            adamw(flat.shard, self.gradients[i], self.states[i])
            self.gradients[i] = None
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_Zero3", "grade": true, "points": 6}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import stages

check = Check("Zero3", points=6, world_size=WORLD_SIZE, device=DEVICE)
check.meets(stages.stage_3)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# torch's FSDP2, `fully_shard`, is this, except that it gathers the next layer while this one computes.
#
# ## 9. A checkpoint
#
# Who wants to look at the model, or go on with another number of ranks, needs whole tensors, of parameters and of
# AdamW's numbers.
#
# **Guess first.** At 16 bits a parameter and 12 bytes of fp32 copies and AdamW's numbers, how large is the checkpoint
# of a model of 7.5 billion parameters? Could every rank hold it?
#
# <details><summary>Answer</summary>105 GB. No: that is more than a GPU has.</details>
#
# Write `checkpoint`. It returns `{name: {"parameter": …, "exp_avg": …, "exp_avg_sq": …}}` on every rank, for each name
# of `module.named_parameters()` a dict of three whole tensors in the parameter's shape. `zero` is a `Zero1`, `Zero2` or
# `Zero3` over the module's layers that has made a step; its layers may come in another order than the names. The
# tensors are copies, which a later step does not change. Leave everything as you found it: what was freed stays freed.


# %% nbgrader={"grade_id": "checkpoint", "solution": true}
def checkpoint(module, zero):
    """Whole parameters and AdamW's numbers by the parameters' names, from all ranks' shards."""
    ### BEGIN SOLUTION
    name_of, saved = {p: name for name, p in module.named_parameters()}, {}
    for flat, state in zip(zero.flats, zero.states, strict=True):
        for key, shard in (("parameter", flat.shard), *((key, state[key]) for key in ("exp_avg", "exp_avg_sq"))):
            whole = torch.empty(flat.whole.numel())
            whole[flat.owned] = shard
            all_gather(whole)
            for p, part in zip(flat.parameters, whole.split([p.numel() for p in flat.parameters]), strict=True):
                saved.setdefault(name_of[p], {})[key] = part.view(p.shape)
    return saved
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_checkpoint", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import stages

check = Check("checkpoint", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(stages.checkpoint)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## What you built, beside what you predicted
#
# Bytes on rank 0, measured in a step of the network of ten layers, and your `plan`.
#
# **Guess first.** Which of the numbers will not agree to the byte?
#
# <details><summary>Answer</summary>None agrees quite: shards are whole elements, and the ring's buffer is counted in
# what is held.</details>


# %%
from ringzero.record.operation import bytes_sent
from ringzero_course.lab.subjects import stages


def one_step(zero):
    report = stages.train(zero, seed=0, steps=2)
    held = report["held"]
    return held["step"], held["backward"] - held["start"], report["history"]


def steps_of(zero):
    """What a step of rank 0 holds of parameters and states, of gradients, what it sends; and the history of memory."""
    ranks = launch(one_step, zero, world_size=WORLD_SIZE, device=DEVICE, trace=True)
    held, gradients, history = ranks.returns[0]
    return held, gradients, bytes_sent(op for op in ranks.trace if op.rank == 0) / 2, history


if written("plan", "Flat", "mean_gradient", "Zero1", "Zero2", "Sharded", "Zero3"):
    params = sum(p.numel() for p in stages.training.Model(0, stages.HIDDEN).parameters())
    print(f"{params:,} parameters\nstage  {'parameters and states':>27} {'gradients':>24} {'sent in a step':>24}")
    for stage, zero in enumerate((Zero1, Zero2, Zero3), 1):
        *got, _ = steps_of(zero)
        parameters, gradients, states, sent = plan(stage, params, WORLD_SIZE)
        pairs = zip(got, (parameters + states, gradients, sent), strict=True)
        print(f"{stage:5} ", *(f"{mine:11,.0f} plan {said:8,.0f}" for mine, said in pairs))

# %% [markdown]
# Shards are whole elements, so they are not quite Ψ/N. And the buffer into which the ring receives is counted, too.
#
# This is a step of yours, byte by byte, drawn from what rank 0 did. Look for the gradients: in which stage do they pile
# up, and where does the memory of the parameters look like a comb?


# %%
def draw_two_steps(stage):
    from ringzero.record.memory import History
    from ringzero_course.figures import memory_timeline

    zero = (Zero1, Zero2, Zero3)[stage - 1]
    *_, history = steps_of(zero)
    most = 100_000 + 100_000 // WORLD_SIZE  # one scale for the three of them
    return memory_timeline(History(*history), most=most, caption=f"Two steps of stage {stage} on rank 0.")


slide("stage", {"1": 1, "2": 2, "3": 3}, draw_two_steps)

# %% [markdown]
# ## 10. In your own words
#
# Three to six sentences, with numbers. 13 billion parameters, 32 GPUs, mixed precision: 2 bytes for a parameter, 2 for
# a gradient, 12 for fp32 copies and AdamW's numbers; gradients and parameters travel in 16 bits. How much memory do the
# stages 1, 2 and 3 need on a GPU? Stages 1 and 2 send the same: why, and why is their memory not the same? A program
# all-reduces the gradients and then lets each rank step its shard: what does that cost, and does it still deserve the
# name stage 1? And what do the three stages send in a step of 8 micro-batches?

# %% [markdown] nbgrader={"grade_id": "one_and_two", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. 56.9, 31.7 and 6.5 GB: 26 + 26 + 156/32, 26 + 182/32 and 208/32.
# 2. Stages 1 and 2 both reduce-scatter the gradients and all-gather the parameters, 2Ψ(N−1)/N elements, 50.4 GB. Stage
#    2 reduces a layer's gradients as soon as they are complete and frees them; stage 1 keeps all of them to the end.
#    All-reducing first sends 3Ψ instead of 2Ψ, half as much again, since the all-gather of the parameters is still to
#    come: the memory is that of stage 1, the traffic is not.
# 3. With 8 micro-batches stage 1 adds gradients up where they are and still sends 2Ψ. Stage 2 keeps no whole gradient
#    to add to and reduces each time, 9Ψ. Stage 3 gathers twice and reduces each time, 24Ψ. That is 52, 234 and 624 GB,
#    times 31/32.
#
# Three answers and their points:
#
# > Stage 1: 26 + 26 + 4.9 = 56.9 GB; stage 2: 26 + 5.7 = 31.7 GB; stage 3: 208/32 = 6.5 GB. Stages 1 and 2 send a
# > reduce-scatter and an all-gather, 2 · 31/32 · 26 GB = 50.4 GB, but stage 2 frees each gradient after it was
# > reduced. The all-reduce program sends 75.6 GB and has stage 1's memory, so it deserves half of the name. With 8
# > micro-batches: 50.4 GB, then (8 + 1) · 25.2 = 226.7 GB, then 24 · 25.2 = 604.5 GB.
#
# 3 points: all three.
#
# > 56.9, 31.7 and 6.5 GB. Stage 1 and 2 send the same because both need every gradient once and every parameter once;
# > stage 2 just throws gradients away earlier. An all-reduce and an all-gather send 3Ψ, so it has the memory of stage
# > 1 and not the traffic. With 8 micro-batches everything is sent 8 times.
#
# 2 points: the first two. Stage 1 still sends once, and stage 2 gathers the parameters once.
#
# > Stage 1 needs 1/32 of 208 GB, stage 2 even less. They send the same because ZeRO is free.
#
# 0 points: 1/32 of all is stage 3, and no reason is given for the traffic.
# ### END SOLUTION
