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
# are the small part: the optimizer keeps several numbers for each, and the backward pass needs results of the forward
# pass that were thrown away long ago if nobody had kept them. In this lab you predict every byte of a training step and
# put the prediction beside a measurement. Then you write the trick that buys memory with time, recomputation, and a
# planner that says what fits.
#
# A check shows a table: what was claimed, whether it holds, why not, and the points. It tries shapes and numbers that
# you do not see here.
#
# About 90 minutes. Wherever you see **Guess first**, do: write the number down before you run the cell.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero.lab import check_parameters, launch, written

check_parameters()

import html
import math

import torch
from torch import nn

from ringzero.figures import memory_timeline
from ringzero.memory import KINDS, History, MemoryTimeline

# %% [markdown]
# ## A model to measure
#
# A GPT with nothing hidden: blocks of LayerNorm, attention, dropout, LayerNorm, MLP, dropout, with the embedding of the
# tokens used again as the head. `checkpoint` is for later: with `recomputation="full"` a block runs through it, with
# `"selective"` only the middle of attention does.


# %% nbgrader={"grade_id": "model", "locked": true}
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
# which if the model were? Where would the peak move if the second step were the first?
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
# Write `adam_step`. It changes `parameter` in place and leaves `gradient` as it is. `state` is a dict that belongs to
# this parameter, empty before the first step: keep in it what the next step needs, and nothing else. The check counts
# its bytes.


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
import torch

from ringzero.lab import Check, claims


def gradients_of(seed, shape, steps, dtype):
    """Small ones, so that eps matters, and fewer and fewer, so that the moments do."""
    source = torch.Generator("cpu").manual_seed(seed)
    every = torch.randn(steps, *shape, generator=source, dtype=torch.float64, device="cpu")
    return [(0.01 * g / (t + 1)).to(dtype) for t, g in enumerate(every)]


def several_adam_steps(seed, shape, steps, dtype, options):
    """Two parameters in turn, each with a state of its own: where the first ends, what is kept of it, and in bytes."""
    here = torch.get_default_device()
    both = [torch.zeros(shape, dtype=dtype, device=here, requires_grad=True) for _ in range(2)]
    states, one = [{}, {}], both[0]
    untouched = True
    for g in gradients_of(seed, shape, steps, dtype):
        for parameter, state in zip(both, states, strict=True):
            given = g.to(here)
            adam_step(parameter, given, state, **options)
            untouched = untouched and torch.equal(given, g.to(here))
    tensors = {value.untyped_storage().data_ptr(): value for value in states[0].values() if torch.is_tensor(value)}
    kept = sum(value.untyped_storage().nbytes() for value in tensors.values())
    return {"parameter": one.detach(), "second": both[1].detach(), "kept": kept, "untouched": untouched}


check = Check(several_adam_steps, points=3, world_size=WORLD_SIZE, device=DEVICE)
check.name = "adam_step"  # what the table is about


def as_torch_does_it(run, optimizer=torch.optim.Adam, start=None):
    seed, shape, steps, dtype, options = run.case.args
    parameter = torch.zeros(shape, dtype=dtype, device="cpu")
    optimizer = optimizer([parameter], **options)
    for parameter.grad in gradients_of(seed, shape, steps, dtype):
        optimizer.step()
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for name in ("parameter", "second"):
        why = claims.close(f"the parameter after {steps} steps", [run.returned[0][name]], [parameter], tolerance)
        if why is not None:
            return why
    return None


def two_numbers_each(run):
    _, shape, _, dtype, _ = run.case.args
    expected = 2 * dtype.itemsize * torch.Size(shape).numel()
    kept = run.returned[0]["kept"]
    if expected <= kept <= expected + 16:  # a step count, if it is a tensor
        return None
    return f"the state holds {kept} bytes of tensors, {kept / expected * 2:.3g} numbers a parameter, expected 2"


def gradient_is_untouched(run):
    return None if run.returned[0]["untouched"] else "the gradient was changed"


