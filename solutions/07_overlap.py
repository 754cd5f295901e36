# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Will it overlap?
#
# A GPU computes gradients, and the network averages them. Both can work at once. Then the slower one decides how long
# a step takes, and the faster one adds nothing. In this lab you predict which of the two is slower, for data
# parallelism, ZeRO-3, tensor parallelism and pipelines. You write the clock of a backward pass, choose the size of its
# buckets, find in a record what was not hidden, and name the rank for which the others wait. Then your own backward
# pass runs on ranks, and your prediction stands beside the measurement. At the end you choose a plan for a cluster.
#
# Most of your functions take numbers and return numbers. A check shows a table: what was claimed, whether it holds, why
# not, and the points. It compares with the library's schedules of training steps. Its score is of the tests that you
# see; hidden tests, with other numbers, follow at hand-in.
#
# You need plain Python with `math` and `statistics`, and in section 11 `torch` and `dist.all_reduce`. The library has
# formulas, schedules and a planner that answer most of this lab; a check refuses them. In section 11 it also refuses
# other calls of `torch.distributed`, other process groups and stores. No function changes a list that it is
# given.
#
# You need chapter 13 first. After this lab you can
#
# - compute how many tokens hide an all-reduce (`least_tokens`)
# - compute what stays exposed of a backward pass with buckets (`exposed`)
# - find the rank for which the others wait (`straggler`)
# - choose a plan for a cluster and defend it (`a_plan`)
#
# About 120 to 160 minutes. Wherever you see **Guess first**, do: write the answer down before you open it.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters, cluster, written
from ringzero_course.lab.subjects.overlapping import make_layers

check_parameters()

import math
import statistics
import time

import torch
import torch.distributed as dist

from ringzero.costs.page import alpha_beta, overlap
from ringzero.record.operation import COMPUTE, Operation
from ringzero.steps import planner
from ringzero.steps.plan import Cluster, Plan, estimate
from ringzero.steps.transformer import MODELS
from ringzero_course.figures import chart, timeline

# %% [markdown]
# ## 1. Enough tokens
#
# In data parallelism an all-reduce averages the gradients of Ψ parameters while the backward pass computes. A ring
# all-reduce over N ranks sends 2(N−1)/N times the buffer from each rank. The forward pass over t tokens takes 2Ψt FLOP,
# the backward pass takes twice as many.
#
# Divide the seconds of the all-reduce by the seconds of the backward pass. Below 1 the all-reduce can hide.
#
# **Guess first.** Which of these does the result depend on: Ψ, t, N, the FLOP/s, the bandwidth? If you double the
# model, do you need more tokens or fewer?
#
# <details><summary>Answer</summary>On all but Ψ: a model twice as large sends twice as much and computes twice as long.
# So it needs neither more tokens nor fewer. N hardly counts: (N−1)/N is 0.5 on 2 ranks and nearly 1 on many.</details>
#
# Write `least_tokens`: the tokens that each rank needs in this backward pass so that the two take equally long, a real
# number. (A step of several micro-batches has one all-reduce, and only the last backward pass hides it.) `flops` are
# the FLOP/s that a rank reaches, `bandwidth` the bytes a second that it sends, `element` the bytes of a gradient's
# element.


# %% nbgrader={"grade_id": "least_tokens", "solution": true}
def least_tokens(flops, bandwidth, n, element):
    """Tokens of each of ``n`` ranks with which the all-reduce takes as long as the backward pass."""
    ### BEGIN SOLUTION
    sent = 2 * element * (n - 1) / n  # bytes a parameter
    computed = 4  # FLOP a parameter and token
    return (sent / bandwidth) / (computed / flops)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_least_tokens", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("least_tokens", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.least_tokens)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 2. Which bandwidth?
