# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where the memory goes
#
# A model of 7 billion parameters is 14 GB in 16 bits. Why does it not train on a GPU of 80 GB? Because the parameters
# are the small part. The optimizer keeps several numbers for each parameter. And the forward pass must keep many of its
# results, because the backward pass needs them. In this lab you predict every byte of a training step and put the
# prediction beside a measurement. Then you write recomputation, which saves memory and costs time, and a planner that
# says what fits.
#
# A check shows a table: what was claimed, whether it holds, why not, and the points. It tries shapes and numbers that
# you do not see here. The library has the formulas, too, in `ringzero.costs`; a check refuses them.
#
# You need chapter 10 first. After this lab you can
#
# - predict the bytes of states and activations of a step (`activation_bytes`)
# - write recomputation (`checkpointed`)
# - say what fits, and what each way to save memory costs (`what_to_save`)
#
# About 100 to 130 minutes. Wherever you see **Guess first**, do: write the number down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
import html

import torch

from ringzero.record.memory import KINDS, History, MemoryTimeline
from ringzero_course.figures import memory_timeline
from ringzero_course.lab import check_parameters, launch, written

check_parameters()

# %% [markdown]
# ## A model to measure
#
# A GPT with nothing hidden: blocks of LayerNorm, attention, dropout, LayerNorm, MLP, dropout, with the embedding of the
# tokens used again as the head. `checkpoint` is for later: with `recomputation="full"` a block runs through it, with
# `"selective"` only the middle of attention does.


# %% nbgrader={"grade_id": "model", "locked": true}
import math

from torch import nn


class Block(nn.Module):
    def __init__(self, hidden, heads, dropout=0.1, recomputation="none", checkpoint=None):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.recomputation, self.checkpoint = recomputation, checkpoint
        self.first_norm, self.second_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        return self.checkpoint(self.layer, x) if self.recomputation == "full" else self.layer(x)

    def layer(self, x):
        parts = self.qkv(self.first_norm(x)).chunk(3, dim=-1)
        heads = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]
        mixed = self.checkpoint(self.attend, *heads) if self.recomputation == "selective" else self.attend(*heads)
        x = x + nn.functional.dropout(self.projection(mixed.transpose(1, 2).flatten(2)), self.dropout)
        return x + nn.functional.dropout(self.down(nn.functional.gelu(self.up(self.second_norm(x)))), self.dropout)

    def attend(self, query, key, value):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        return nn.functional.dropout(scores.softmax(dim=-1), self.dropout) @ value


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, vocab, positions, **block):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)
        self.blocks = nn.Sequential(*[Block(hidden, heads, **block) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocab, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions.weight[: ids.shape[1]])))


# %% [markdown]
# `MemoryTimeline` watches every operation and counts each storage once, from the operation that makes it until nothing
# refers to it. No guess and no `nvidia-smi`: bytes of tensors, by what they are for. Two steps of AdamW:


# %%
def two_steps(layers, hidden, batch, sequence, recomputation="none", checkpoint=None):
    """``(bytes after the second forward pass, bytes at the peak, history)``."""
    torch.set_num_threads(1)  # of a rank's operations, which are so small that threads would wait for each other
    gpt = Gpt(layers, hidden, 4, 101, sequence, recomputation=recomputation, checkpoint=checkpoint)
    optimizer = torch.optim.AdamW(gpt.parameters())
    ids = torch.randint(101, (batch, sequence + 1))
    with MemoryTimeline(gpt, optimizer) as memory:
        for _ in range(2):
            loss = nn.functional.cross_entropy(gpt(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            memory.mark("forward")
            loss.backward()
            memory.mark("backward")
            optimizer.step()
            optimizer.zero_grad()
            memory.mark("step")
            del loss
    history = memory.history()
    return memory.at("forward").bytes, memory.peak().total, [history.bytes, history.seconds, history.marks]


held, peak, history = launch(two_steps, 4, 64, 2, 48, world_size=1, device=DEVICE).returns[0]
memory_timeline(History(*history))

# %% [markdown]
# **Guess first.** Before you look at numbers: which of the colours would grow if the batch were twice as large, and
# which if the model were? In the first step the optimizer has no states yet. Where is the peak of that step?
#
# <details><summary>Answer</summary>With the batch only the activations, and what the backward pass computes on the way.
# With the model all four kinds. In the first step the peak is where the backward pass begins: all activations are still
# there and the first gradients come. In later steps the optimizer's states lie below all that.</details>
#
# ## 1. Adam
#
# The green area is the optimizer's. What is in it? Kingma and Ba, 2015: with the gradient g of step t (from 1),
#
# $$m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
# \hat m = \frac{m}{1-\beta_1^t}, \quad \hat v = \frac{v}{1-\beta_2^t}, \quad
# p \leftarrow p - \mathrm{lr} \cdot \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# You will find it printed with ε under the root, or without the hats. That is another optimizer: the test compares with
# torch's, step by step, with an ε large enough to tell.
#
# **Guess first.** How many bytes of state for a parameter of 4 bytes?
#
# <details><summary>Answer</summary>8: m and v, 4 bytes each. The state is twice as large as the model.</details>
#
# Write `adam_step` with tensor operations; `torch.optim` is refused here. It changes `parameter` in place, of whatever
# shape, also of no dimension, and however its numbers lie in memory, and leaves `gradient` as it is. `state` is a dict
# that belongs to this parameter, empty before the first step. Keep in it, as tensors, what the next step needs, and
# nothing else. The check counts the bytes.


# %% nbgrader={"grade_id": "adam_step", "solution": true}
@torch.no_grad()
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    """One step of Adam for one parameter, in place."""
    ### BEGIN SOLUTION
    if not state:
        state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    state["step"] += 1
    state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    m_hat = state["m"] / (1 - betas[0] ** state["step"])
    v_hat = state["v"] / (1 - betas[1] ** state["step"])
    parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_adam_step", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import memory

check = Check("adam_step", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(memory.adam)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Your state beside torch's, measured in a real step. Torch's Adam also keeps a step count of 4 bytes for each tensor.


# %%
class Mine(torch.optim.Optimizer):
    def __init__(self, parameters, step=None):
        super().__init__(parameters, {})
        self.by_hand = step

    def step(self):
        for p in self.param_groups[0]["params"]:
            self.by_hand(p, p.grad, self.state[p])


def bytes_after_a_step(step=None):
    layer = nn.Linear(100, 200)
    optimizer = Mine(layer.parameters(), step) if step else torch.optim.Adam(layer.parameters())
    with MemoryTimeline(layer, optimizer) as memory:
        layer(torch.randn(8, 100)).sum().backward()
        optimizer.step()
        memory.mark("step")
    return memory.at("step").bytes


if written("adam_step"):
    for name, step in (("torch's", []), ("yours", [adam_step])):
        held = launch(bytes_after_a_step, *step, world_size=1, device=DEVICE).returns[0]
        print(f"{name:8}", ", ".join(f"{kind} {held[kind]:,}" for kind in KINDS[:3]), "bytes")

# %% [markdown]
# ## 2. AdamW
#
# Weight decay pulls every parameter towards 0. Added to the gradient (L2 regularisation, what `Adam(weight_decay=…)`
# does) it is divided by √v̂ like the rest, so parameters with large gradients hardly decay. Loshchilov and Hutter, 2019,
# take it out: before Adam's step, p ← p − lr · λ · p.
#
# Write `adamw_step`, for the same kinds of parameters; it leaves the gradient as it is, too. You may call `adam_step`.


# %% nbgrader={"grade_id": "adamw_step", "solution": true}
@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    """One step of AdamW for one parameter, in place."""
    ### BEGIN SOLUTION
    parameter.mul_(1 - lr * weight_decay)
    adam_step(parameter, gradient, state, lr, betas, eps)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_adamw_step", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import memory

check = Check("adamw_step", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(memory.adamw)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3. Count the parameters
#
# Look at `Block` and `Gpt` above. A `Linear(n, m)` has n·m weights and m biases, a LayerNorm a gain and a bias for each
# of its h inputs. The head has no bias; it shares its weight with the tokens' embedding if `tied`.
#
# **Guess first.** How many parameters has a block of width h, to the leading term: 4h², 8h² or 12h²?
#
# <details><summary>Answer</summary>12h²: 3h² for Q, K and V, h² for the projection, 4h² up and 4h² down. Biases and
# LayerNorms are 13h more.</details>
#
# Write `gpt_parameters`, exactly. GPT-2 has 12 layers of width 768, 50,257 tokens, 1,024 positions.


# %% nbgrader={"grade_id": "gpt_parameters", "solution": true}
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    """The number of parameters of ``Gpt``."""
    ### BEGIN SOLUTION
    h = hidden
    attention = (h * 3 * h + 3 * h) + (h * h + h)
    mlp = (h * 4 * h + 4 * h) + (4 * h * h + h)
    block = attention + mlp + 2 * 2 * h  # and two LayerNorms
    head = 0 if tied else vocab * h
    return (vocab + positions) * h + layers * block + 2 * h + head
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_gpt_parameters", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import memory

check = Check("gpt_parameters", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(memory.parameters)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("gpt_parameters"):
    counted = sum(p.numel() for p in Gpt(4, 64, 4, 101, 48).parameters())
    print(f"yours {gpt_parameters(4, 64, 101, 48):,}, torch counts {counted:,}")

# %% [markdown]
# ## 4. Model states
#
# Bytes a parameter. In `"fp32"`: 4 for the parameter, 4 for its gradient, and 4 for each number the optimizer keeps:
# none for `"sgd"`, one for `"momentum"`, two for `"adam"`. In `"mixed"` precision (Micikevicius et al., 2018) the
# parameter and its gradient are 2 bytes each, and the optimizer keeps the parameter in fp32 as well: 4 bytes more than
# in fp32. Some accumulate the gradients of several micro-batches in fp32, beside those of 2 bytes: `"mixed, fp32
# gradients"`.
#
# ZeRO (Rajbhandari et al., 2020) divides these among N ranks: stage 1 the optimizer's part, stage 2 the gradients too,
# stage 3 the parameters too. Where N does not divide, the bytes of a rank are no whole number: do not round.
#
# **Guess first.** Adam in mixed precision costs 2 + 2 + 12 = 16 bytes a parameter. And in fp32?
#
# <details><summary>Answer</summary>Also 16: 4 + 4 + 8. Mixed precision saves no model states; it saves activations and
# time.</details>
#
# Write `model_states`. (DeepSpeed's estimator for stage 3 counts 18 bytes: its gradients take 4. Ask every table of
# bytes for its convention.)


# %% nbgrader={"grade_id": "model_states", "solution": true}
def model_states(params, optimizer="adam", precision="mixed", stage=0, n=1):
    """Bytes on one of ``n`` ranks as ``(parameters, gradients, optimizer)``."""
    ### BEGIN SOLUTION
    numbers = 4 * {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
    parameter, gradient, kept = {
        "fp32": (4, 4, numbers),
        "mixed": (2, 2, 4 + numbers),
        "mixed, fp32 gradients": (2, 2 + 4, 4 + numbers),
    }[precision]
    return (
        params * parameter / (n if stage >= 3 else 1),
        params * gradient / (n if stage >= 2 else 1),
        params * kept / (n if stage >= 1 else 1),
    )
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_model_states", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import memory

check = Check("model_states", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(memory.states)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Predicted beside measured, to the byte. The model above is in fp32; torch's AdamW adds 4 bytes for each tensor.

# %%
if written("gpt_parameters", "model_states"):
    predicted = map(float, model_states(gpt_parameters(4, 64, 101, 48), "adam", "fp32"))
    tensors = len(list(Gpt(4, 64, 4, 101, 48).parameters()))
    for kind, right in zip(("parameters", "gradients", "optimizer"), predicted, strict=True):
        measured = max(history[0][kind])
        print(f"{kind:11} predicted {right:11,.0f}, measured {measured:11,}, apart {measured - right:g}")
    print(f"{tensors} tensors · 4 bytes = {4 * tensors}")

# %% [markdown]
# ## 5. Activations of a layer
#
# To compute gradients the backward pass needs what went into each operation. Autograd keeps it from the forward pass
# on. Here is what one block keeps, for b sequences of s tokens, width h, a heads; every storage once, and no weights:
#
# | what needs it | what is kept | elements |
# |---|---|---|
# | first LayerNorm | its input | sbh |
# | Q, K, V | their common input | sbh |
# | scores QKᵀ | Q and K | 2sbh |
# | softmax | its output | as²b |
# | dropout of attention | its mask | as²b |
# | weights times V | the weights after dropout, and V | as²b + sbh |
# | projection | its input | sbh |
# | first dropout | its mask | sbh |
# | second LayerNorm | its input | sbh |
# | MLP, up | its input | sbh |
# | GELU | its input | 4sbh |
# | MLP, down | its input | 4sbh |
# | second dropout | its mask | sbh |
#
# An element has 2 bytes in 16 bits. A mask has 1 byte an element on a GPU, whatever the precision: that gives
# 34sbh + 5as²b bytes **for each layer** (Korthikanti et al., 2022). On a CPU, torch keeps a mask in its input's dtype:
# 4 bytes in fp32.
#
# **Guess first.** GPT-3: s = 2,048, h = 12,288, a = 96. For one sequence, how many GB does *one* of its 96 layers keep,
# and which is the larger part, 34sbh or 5as²b?
#
# <details><summary>Answer</summary>2.87 GB, of which 34sbh is 0.86 GB and 5as²b is 2.01 GB.</details>
#
# Write `activation_bytes`. (A LayerNorm also keeps two numbers a token. Leave them out, as the paper does.)


# %% nbgrader={"grade_id": "activation_bytes", "solution": true}
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    """Bytes that one block keeps for its backward pass, with ``element`` and ``mask`` bytes an element."""
    ### BEGIN SOLUTION
    wide, square = batch * sequence * hidden, heads * sequence**2 * batch
    return wide * (16 * element + 2 * mask) + square * (2 * element + mask)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_activation_bytes", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import memory

check = Check("activation_bytes", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(memory.activations)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Beside a measurement. The rest, if you got it right, is the LayerNorms': two numbers a token, twice.


# %%
def kept_by_a_block(batch, sequence, hidden, heads, dtype, **block):
    """Activations after the forward pass, and the bytes of an element of a dropout mask on this device."""
    torch.set_num_threads(1)
    layer = Block(hidden, heads, **block).to(dtype)
    x = torch.randn(batch, sequence, hidden, dtype=dtype, requires_grad=True)
    with MemoryTimeline(layer) as memory:
        y = layer(x)
        memory.mark("forward")
        y.sum().backward()
    return memory.at("forward")["activations"], 1 if x.is_cuda else dtype.itemsize


if written("activation_bytes"):
    for shape in ((2, 48, 64, 4), (1, 96, 64, 8), (4, 32, 128, 2)):
        for dtype in (torch.float32, torch.bfloat16):
            measured, mask = launch(kept_by_a_block, *shape, dtype, world_size=1, device=DEVICE).returns[0]
            predicted = activation_bytes(*shape, element=dtype.itemsize, mask=mask)
            ratio = f"measured / predicted = {measured / predicted:.4f}"
            print(f"{shape} {dtype.itemsize} bytes: predicted {predicted:9,}, measured {measured:9,}, {ratio}")

# %% [markdown]
# ## 6. What recomputation leaves
#
# Throw activations away and compute them again when the backward pass needs them. *Full* recomputation keeps only each
# layer's input, sbh elements, and runs the layer's forward pass a second time: a third more arithmetic. *Selective*
# recomputation drops only what has s × s elements, as²b each, which is cheap to compute again. FlashAttention does the
# same inside one kernel.
#
# **Guess first.** For GPT-3, which part of a layer's bytes does selective recomputation save: 30 %, 50 % or 70 %?
#
# <details><summary>Answer</summary>70 %: 2.01 of 2.87 GB, the s × s part.</details>
#
# Write `kept_bytes` for a model of `layers` layers: `recomputation` is `"none"`, `"selective"` or `"full"`.


# %% nbgrader={"grade_id": "kept_bytes", "solution": true}
def kept_bytes(layers, batch, sequence, hidden, heads, recomputation="none", element=2, mask=1):
    """Bytes that ``layers`` blocks keep from the forward pass for the backward pass."""
    ### BEGIN SOLUTION
    wide, square = batch * sequence * hidden, heads * sequence**2 * batch
    of_a_layer = {
        "none": wide * (16 * element + 2 * mask) + square * (2 * element + mask),
        "selective": wide * (16 * element + 2 * mask),
        "full": wide * element,
    }
    return layers * of_a_layer[recomputation]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_kept_bytes", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import memory

check = Check("kept_bytes", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(memory.kept)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7. Your own checkpoint
#
# `checkpointed(function, *inputs)` returns `function(*inputs)`, one tensor, and keeps nothing of what happens inside:
# in the backward pass it runs the function again, this time with gradients. That is a `torch.autograd.Function`:
# `forward` runs without gradients and saves the inputs with `ctx.save_for_backward`; `backward` gets the gradient of
# the output and returns one gradient for each argument of `forward`, None for the function.
#
# In `backward`: take the inputs (`ctx.saved_tensors`) out of the old graph with `detach()` and `requires_grad_()`, run
# the function on them under `torch.enable_grad()`, call `torch.autograd.backward` on the result. The function's own
# parameters then get their gradients as usual, and the inputs have theirs in `.grad`.
#
# Keep what a call needs with `ctx`, not in a global: a function can be called many times before the backward passes
# come, and these come in any order. `torch.utils.checkpoint` is refused.
#
# One thing is easily missed. The function may draw random numbers, as dropout does. The second run must draw the *same*
# ones, so note `torch.get_rng_state()` before the first run (on a GPU `torch.cuda.get_rng_state()` too), and set it
# before the second. Afterwards put the generator back to where it was: `with torch.random.fork_rng():` does that.
#
# **Guess first.** Without that, the loss still falls. What would be wrong with the gradients?
#
# <details><summary>Answer</summary>They belong to another network. The loss was computed with some numbers dropped, the
# gradients with others dropped: they are not the gradients of that loss.</details>


# %% nbgrader={"grade_id": "checkpointed", "solution": true}
def checkpointed(function, *inputs):
    """``function(*inputs)``, a tensor; all but the inputs is computed again in the backward pass."""
    ### BEGIN SOLUTION
    return Recomputed.apply(function, *inputs)


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, *inputs):
        ctx.function = function
        ctx.random = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
        with torch.enable_grad(), torch.random.fork_rng():
            on_cpu, on_gpu = ctx.random
            torch.set_rng_state(on_cpu)
            if on_gpu is not None:
                torch.cuda.set_rng_state(on_gpu)
            output = ctx.function(*inputs)
        torch.autograd.backward(output, gradient)
        return None, *[x.grad for x in inputs]

    ### END SOLUTION


# %% nbgrader={"grade_id": "test_checkpointed", "grade": true, "points": 5}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import memory

check = Check("checkpointed", points=5, world_size=WORLD_SIZE, device=DEVICE)
check.meets(memory.recomputation)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Your checkpoint in the model, beside your formula: what the blocks keep, and the peak of the whole step. In fp32.

# %%
MASK = 1 if torch.cuda.is_available() and DEVICE != "cpu" else 4  # bytes of an element of a dropout mask
RECOMPUTATION = ("none", "selective", "full")


def one_after_another(checkpoint):
    return [two_steps(4, 64, 4, 64, kind, checkpoint) for kind in RECOMPUTATION]


if written("checkpointed", "kept_bytes"):
    steps = launch(one_after_another, checkpointed, world_size=1, device=DEVICE).returns[0]
    for kind, (held, highest, _) in zip(RECOMPUTATION, steps, strict=True):
        predicted, kept = kept_bytes(4, 4, 64, 64, 4, kind, element=4, mask=MASK), held["activations"]
        print(f"{kind:10} yours {predicted:10,} for the blocks; measured {kept:10,}, and {highest:10,} at the peak")

# %% [markdown]
# The difference is the end of the model: the logits and the inputs of the last LayerNorm and of the head. Your planner
# needs them too.

# %%
figure = None
if written("checkpointed", "kept_bytes"):
    figure = memory_timeline(History(*steps[-1][-1]), caption="With full recomputation.")
figure

# %% [markdown]
# ## 8. What fits?
#
# Now turn it round. A GPU has so many bytes; which is the largest batch (sequences at a time on one rank) that fits?
#
# Count the model's states (Adam, mixed precision, `tied`, `positions` = s, at ZeRO's `stage` on `n` ranks), what the
# layers keep in 16 bits with 1-byte masks, and what the model's end keeps: the inputs of the last LayerNorm and of the
# head, 2 bytes an element, and the logits in fp32, 4sbv bytes.
#
# **Guess first.** GPT-2 XL (48 layers, h = 1,600, 25 heads, s = 1,024) has 1.56 billion parameters. Which batch fits
# into 80 GB on one GPU: 2, 8 or 32? And with full recomputation?
#
# <details><summary>Answer</summary>6, so of these only 2 fits: the states take 25 GB, and each sequence 9.2 GB. With
# full recomputation 148: a sequence is 0.37 GB then, of which the end of the model is 0.21 GB.</details>
#
# Write `largest_batch`: a whole number, 0 if not even one sequence fits, and if the states alone do not fit. Count with
# your functions from above.


# %% nbgrader={"grade_id": "largest_batch", "solution": true}
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    """The largest number of sequences of which a training step needs at most ``memory`` bytes on one rank."""
    ### BEGIN SOLUTION
    states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
    one = kept_bytes(layers, 1, sequence, hidden, heads, recomputation) + 4 * sequence * hidden + 4 * sequence * vocab
    return max(0, math.floor((memory - states) / one))  # all but the states grow with the batch
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_largest_batch", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import memory

check = Check("largest_batch", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(memory.largest_batch)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("gpt_parameters", "model_states", "kept_bytes", "largest_batch"):
    print("batch with nothing, attention's middle, everything recomputed")
    for name, plan in (("GPT-2 XL, 80 GB", (80e9, 48, 1600, 25)), ("GPT-3, 141 GB", (141e9, 96, 12288, 96))):
        for stage, n in ((0, 1), (1, 64), (2, 64), (3, 64), (3, 1024)):
            batches = [largest_batch(*plan, 50257, 1024, stage, n, kind) for kind in ("none", "selective", "full")]
            print(f"{name:16} stage {stage} on {n:4} ranks: batch {batches}")

# %% [markdown]
# ## Explore
#
# Your formulas beside a measured step: each change runs two steps of AdamW in fp32 and draws them.


# %%
def explain(layers, hidden, batch, sequence, recomputation):
    """``(rows, history)``: what your formulas say, and what a step really held after its forward pass."""
    held, peak, history = launch(
        two_steps, layers, hidden, batch, sequence, recomputation, checkpointed, world_size=1, device=DEVICE
    ).returns[0]
    states = map(float, model_states(gpt_parameters(layers, hidden, 101, sequence), "adam", "fp32"))
    kept = kept_bytes(layers, batch, sequence, hidden, 4, recomputation, element=4, mask=MASK)
    kept += 4 * batch * sequence * (2 * hidden + 101)  # the end of the model
    said = dict(zip(("parameters", "gradients", "optimizer"), states, strict=True)) | {"activations": kept}
    highest = {kind: max(history[0][kind]) for kind in KINDS}
    return [(kind, said[kind], highest[kind]) for kind in said] + [("peak", sum(said.values()), peak)], history


def explorer():
    import ipywidgets as widgets

    sliders = {
        "layers": widgets.IntSlider(2, 1, 6, description="layers", continuous_update=False),
        "hidden": widgets.IntSlider(64, 32, 128, 32, description="hidden", continuous_update=False),
        "batch": widgets.IntSlider(2, 1, 8, description="batch", continuous_update=False),
        "sequence": widgets.IntSlider(48, 16, 96, 16, description="sequence", continuous_update=False),
        "recomputation": widgets.Dropdown(options=["none", "selective", "full"], description="recompute"),
    }
    shown = widgets.HTML()

    class Explorer(widgets.VBox):
        def __repr__(self):  # where there is no browser, this is what shows
            return self.summary

    def redraw(_=None):
        try:
            rows, history = explain(**{name: slider.value for name, slider in sliders.items()})
        except Exception as error:  # a callback's traceback would go to a log that nobody reads
            box.summary = f"{type(error).__name__}: {error}"
            shown.value = f"<pre>{html.escape(box.summary)}</pre>"
            return
        lines = [f"{kind:12} yours {said:12,.0f}   measured {got:12,}   {got / said:.3f}" for kind, said, got in rows]
        box.summary = "measured / yours: " + ", ".join(f"{kind} {got / said:.3f}" for kind, said, got in rows)
        shown.value = f"<pre>{'<br>'.join(lines)}</pre>" + memory_timeline(History(*history))._repr_html_()

    box = Explorer([*sliders.values(), shown])
    for slider in sliders.values():
        slider.observe(redraw, names="value")
    redraw()
    return box


explorer() if written("gpt_parameters", "model_states", "kept_bytes", "checkpointed") else None

# %% [markdown]
# The four kinds never peak together: gradients come as activations go. So the peak is below the sum. And it is not at
# the end of the forward pass. Where is it, and what is the pink there?
#
# ## 9. In your own words
#
# Three to six sentences, with numbers from above. A team trains GPT-2 XL on one GPU of 80 GB, s = 1,024, mixed
# precision, nothing recomputed, and runs out of memory. One proposes ZeRO stage 1 on 8 GPUs, one selective
# recomputation, one FlashAttention, one SGD with momentum. What does each save, and what does it cost? What would you
# measure first?

# %% [markdown] nbgrader={"grade_id": "what_to_save", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. States: 16 bytes a parameter, 25 GB. Stage 1 on 8 GPUs saves 7/8 of 12 bytes, 16 GB, and sends no more than an
#    all-reduce does. SGD with momentum saves 4 bytes a parameter, 6 GB, and is another optimizer, whose settings must
#    be found anew.
# 2. Activations: the layers keep 48 (34sbh + 5as²b) = 9.0 GB a sequence, of which 5as²b is 6.3 GB. Selective
#    recomputation saves that for a few per cent more arithmetic. FlashAttention saves the same and is faster, so it
#    comes first.
# 3. Measure first a memory timeline of one step with a small batch: it shows whether states or activations are the
#    larger part, and what grows with the batch.
#
# Three answers and their points:
#
# > The states take 16 · 1.56 billion = 25 GB. ZeRO-1 on 8 GPUs leaves 4 + 12/8 bytes, so it saves 16 GB and needs 8
# > GPUs. SGD with momentum saves 6 GB, but one must tune it again. Per sequence the activations are 9 GB, and 6.3 GB
# > of them are the attention matrices, which selective recomputation and FlashAttention both remove; FlashAttention
# > costs no time. So FlashAttention first. Before that I would look at the memory timeline with one sequence, to see
# > which part is large.
#
# 3 points: all three.
#
# > ZeRO-1 saves 16 GB of the 25 GB of states. SGD with momentum saves 6 GB, but trains differently. Recomputation
# > saves activations and costs about 30 % more time. FlashAttention makes attention faster.
#
# 1 point: the first. Selective recomputation costs a few per cent (30 % is full recomputation), the second has no
# number, and nothing is measured.
#
# > The model has 3.1 GB in 16 bits, so 80 GB should be enough. The leak must be found first.
#
# 0 points: states and activations are not counted.
# ### END SOLUTION