usual = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8}
first = check.run(1, (3, 4), 1, torch.float32, usual)
tenth = check.run(2, (3, 4), 10, torch.float32, usual)
coarse = check.run(3, (50,), 5, torch.float32, usual | {"eps": 1e-3})
check.that("the first step is torch's", first, as_torch_does_it)
check.that("so are ten", tenth, as_torch_does_it)
check.that("and five with a large ε", coarse, as_torch_does_it)
check.that("the state is two numbers a parameter", tenth, two_numbers_each)
### BEGIN HIDDEN TESTS
others = [
    check.run(4, (7,), 4, torch.float64, {"lr": 0.3, "betas": (0.5, 0.9), "eps": 1e-2}),
    check.run(5, (2, 3, 5), 3, torch.float64, {"lr": 0.01, "betas": (0.0, 0.7), "eps": 1e-6}),
    check.run(6, (1,), 20, torch.float32, usual | {"betas": (0.8, 0.99)}),
]
check.that("other shapes, betas, ε and float64", others, as_torch_does_it, weight=2)
check.that("in their states too", others, two_numbers_each)
check.that("the gradient is left alone", [coarse, *others], gradient_is_untouched)
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
# Write `adamw_step`. You may call `adam_step`.


# %% nbgrader={"grade_id": "adamw_step", "solution": true}
@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    """One step of AdamW for one parameter, in place."""
    ### BEGIN SOLUTION
    parameter.mul_(1 - lr * weight_decay)
    adam_step(parameter, gradient, state, lr, betas, eps)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_adamw_step", "grade": true, "points": 2}
import torch

from ringzero.lab import Check, claims


def start_and_gradients(seed, shape, steps):
    source = torch.Generator("cpu").manual_seed(seed)
    start, *gradients = torch.randn(steps + 1, *shape, generator=source, dtype=torch.float64, device="cpu")
    return start, gradients


def several_adamw_steps(seed, shape, steps, options):
    here = torch.get_default_device()
    parameter, gradients = start_and_gradients(seed, shape, steps)
    parameter, state = parameter.to(here).requires_grad_(), {}
    for gradient in gradients:
        adamw_step(parameter, gradient.to(here), state, **options)
    tensors = {value.untyped_storage().data_ptr(): value for value in state.values() if torch.is_tensor(value)}
    return {"parameter": parameter.detach(), "kept": sum(t.untyped_storage().nbytes() for t in tensors.values())}


check = Check(several_adamw_steps, points=2, world_size=WORLD_SIZE, device=DEVICE)
check.name = "adamw_step"


def as_torch_does_it(run):
    seed, shape, steps, options = run.case.args
    parameter, gradients = start_and_gradients(seed, shape, steps)
    optimizer = torch.optim.AdamW([parameter], **options)
    for parameter.grad in gradients:
        optimizer.step()
    return claims.close(f"the parameter after {steps} steps", [run.returned[0]["parameter"]], [parameter], 1e-10)


def no_more_than_adams_state(run):
    numbers = torch.Size(run.case.args[1]).numel()
    kept = run.returned[0]["kept"]
    if kept <= 16 * numbers + 16:
        return None
    return f"the state holds {kept / (8 * numbers):.3g} numbers a parameter, expected 2"


strong = check.run(1, (5, 2), 3, {"lr": 0.1, "weight_decay": 0.5})
none = check.run(2, (5, 2), 3, {"lr": 0.1, "weight_decay": 0.0})
check.that("strong decay, three steps", strong, as_torch_does_it)
check.that("without decay it is Adam", none, as_torch_does_it)
### BEGIN HIDDEN TESTS
others = [
    check.run(3, (11,), 6, {"lr": 0.01, "weight_decay": 0.1, "betas": (0.5, 0.95), "eps": 1e-3}),
    check.run(4, (2, 2, 2), 1, {"lr": 0.5, "weight_decay": 0.9}),
]
check.that("other rates, betas and ε", others, as_torch_does_it, weight=2)
check.that("decay keeps nothing", [strong, *others], no_more_than_adams_state)
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
from ringzero.costs import transformer
from ringzero.lab import Check