#
# The bandwidth in that formula is not the one on the data sheet. A message of S bytes takes α + βS seconds: α seconds
# for the message itself and β seconds for each byte. So a short message reaches less than 1/β bytes a second. A ring
# all-reduce of S bytes has 2(N−1) rounds; in each a rank sends a message of S/N bytes.
#
# **Guess first.** 4 ranks, α = 10 µs, 100 GB/s. How many GB/s does a rank send while 40 MB are reduced? And while 1 MB
# is?
#
# <details><summary>Answer</summary>Of 40 MB a message has 10 MB. It takes 10 + 100 µs, so a rank sends 91 GB/s. Of 1 MB
# it has 250 kB and takes 10 + 2.5 µs: 20 GB/s.</details>
#
# Write `reached`: the bytes a second that each rank *sends* during a ring all-reduce of `size` bytes. The rounds follow
# each other, and each takes as long as one message.


# %% nbgrader={"grade_id": "reached", "solution": true}
def reached(size, n, alpha, beta):
    """Bytes a second that a rank sends in a ring all-reduce of ``size`` bytes on ``n`` ranks (2 or more)."""
    ### BEGIN SOLUTION
    rounds = 2 * (n - 1)
    return rounds * size / n / (rounds * (alpha + size / n * beta))
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_reached", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("reached", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.reached)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
ready = written("least_tokens", "reached")
if ready:
    print("H100s at 40 % of their peak, 16 bits, α = 5 µs. Tokens a GPU needs:")
    for name, bandwidth in (("NVLink", 450e9), ("InfiniBand NDR", 50e9)):
        for size in (1e6, 25e6, 1e9):
            rates = [reached(size, n, 5e-6, 1 / bandwidth) for n in (8, 128)]
            need = [least_tokens(0.4 * 989e12, rate, n, 2) for rate, n in zip(rates, (8, 128), strict=True)]
            print(f"  {name:14} buckets of {size / 1e6:5g} MB: {need[0]:10,.0f} on 8 ranks, {need[1]:12,.0f} on 128")

# %% [markdown]
# ## 3. How many ways for tensor parallelism?
#
# Tensor parallelism cuts a matrix of h rows and w columns among T ranks. Before the product each rank gathers the
# activations of t tokens: it sends `element` · t · h · (T−1)/T bytes. Then it computes its part of the product, which
# takes 2thw/T FLOP.
#
# **Guess first.** You may choose a larger batch, a larger hidden size h or a larger width w. Which of them helps?
#
# <details><summary>Answer</summary>Only a larger width w. The all-gather and the product both grow with t and with h,
# so their ratio stays; w is in the product alone.</details>
#
# Write `largest_degree`: the largest whole number T from 1 for which the all-gather takes no longer than the product,
# also where no GPU or node has so many. One rank gathers nothing, so T = 1 always hides. `flops`, `bandwidth` and
# `element` are as in section 1, `width` is w.


# %% nbgrader={"grade_id": "largest_degree", "solution": true}
def largest_degree(flops, bandwidth, width, element):
    """The largest number of tensor-parallel ranks whose all-gather hides behind the product with ``width`` columns."""
    ### BEGIN SOLUTION
    # element (T - 1) / bandwidth is at most 2 width / flops
    return 1 + math.floor(2 * width * bandwidth / (element * flops))
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_largest_degree", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("largest_degree", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.largest_degree)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("largest_degree"):
    print("Llama 3 on H100s at 40 % of their peak, over NVLink: ranks up to which the all-gather hides")
    for name, h, ffn, heads in (("8B", 4096, 14336, 32), ("70B", 8192, 28672, 64), ("405B", 16384, 53248, 128)):
        for product, _, width in overlap.tensor_parallel_products(h, ffn, heads, kv_heads=8, gated=True):
            print(f"  {name:5} {product:12} {width:7,} columns: {largest_degree(0.4 * 989e12, 450e9, width, 2):3}")

# %% [markdown]
# ## 4. The clock of a backward pass
#
# A ratio below 1 says that communication *can* hide. Whether it does depends on when it begins. So now write the clock
# of a backward pass with buckets.
#
# The backward pass begins at 0 and goes from the last layer to the first. Layer i computes for `backwards[i]` seconds,
# and its gradient of `sizes[i]` bytes is there when it is done. Gradients fill a bucket. The bucket is full when it
# holds `cap` bytes or more; then the next gradient begins a new one. What is left at the end is a bucket too. The
# all-reduce of a bucket of S bytes takes `alpha + beta * S` seconds. It begins when the bucket is full and the
# all-reduce before it has ended: they use the same link.
#
# **Guess first.** 5 layers of 8 ms and 2 MB each, an all-reduce takes 2 ms + 1 ms for each MB. When has the last one
# ended with a bucket for each layer? With one bucket for all?
#
# <details><summary>Answer</summary>The backward pass takes 40 ms. A bucket of one layer takes 4 ms, less than the layer
# after it computes, so only the last one is left at the end: 44 ms. One bucket begins at 40 ms and takes 12 ms: 52
# ms.</details>
#
# Write `all_reduces`: a list of `(begin, end)`, in the order in which the buckets leave.


# %% nbgrader={"grade_id": "all_reduces", "solution": true}
def all_reduces(backwards, sizes, cap, alpha, beta):
    """``(begin, end)`` of each bucket's all-reduce, in seconds from the beginning of the backward pass."""
    ### BEGIN SOLUTION
    now = link_free = filling = 0
    found = []
    for layer in reversed(range(len(sizes))):
        now += backwards[layer]
        filling += sizes[layer]
        if filling >= cap or layer == 0:
            begin = max(now, link_free)
            link_free = begin + alpha + beta * filling
            found.append((begin, link_free))
            filling = 0
    return found
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_all_reduces", "grade": true, "points": 5}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("all_reduces", points=5, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.all_reduces)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Your clock as a picture: 12 layers of 5 ms and 4 MB each, buckets of 8 MB, α = 1 ms, a link of 1 GB/s.


# %%
def predicted(backwards, sizes, cap, alpha, beta):
    """The backward pass and your all-reduces as operations of rank 0."""
    ends = [sum(backwards[layer:]) for layer in range(len(backwards))]
    drawn = [
        Operation("backward", 0, end - took, None, end, COMPUTE)
        for end, took in zip(reversed(ends), reversed(backwards), strict=True)
    ]
    for begin, end in all_reduces(backwards, sizes, cap, alpha, beta):
        drawn.append(Operation("all_reduce", 0, begin, max(begin, ends[0]), end))
    return [op._replace(sequence=number) for number, op in enumerate(sorted(drawn, key=lambda op: op.start))]


figure = None
if written("all_reduces"):
    figure = timeline(predicted([0.005] * 12, [4_000_000] * 12, 8_000_000, 1e-3, 1e-9))
figure

# %% [markdown]
# ## 5. What is left to see
#
# Communication is *exposed* while its rank communicates and computes nothing. That time is what overlap did not hide.
#
# Operations of a rank may overlap in any way: two all-reduces on two streams, computing inside computing, operations
# that touch. `op.stream` is `"compute"` or `"communication"`, `op.start` and `op.end` are seconds.
#
# **Guess first.** A rank computes from 0 to 4 and from 6 to 9. It communicates from 3 to 7 and from 5 to 8. How many
# seconds are exposed?
#
# <details><summary>Answer</summary>2. It communicates from 3 to 8, twice at once from 5 to 7, and does not compute from
# 4 to 6.</details>
#
# Write `exposed`. The operations come in any order.


# %% nbgrader={"grade_id": "exposed", "solution": true}
def exposed(operations):
    """Seconds in which a rank communicates and does not compute."""
    ### BEGIN SOLUTION
    moments = sorted({moment for op in operations for moment in (op.start, op.end)})
    seconds = 0
    for begin, end in zip(moments, moments[1:], strict=False):
        streams = {op.stream for op in operations if op.start <= begin and end <= op.end}
        if streams == {"communication"}:
            seconds += end - begin
    return seconds
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_exposed", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("exposed", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.exposed)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6. How large a bucket?
#
# Small buckets leave early and pay an α each. Large buckets pay few α, but the last one leaves late and all of it is
# exposed.
#
# **Guess first.** 48 layers of 1.25 ms and 1 MB each, α = 1 ms, 1 GB/s. Which of the caps 1, 2, 4, 8, 16 and 64 MB
# ends first? How much later does one bucket end?
#
# <details><summary>Answer</summary>4 MB. A bucket of c MB takes 1 + c ms and the next one is full 1.25 c ms later, so
# from 4 MB on the link keeps up. Then the last bucket alone is exposed: 60 + 5 = 65 ms. With 1 and 2 MB buckets queue.
# One bucket ends at 60 + 49 = 109 ms.</details>
#
# Write `best_cap`: the one of `caps` with which the last all-reduce ends first. You may call your `all_reduces`.