check = Check("gpt_parameters", points=2, world_size=WORLD_SIZE, device=DEVICE)


def exactly(run):
    layers, hidden, vocab, positions = run.case.args
    tied = run.case.options.get("tied", True)
    expected = transformer.gpt_params(layers, hidden, vocab, positions, tied_embeddings=tied)
    counted = run.returned[0]
    if not isinstance(counted, (int, float)) or isinstance(counted, bool):
        return f"returned {counted!r}, not a number"
    return None if counted == expected else f"counted {counted:,}, expected {expected:,}: {counted - expected:+,}"


gpt_2 = check.run(12, 768, 50257, 1024)
small = check.run(4, 64, 101, 48)
check.that("GPT-2: 124,439,808", gpt_2, exactly)
check.that("the model measured above", small, exactly)
### BEGIN HIDDEN TESTS
others = [check.run(*shape) for shape in ((1, 2, 3, 5), (48, 1600, 50257, 1024), (96, 12288, 50257, 2048))]
apart = [check.run(2, 8, 100, 10, tied=False), check.run(96, 12288, 50257, 2048, tied=False)]
check.that("from a toy to GPT-3", others, exactly)
check.that("with a head of its own", apart, exactly)
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
# stage 3 the parameters too.
#
# **Guess first.** Adam in mixed precision costs 2 + 2 + 12 = 16 bytes a parameter. And in fp32?
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
from ringzero.costs import memory as formulas
from ringzero.lab import Check, claims

check = Check("model_states", points=3, world_size=WORLD_SIZE, device=DEVICE)
PARTS = ("parameters", "gradients", "optimizer")


def to_the_byte(run):
    params, optimizer, precision, stage, n = run.case.args
    each = formulas.bytes_per_param(optimizer, precision != "fp32", precision == "mixed, fp32 gradients")
    return claims.numbers(PARTS, run.returned[0], formulas.model_state_parts(params, stage, n, each))


sixteen = check.run(1000, "adam", "mixed", 0, 1)
full = [check.run(1000, optimizer, "fp32", 0, 1) for optimizer in ("sgd", "momentum", "adam")]
sharded = check.run(7_500_000_000, "adam", "mixed", 2, 64)
check.that("Adam in mixed precision: 2 + 2 + 12", sixteen, to_the_byte)
check.that("three optimizers in fp32", full, to_the_byte)
check.that("7.5 billion parameters on 64 ranks at stage 2: 16.6 GB", sharded, to_the_byte)
### BEGIN HIDDEN TESTS
precisions = ("fp32", "mixed", "mixed, fp32 gradients")
every = [check.run(1000, o, p, 0, 1) for o in ("sgd", "momentum", "adam") for p in precisions]
stages = [check.run(1000, "adam", p, stage, 10) for p in precisions for stage in range(4)]
check.that("every optimizer in every precision", every, to_the_byte)
check.that("every stage", stages, to_the_byte, weight=2)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Predicted beside measured, to the byte. The model above is in fp32; torch's AdamW adds 4 bytes for each tensor.

# %%
if written("gpt_parameters", "model_states"):
    predicted = model_states(gpt_parameters(4, 64, 101, 48), "adam", "fp32")
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
# Write `activation_bytes`. (A LayerNorm also keeps two numbers a token. Leave them out, as the paper does.)


# %% nbgrader={"grade_id": "activation_bytes", "solution": true}
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    """Bytes that one block keeps for its backward pass, with ``element`` and ``mask`` bytes an element."""
    ### BEGIN SOLUTION
    wide, square = batch * sequence * hidden, heads * sequence**2 * batch
    return wide * (16 * element + 2 * mask) + square * (2 * element + mask)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_activation_bytes", "grade": true, "points": 3}
import torch

from ringzero.costs import memory as formulas
from ringzero.lab import Check, claims
from ringzero.memory import MemoryTimeline

check = Check("activation_bytes", points=3, world_size=WORLD_SIZE, device=DEVICE)