# %% nbgrader={"grade_id": "best_cap", "solution": true}
def best_cap(backwards, sizes, caps, alpha, beta):
    """The bucket size of ``caps`` (bytes) with which the last all-reduce ends first."""
    ### BEGIN SOLUTION
    return min(caps, key=lambda cap: all_reduces(backwards, sizes, cap, alpha, beta)[-1][1])
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_best_cap", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("best_cap", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.best_cap)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
figure = None
if written("all_reduces", "best_cap"):
    caps, model = [2**k * 1_000_000 for k in range(7)], ([0.00125] * 48, [1_000_000] * 48)
    lines = {}
    for alpha in (0.1e-3, 1e-3, 5e-3):
        ends = [1e3 * all_reduces(*model, cap, alpha, 1e-9)[-1][1] for cap in caps]
        lines[f"α = {1e3 * alpha:g} ms"] = [cap / 1e6 for cap in caps], ends
        print(f"α = {1e3 * alpha:3g} ms: buckets of {best_cap(*model, caps, alpha, 1e-9) / 1e6:g} MB end first")
    figure = chart(lines, x="bucket, MB", y="last all-reduce ends, ms", log="x", title="60 ms of backward pass, 1 GB/s")
figure

# %% [markdown]
# ## 7. Gather ahead
#
# ZeRO-3 gathers the parameters of a layer before the layer computes, and frees them afterwards. With `ahead` = 0 it
# gathers layer i when layer i−1 has computed, so nothing overlaps. With `ahead` = k it may gather layer i as soon as
# layer i−k−1 has computed: then k layers are gathered, or on their way, beyond the one that computes. Gathers go one
# after another, in the order of the layers. A layer computes when its parameters are there and the layer before it has
# computed.
#
# **Guess first.** 6 layers that compute 1 s each and gather 1 s each. How long does the forward pass take with k = 0,
# and 2?
#
# <details><summary>Answer</summary>12 s, 7 s and 7 s. With one ahead, only the first gather is exposed. Where every
# layer takes as long as its gather, a second one ahead has nothing left to hide.</details>
#
# Write `forward_pass`: the seconds from the first gather until the last layer has computed. `gathers[i]` and
# `forwards[i]` are the seconds of layer i.


# %% nbgrader={"grade_id": "forward_pass", "solution": true}
def forward_pass(gathers, forwards, ahead):
    """Seconds of ZeRO-3's forward pass that gathers ``ahead`` layers beyond the one that computes."""
    ### BEGIN SOLUTION
    gathered, done = 0, []
    for layer in range(len(forwards)):
        freed = done[layer - ahead - 1] if layer > ahead else 0
        gathered = max(gathered, freed) + gathers[layer]
        done.append(max(gathered, done[-1] if done else 0) + forwards[layer])
    return done[-1]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_forward_pass", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("forward_pass", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.forward_pass)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("forward_pass"):
    chance = torch.Generator("cpu").manual_seed(0)
    uneven = (2 * torch.rand(24, generator=chance)).tolist()
    for name, gathers in (("all gathers take 1 s", [1.0] * 24), ("gathers take 0 to 2 s", uneven)):
        seconds = [forward_pass(gathers, [1.0] * 24, k) for k in range(5)]
        print(f"24 layers of 1 s, {name}: {', '.join(f'{s:.1f}' for s in seconds)} s with 0, 1, 2, 3, 4 ahead")

# %% [markdown]
# ## 8. Enough micro-batches
#
# A pipeline has a bubble: while the first micro-batch travels down the stages and the last one back up, stages wait.
# With P stages and m micro-batches a step takes as long as m + P − 1 micro-batches on one stage. During P − 1 of them
# the stage is idle. An interleaved schedule gives each stage v pieces of the model; its idle time is 1/v of that.
#
# **Guess first.** 4 stages may be idle for 20 % of the step. How many micro-batches do they need? With 2 pieces each?
#
# <details><summary>Answer</summary>12: then a stage is idle during 3 micro-batches of 15. With 2 pieces 6: the idle
# time is that of 1.5 micro-batches, of 7.5.</details>
#
# Write `least_micro_batches`: the smallest whole number m from 1 with which the idle part *of the step* is at most
# `share`.