def as_the_paper_has_it(run):
    batch, sequence, hidden, heads = run.case.args
    bytes_of = {"bytes_per_element": run.case.options.get("element", 2), "mask_bytes": run.case.options.get("mask", 1)}
    expected = formulas.activation_bytes(batch * sequence, sequence, hidden, heads, **bytes_of)
    return claims.number("the bytes of a layer", run.returned[0], expected)


gpt_3 = check.run(1, 2048, 12288, 96)
cpu = check.run(2, 48, 64, 4, element=4, mask=4)
check.that("a layer of GPT-3, one sequence: 2.87 GB", gpt_3, as_the_paper_has_it)
check.that("a small layer on a CPU in fp32", cpu, as_the_paper_has_it)
### BEGIN HIDDEN TESTS
shapes = ((1, 1, 1, 1), (3, 5, 8, 2), (4, 2048, 6144, 64), (1, 8192, 1024, 16))
others = [check.run(*shape) for shape in shapes]
sizes = [check.run(3, 5, 8, 2, element=e, mask=m) for e, m in ((4, 1), (2, 2), (4, 4), (8, 1))]
check.that("other shapes", others, as_the_paper_has_it, weight=2)
check.that("other bytes an element and a mask", sizes, as_the_paper_has_it, weight=2)
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
# Write `kept_bytes` for a model of several layers: `recomputation` is `"none"`, `"selective"` or `"full"`.


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
from ringzero.costs import memory as formulas
from ringzero.lab import Check, claims

check = Check("kept_bytes", points=3, world_size=WORLD_SIZE, device=DEVICE)


def as_the_paper_has_it(run):
    layers, batch, sequence, hidden, heads, recomputation = run.case.args
    expected = formulas.activation_bytes(
        batch * sequence, sequence, hidden, heads, layers, recomputation=recomputation,
        bytes_per_element=run.case.options.get("element", 2), mask_bytes=run.case.options.get("mask", 1),
    )  # fmt: skip
    return claims.number("the bytes kept", run.returned[0], expected)


gpt_3 = {kind: check.run(96, 1, 2048, 12288, 96, kind) for kind in ("none", "selective", "full")}
check.that("GPT-3, one sequence, nothing recomputed: 275 GB", gpt_3["none"], as_the_paper_has_it)
check.that("selective: 82 GB", gpt_3["selective"], as_the_paper_has_it)
check.that("full: 4.8 GB", gpt_3["full"], as_the_paper_has_it)
### BEGIN HIDDEN TESTS
kinds = ("none", "selective", "full")
others = [check.run(3, 2, 48, 64, 4, kind, element=e, mask=m) for kind in kinds for e, m in ((4, 4), (4, 1), (2, 2))]
long = [check.run(2, 1, 16384, 1024, 16, kind) for kind in kinds]
check.that("other layers, elements and masks", others, as_the_paper_has_it, weight=2)
check.that("long sequences", long, as_the_paper_has_it)
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
# One thing is easily missed. The function may draw random numbers, as dropout does. The second run must draw the *same*
# ones, so note `torch.get_rng_state()` before the first run (on a GPU `torch.cuda.get_rng_state()` too), and set it
# before the second. Afterwards put the generator back to where it was: `with torch.random.fork_rng():` does that.
#
# **Guess first.** Without that, the loss still falls. What would be wrong with the gradients?


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
import torch

from ringzero.costs import memory as formulas
from ringzero.lab import Check, claims
from ringzero.memory import MemoryTimeline


def measured(layers, batch, sequence, hidden, heads, dropout, recomputation):
    """A chain of blocks: what comes out, the gradients, the bytes held, and in which mode each function ran."""
    torch.set_num_threads(1)
    torch.manual_seed(layers)
    runs = []

    def counting(function, *inputs):
        def counted(*again):
            runs.append(torch.is_grad_enabled())
            return function(*again)

        return checkpointed(counted, *inputs)

    options = {"dropout": dropout, "recomputation": recomputation, "checkpoint": counting}
    blocks = torch.nn.Sequential(*[Block(hidden, heads, **options) for _ in range(layers)])
    x = torch.randn(batch, sequence, hidden, requires_grad=True)
    with MemoryTimeline(blocks) as memory:
        y = blocks(x)
        memory.mark("forward")
        y.sin().sum().backward()
    forward = memory.at("forward")
    gradients = [torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in blocks.parameters()]
    return {
        "output": y.detach(),
        "input's gradient": x.grad,
        "parameters' gradients": torch.cat(gradients),
        "random numbers that follow": torch.rand(4),
        "held": forward.total - forward["parameters"] - y.nbytes,
        "peak": memory.peak().total,
        "runs": runs,
        "mask": 1 if x.is_cuda else 4,
    }