# %% nbgrader={"grade_id": "least_micro_batches", "solution": true}
def least_micro_batches(stages, share, pieces):
    """The fewest micro-batches with which ``stages``, of ``pieces`` each, idle for at most ``share`` of the step."""
    ### BEGIN SOLUTION
    m = 1
    while (stages - 1) / (pieces * m + stages - 1) > share * (1 + 1e-12):
        m += 1
    return m
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_least_micro_batches", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("least_micro_batches", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.least_micro_batches)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 9. What a stage keeps
#
# More micro-batches make the bubble smaller. Do they need more memory? In GPipe they do: every stage runs all m forward
# passes before its first backward pass. 1F1B runs a backward pass as soon as it can: stage i (0 is the first) runs
# P − i forward passes, then one backward, one forward, and so on. A micro-batch's activations are kept from its forward
# pass to its backward pass.
#
# **Guess first.** 8 stages and 64 micro-batches of 1 GB of activations a stage. What does the first stage keep, with
# GPipe and with 1F1B? The last one?
#
# <details><summary>Answer</summary>The first keeps 64 GB with GPipe and 8 GB with 1F1B, the last one 64 GB and 1
# GB.</details>
#
# Write `kept`: of how many micro-batches stage `i` keeps activations at once, at the most, in 1F1B. There may be fewer
# micro-batches than stages.


# %% nbgrader={"grade_id": "kept", "solution": true}
def kept(i, stages, micro_batches):
    """Micro-batches whose activations stage ``i`` of ``stages`` keeps at the most, in 1F1B."""
    ### BEGIN SOLUTION
    return min(stages - i, micro_batches)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_kept", "grade": true, "points": 2}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("kept", points=2, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.kept)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("least_micro_batches", "kept"):
    for p in (4, 8, 16):
        m = least_micro_batches(p, 0.05, 1)
        print(f"{p:2} stages idle for 5 %: {m} micro-batches; the first stage keeps {kept(0, p, m)}, with GPipe {m}")

# %% [markdown]
# ## 10. For whom do they wait?
#
# An all-reduce cannot end before the last rank has entered it. If one rank is slow, a record shows long all-reduces on
# all *other* ranks: they wait. The slow rank's own are short. So do not look for the rank with the longest all-reduce.
# Look for the one that *enters* last.
#
# `enters[i][r]` is the time at which rank r entered collective i, on one clock. In each collective the last rank keeps
# the others waiting: charge it with its time minus the median of the *other* ranks' times. (Why the median? One rank
# that came very early should not make the last one look worse.) Add up what each rank is charged.
#
# The rank that is charged most is a straggler if both hold, else there is none:
#
# - it is charged at least 60 % of all charges. If ranks take turns in being last, no rank is to blame.
# - it is charged at least `worth` seconds a collective, on average over all collectives. Less is not worth mending.
#
# **Guess first.** In 100 collectives rank 2 is last 40 times, by 1 ms, and rank 5 is last 60 times, by 0.1 ms. Which
# one would you mend?
#
# <details><summary>Answer</summary>Rank 2. It costs 40 · 1 = 40 ms, rank 5 costs 60 · 0.1 = 6 ms, though it is last
# more often.</details>
#
# Write `straggler`. It returns a pair: the rank, and the sum of what it is charged; or None. There are two ranks or
# more. `statistics.median` is useful.


# %% nbgrader={"grade_id": "straggler", "solution": true}
def straggler(enters, worth):
    """``(rank, seconds)``: who keeps the others waiting, and what it is charged in all; or None."""
    ### BEGIN SOLUTION
    charges = [0.0] * len(enters[0])
    for times in enters:
        last = times.index(max(times))
        others = times[:last] + times[last + 1 :]
        charges[last] += times[last] - statistics.median(others)
    rank = charges.index(max(charges))
    if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
        return None
    return rank, charges[rank]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_straggler", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("straggler", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.straggler)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 11. Now on ranks
#
# Formulas assume a backward pass that sends a bucket the moment it is full. Write one. `layers[i].backward()` computes
# and returns the gradient of layer i, a new 1-D float32 tensor of 4 bytes an element. Layers may have gradients of
# different sizes.
#
# **Guess first.** Two calls wait in such a backward pass: `backward()` for the layer's computing, `work.wait()` for an
# all-reduce. Which wait must come after which computing?
#
# <details><summary>Answer</summary>Every `work.wait()` comes after the `backward()` of the first layer, which is
# computed last. A wait before that delays the layers that are left.</details>
#
# Write `backward_pass`. It computes the layers from the last to the first and fills buckets as in section 4. A full
# bucket leaves at once, as one all-reduce, before the next layer computes; nothing is waited for until all layers have
# computed. It returns a list: for each layer, in the order of `layers`, the mean of its gradient over the ranks, which
# the next step does not write over. The call you need is `dist.all_reduce(tensor, async_op=True)`; `torch.cat` and
# `tensor.split(sizes)` are useful.


# %% nbgrader={"grade_id": "backward_pass", "solution": true}
def backward_pass(layers, cap):
    """The gradients of ``layers``, averaged over the ranks in buckets of ``cap`` bytes that travel meanwhile."""
    ### BEGIN SOLUTION
    filling, travelling = [], []
    for number in reversed(range(len(layers))):
        filling.append(layers[number].backward())
        if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
            flat = torch.cat(filling)
            work = dist.all_reduce(flat, async_op=True)
            travelling.append((work, flat, [gradient.numel() for gradient in filling]))
            filling = []
    gradients = []
    for work, flat, sizes in travelling:
        work.wait()
        flat /= dist.get_world_size()
        gradients += flat.split(sizes)
    return gradients[::-1]
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_backward_pass", "grade": true, "points": 5}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("backward_pass", points=5, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.backward_pass)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## Predicted, measured
#
# The next cell emulates two nodes of one rank each, with a link of 500 Mbit/s between them. It measures what your clock
# needs: α and β of an all-reduce over this link, and the seconds of each layer when nothing travels. Then it predicts
# when the last all-reduce ends, for three caps, and runs your `backward_pass` with each. The layers here do not
# multiply: they sleep for 20 ms, as a host does while its GPU works, so they take no core from the messages. Where this
# machine cannot emulate nodes, a line says so, and the two ranks talk through the machine's memory.
#
# **Guess first.** There are 8 layers of 1 MB. With which of the caps 1 MB, 4 MB and 8 MB does the step end first, and
# how long after the backward pass?
#
# <details><summary>Answer</summary>With 1 MB. On two ranks an all-reduce of 1 MB sends 1 MB, 16 ms at 500 Mbit/s, less
# than the 20 ms of a layer. So only the last one is exposed, about 16 ms and a latency. With 4 MB it is half of all
# bytes, about 64 ms, and with one bucket all of them, about 128 ms. The cell prints what your clock says.</details>


# %%
NUMELS = [250_000] * 8  # 1 MB a layer