def with_and_without(*shape, recomputation):
    def refuse(*_):
        raise RuntimeError("torch's own checkpoint is not to be used here; write it with torch.autograd.Function")

    torch.utils.checkpoint.CheckpointFunction.apply = refuse
    return {"plain": measured(*shape, "none"), "yours": measured(*shape, recomputation)}


check = Check(with_and_without, points=5, world_size=WORLD_SIZE, device=DEVICE)
check.name = "checkpointed"


def the_same(*what):
    def claim(run):
        found = run.returned[0]
        wrong = (claims.close(name, [found["yours"][name]], [found["plain"][name]], 1e-5) for name in what)
        return next((why for why in wrong if why is not None), None)

    return claim


def twice_each(run):
    runs = run.returned[0]["yours"]["runs"]
    layers = run.case.args[0]
    first, second = runs[:layers], runs[layers:]
    if len(runs) != 2 * layers:
        return f"the function ran {len(runs)} times for {layers} calls, expected twice each"
    if True in first:
        return "the first run recorded a graph: everything inside was kept"
    return "the second run recorded no graph" if False in second else None


def holds_what_is_predicted(run):
    """All that is held after the forward pass counts, however it is held: not only what autograd has saved."""
    layers, batch, sequence, hidden, heads, _ = run.case.args
    found, recomputation = run.returned[0]["yours"], run.case.options["recomputation"]
    shape = {"tokens": batch * sequence, "sequence": sequence, "hidden": hidden, "heads": heads}
    predicted = formulas.activation_bytes(
        **shape, layers=layers, bytes_per_element=4, mask_bytes=found["mask"], recomputation=recomputation
    )
    if found["held"] <= 1.02 * predicted + 6_000 * layers:  # a generator's state has 5,056 bytes
        return None
    plain = run.returned[0]["plain"]["held"]
    return f"{found['held']:,} bytes are held after the forward pass, expected {predicted:,.0f}; without it {plain:,}"


def recomputed_and_the_same(*what):
    return claims.all_of(twice_each, the_same(*what))  # the same values without a second run prove nothing


one = check.run(1, 2, 48, 64, 4, 0.0, recomputation="full")
chain = check.run(3, 2, 48, 64, 4, 0.0, recomputation="full")
dropped = check.run(2, 2, 48, 64, 4, 0.2, recomputation="full")
every_gradient = recomputed_and_the_same("output", "input's gradient", "parameters' gradients")
check.that("the function runs twice, and the output is the same", [one, chain], recomputed_and_the_same("output"))
check.that("the same gradients", [one, chain], every_gradient)
check.that("nothing is kept but the inputs", [one, chain], holds_what_is_predicted)
check.that("the same gradients with dropout", dropped, every_gradient)
### BEGIN HIDDEN TESTS
several = [check.run(2, 3, 40, 32, 4, dropout, recomputation="selective") for dropout in (0.0, 0.3)]
large = check.run(4, 1, 64, 48, 6, 0.1, recomputation="full")


def the_peak_falls(run):
    found = run.returned[0]
    plain, yours = found["plain"]["peak"], found["yours"]["peak"]
    return None if yours < 0.8 * plain else f"the peak is {yours:,} bytes, and {plain:,} without recomputation"


check.that("functions of three inputs", several, every_gradient, weight=2)
check.that("as little held there too", several, holds_what_is_predicted)
check.that("four blocks with dropout", large, every_gradient)
check.that("the peak of the step falls", large, the_peak_falls)
undisturbed = recomputed_and_the_same("random numbers that follow")
check.that("the generator goes on as if nothing ran twice", [dropped, large], undisturbed)
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
# Write `largest_batch`: a whole number, 0 if not even one sequence fits. Count with your functions from above.


# %% nbgrader={"grade_id": "largest_batch", "solution": true}
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    """The largest number of sequences of which a training step needs at most ``memory`` bytes on one rank."""
    ### BEGIN SOLUTION
    states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
    one = kept_bytes(layers, 1, sequence, hidden, heads, recomputation) + 4 * sequence * hidden + 4 * sequence * vocab
    return max(0, math.floor((memory - states) / one))  # all but the states grow with the batch
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_largest_batch", "grade": true, "points": 3}
from ringzero.costs import memory as formulas
from ringzero.costs import transformer
from ringzero.lab import Check

check = Check("largest_batch", points=3, world_size=WORLD_SIZE, device=DEVICE)


def needs(batch, layers, hidden, heads, vocab, sequence, stage, n, recomputation):
    params = transformer.gpt_params(layers, hidden, vocab, sequence)
    kept = formulas.activation_bytes(batch * sequence, sequence, hidden, heads, layers, recomputation=recomputation)
    end = formulas.output_activation_bytes(batch * sequence, hidden, vocab)
    return formulas.model_state_bytes(params, stage, n) + kept + end


def the_largest_that_fits(run):
    memory, *plan = run.case.args
    batch = run.returned[0]
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 0:
        return f"returned {batch!r}, not a whole number from 0"
    if batch and needs(batch, *plan) > memory:
        return f"a batch of {batch} needs {needs(batch, *plan):.6g} bytes"
    if needs(batch + 1, *plan) <= memory:
        return f"a batch of {batch + 1} needs {needs(batch + 1, *plan):.6g} bytes and would fit"
    return None


XL = (48, 1600, 25, 50257, 1024)
alone = check.run(80_000_000_000, *XL, 0, 1, "none")
recomputed = check.run(80_000_000_000, *XL, 0, 1, "full")
sharded = check.run(80_000_000_000, *XL, 3, 64, "selective")
small = check.run(16_000_000_000, *XL, 0, 1, "none")
check.that("GPT-2 XL in 80 GB", alone, the_largest_that_fits)
check.that("with full recomputation", recomputed, the_largest_that_fits)
check.that("at stage 3 on 64 ranks, selective", sharded, the_largest_that_fits)
check.that("in 16 GB the states alone do not fit", small, the_largest_that_fits)
### BEGIN HIDDEN TESTS
TOY = (2, 16, 2, 50, 8)  # 8 numbers: each plan's batch is right to the sequence, and to the byte
exact = [check.run(int(needs(5, *TOY, stage, 2, kind)) + more, *TOY, stage, 2, kind)
         for stage in range(4) for kind in ("none", "selective", "full") for more in (-1, 0, 1)]  # fmt: skip
gpt_3 = [check.run(141_000_000_000, 96, 12288, 96, 50257, 2048, stage, 1024, "full") for stage in range(4)]
check.that("to the byte, at every stage, with every recomputation", exact, the_largest_that_fits, weight=3)
check.that("GPT-3 on 1,024 GPUs of 141 GB", gpt_3, the_largest_that_fits)
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
    states = model_states(gpt_parameters(layers, hidden, 101, sequence), "adam", "fp32")
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
# A full answer says (one point each): the states take 16 bytes a parameter, 25 GB, of which stage 1 on 8 GPUs saves
# 7/8 of 12 bytes, 16 GB, at no more traffic than all-reduce has; momentum saves 4 bytes a parameter, 6 GB, and is
# another optimizer, to be tuned anew; the layers keep 48 (34sbh + 5as²b) = 9.0 GB a sequence, of which 5as²b is 6.3
# GB: selective recomputation saves that for a few per cent of arithmetic, and FlashAttention saves the same and is
# faster, so it comes first; measured first, a memory timeline of one step with a small batch, which shows whether
# states or activations are the larger part, and what grows with the batch.
# ### END SOLUTION