def time_all_reduces(sizes, repeats=4):
    """Seconds of an all-reduce of each size in bytes, the mean of some: a link may carry the first bytes faster."""
    seconds = []
    for size in sizes:
        tensor = torch.zeros(size // 4)
        dist.all_reduce(tensor)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(repeats):
            dist.all_reduce(tensor)
        seconds.append((time.perf_counter() - begin) / repeats)
    return seconds


def timed_step(cap, seconds=0.02):
    """``(began, ended, [(layer, begin, end), ...])`` of the second of two steps on a rank."""
    for _ in range(2):  # the first one warms up
        layers, computed = make_layers(NUMELS, seconds)
        dist.barrier()
        backward_pass(layers, cap)
    return computed[0][1], time.time(), computed


def measure(sizes, caps):
    """``(time_all_reduces, [timed_step of each cap])`` on a rank."""
    torch.set_num_threads(1)
    return time_all_reduces(sizes), [timed_step(cap) for cap in caps]


figure = None
if written("all_reduces", "exposed", "straggler", "backward_pass"):
    probes, caps = [2**k for k in (12, 16, 20, 23)], [math.inf, 1_000_000, 4_000_000, 8_000_000]
    with cluster(nodes=2, ranks_per_node=1, inter_node="500mbit") as nodes:
        ranks = nodes.launch(measure, probes, caps, trace=True, timeout=60)
    slowest = [max(times) for times in zip(*(seconds for seconds, _ in ranks.returns), strict=True)]
    alpha, beta = (max(0.0, each) for each in alpha_beta.fit_alpha_beta((1, 1, 0), probes, slowest))
    print(f"an all-reduce takes {1e3 * alpha:.2f} ms and {1e9 * beta:.2f} ms for each MB")
    (alone, *steps) = zip(*(steps for _, steps in ranks.returns), strict=True)
    of_each_rank = [[end - begin for _, begin, end in sorted(computed)] for *_, computed in alone]
    backwards = max(of_each_rank, key=sum)  # the other rank waits for the slower one
    for cap, step in zip(caps[1:], steps, strict=True):
        said = all_reduces(backwards, [4 * numel for numel in NUMELS], cap, alpha, beta)[-1][1]
        began, ended = min(each[0] for each in step), max(each[1] for each in step)
        seen = [op for op in ranks.trace if began <= op.start <= ended and op.kind != "barrier"]
        first = [op for op in seen if op.rank == 0]
        print(
            f"buckets of {cap / 1e6:g} MB: predicted {1e3 * said:6.1f} ms, measured {1e3 * (ended - began):6.1f} ms; "
            f"rank 0 has {1e3 * exposed(first):.1f} ms exposed;",
            end=" ",
        )
        sent = [[op.start for op in seen if (op.rank, op.kind) == (rank, "all_reduce")] for rank in (0, 1)]
        enters = [list(times) for times in zip(*sent, strict=True)]
        late = straggler(enters, 0.002) if enters else None
        by = late and 1e3 * late[1] / len(enters)
        print("no rank is late" if late is None else f"rank {late[0]} enters {by:.1f} ms late")
        if figure is None:
            figure = timeline(seen, caption="A step with a bucket for each layer.")
figure

# %% [markdown]
# Where a measured step is more than 20 % from its prediction, look at the end of its line. Your clock assumes that
# ranks arrive together; if one of them enters its all-reduces late, the other one waits. Your clock also assumes that
# sending and computing do not disturb each other. Sleeping layers are never disturbed. Layers that multiply on the same
# cores are, and so are those on a GPU, to a smaller degree: NCCL's kernels occupy some of the processors that compute.

# %% [markdown]
# ## 12. Choose a plan
#
# Now put it together. Llama 3 70B trains on nodes of eight H100s with 80 GB each. A step is 32 sequences of 8,192
# tokens for each node, one sequence a micro-batch. A plan divides the GPUs into data × tensor × pipeline, chooses
# ZeRO's stage among the data-parallel ranks, and recomputes activations or not. Parameters, gradients in 32 bits and
# optimizer states take 18 bytes a parameter, 1.27 TB together. The activations of one sequence take 203 GB. A plan has
# to divide both.
#
# `ringzero plan` tries all plans and prices them. Do not ask it yet.
#
# **Guess first.** On 8 nodes: which of data parallelism with ZeRO-3, tensor parallelism of 8, and a pipeline would you
# start with? What does each of them divide: the states, the activations, both?
#
# <details><summary>Answer</summary>ZeRO-3 divides the states among the data-parallel ranks, and no activations: each of
# its ranks has a sequence of its own. Tensor parallelism divides both. A pipeline divides the states; of a sequence's
# activations too, but its first stage keeps those of as many sequences as there are stages. One sequence has 203 GB, so
# begin with what divides them. (Recomputation makes them small instead: with it ZeRO-3 alone fits, too.)</details>
#
# Write `plan`: for so many `nodes` (4, 8, 16 or 32), a dict with `"data"`, `"tensor"`, `"pipeline"`, whose product is
# the number of GPUs, and if you like `"stage"` (0 to 3; by default 1) and `"recomputation"` (`"none"`, the default, or
# `"full"`). ZeRO-2 and 3 do not go with a pipeline. The plan has to fit, and its step may take at most 10 % longer than
# that of the best plan there is. Run the check as often as you like: it says what is wrong with a plan.


# %% nbgrader={"grade_id": "plan", "solution": true}
def plan(nodes):
    """How to divide the work among ``nodes`` of eight GPUs."""
    ### BEGIN SOLUTION
    # Tensor parallelism fills a node and divides all; 4 stages divide the rest without many micro-batches' bubble.
    return {"data": 8 * nodes // 32, "tensor": 8, "pipeline": 4, "stage": 1}
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_plan", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import overlapping

check = Check("plan", points=3, world_size=WORLD_SIZE, device=DEVICE)
check.meets(overlapping.plan)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %%
if written("plan"):
    llama, nodes = MODELS["llama3-70b"], Cluster("H100", nodes=8)
    ranking = planner.rank(llama, nodes, 256)
    print(f"{ranking.tried:,} plans on 64 GPUs, of which {len(ranking.fitting)} fit. The best, and yours:")
    mine = Plan(**plan(8))
    impossible = planner.why_not(llama, nodes, 256, mine)
    for each in planner.best_of_each(ranking)[:4] + ([] if impossible else [estimate(llama, nodes, 256, mine)]):
        print(f"  {each.seconds:5.1f} s, MFU {each.mfu:.0%}, {each.bytes / 1e9:3.0f} GB: {each.plan}")
    largest = sorted(each.time.items(), key=lambda item: -item[1])
    print("yours:", impossible or ", ".join(f"{seconds:.1f} s {name}" for name, seconds in largest if seconds > 0.05))

# %% [markdown]
# ## 13. In your own words
#
# Three to six sentences, with numbers from your functions. You train on 128 H100s, 16 nodes of 8, at 40 % of their
# peak. NVLink carries 450 GB/s inside a node; between nodes each GPU has a card of 50 GB/s, and NCCL's rings use all
# eight cards of a node, so a GPU sends up to 400 GB/s. Gradients have 16 bits. A GPU computes eight micro-batches of
# 4,096 tokens a step. Does the all-reduce of data parallelism hide if latency is ignored? And in buckets of 25 MB, each
# of which takes 0.68 ms? What would you change if it does not? How many ways of tensor parallelism hide behind a
# product with 8,192 columns inside a node? What would you measure first?

# %% [markdown] nbgrader={"grade_id": "a_plan", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. Without latency 0.992 · 0.4 · 989e12 / 400e9 = 981 tokens are enough. The last micro-batch has 4,096, so the
#    all-reduce hides.
# 2. A bucket of 25 MB holds 12.5 million gradients, whose backward pass takes 4 · 12.5e6 · 4096 / (0.4 · 989e12) = 0.52
#    ms, less than 0.68 ms, so a quarter of the all-reduce is exposed. Larger buckets help, a larger micro-batch, fewer
#    GPUs, and sending less. More micro-batches make the same waiting a smaller share of the step. A larger model does
#    not help.
# 3. Tensor parallelism hides on up to 10 ranks over NVLink, so on the node's 8. Measure first the seconds of a bucket's
#    all-reduce and the FLOP/s of the layers, since both are worse than the data sheet, and whether one rank is late.
#
# Three answers and their points:
#
# > 981 tokens would do, we have 4,096 in the last micro-batch: it hides. In buckets a backward piece of 12.5 million
# > parameters lasts 0.52 ms and its all-reduce 0.68 ms, so 0.16 ms of each stay visible. I would make the buckets 100
# > MB. My function gives 10 ways of tensor parallelism, so all 8 of the node. First I would time one all-reduce of 25
# > MB on all 128 GPUs and one layer on one GPU.
#
# 3 points: all three.
#
# > 8 · 4,096 = 32,768 tokens are far more than 981, so it hides. With buckets 0.52 ms of computing stand against 0.68
# > ms, so it does not; use larger buckets. 8-way tensor parallelism is fine, since 10 would hide. I would measure the
# > real bandwidth of a bucket and the real FLOP/s.
#
# 2 points: the second and the third. Only the last micro-batch can hide the all-reduce: 4,096 tokens, not 32,768.
#
# > It hides, because NVLink has 450 GB/s. If it does not, use a larger model, because then there is more to compute.
#
# 0 points: the all-reduce crosses nodes, and a larger model sends as much more as it computes more.
# ### END SOLUTION
