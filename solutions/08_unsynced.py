# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Without full synchronisation
#
# In data-parallel training all ranks agree on every gradient in every step. An all-reduce of S bytes makes each of N
# ranks send 2(N−1)/N · S bytes. Between the GPUs of one machine that is cheap. Between two cities it is not. One
# billion fp32 parameters are 4 GB; at 1 Gbit/s, 8 GB of messages take 64 seconds, in every step.
#
# There are three ways to send less:
#
# - agree less often: *local SGD* and *DiLoCo* (sections 1 and 2)
# - agree with fewer ranks at a time: *gossip* (sections 3 and 4)
# - say it in fewer bytes: *top-k*, *signs* and *PowerSGD*, with a memory of what was left out (sections 5 to 8)
#
# All three change what is computed. So you measure two things: the bytes, and whether training still gets there.
#
# A check shows a table: what was claimed, whether it holds, why not, and the points. It compares with a simulation of
# all ranks in one process, counts the bytes from the record of what each rank sent, and reads what was in them. The
# checks that you see run on `WORLD_SIZE` ranks, on 3, and where it matters on 1. Their score is of the tests that you
# see; hidden tests follow at hand-in, with the same claims on 1, 2, 3 and 5 ranks, other sizes and other numbers.
#
# Use torch and `torch.distributed`, on the default process group. Each section says which calls it needs. The library
# has its own version of all this, and torch has some of it (`model_averaging`, `ddp_comm_hooks`); a check refuses both.
# It also refuses other process groups and stores, because nobody counts what travels there.
#
# You need chapters 8 and 9 first. After this lab you can
#
# - write local SGD and gossip (`gossip`)
# - compress gradients and keep what was left out (`ErrorFeedback`)
# - count what each method sends, and choose one for a link (`which_method`)
#
# About 120 to 150 minutes. Wherever you see **Guess first**, do: write the answer down before you open it.

# %% tags=["parameters"]
WORLD_SIZE = 4
DEVICE = "auto"

# %%
from ringzero_course.lab import check_parameters, launch, written

check_parameters()

import torch
import torch.distributed as dist

# %% [markdown]
# ## 1. Average every H steps
#
# Each rank takes H steps alone, with its own data and its own optimizer. Then all ranks take the mean of their
# *parameters*, and go on from there. That is local SGD (Stich, 2019).
#
# **Guess first.** How many times fewer bytes than DDP does this send? With H = 1 and plain gradient descent: is it the
# same training as DDP? And with H = 1 and Adam?
#
# <details><summary>Answer</summary>H times fewer. With plain gradient descent the mean of x − λ·gᵣ over the ranks is x
# − λ times the mean of gᵣ: the same training as DDP. Adam divides by a root of what each rank saw, so the mean of the
# steps is not the step of the mean.</details>
#
# Write `local_sgd`.
#
# - For each batch: one step of `optimizer`, on the gradient of `loss_of(model, batch)`. An optimizer has `zero_grad()`
#   and `step()`.
# - After every `h`-th step, and after the last one: the parameters that are trained (`p.requires_grad`) become their
#   mean over the ranks, in place. If the last step is an `h`-th one, that happens once.
# - A rank may leave out a layer in its loss. Its parameters have no gradient there, and are averaged like all others.
# - Nothing else is sent. What the optimizer remembers stays with its rank.
#
# A model may be in fp32 or fp64. All ranks begin with the same parameters and have the same number of batches, a list,
# which stays as it is; a batch may come more than once. The call you need is `dist.all_reduce`.


# %% nbgrader={"grade_id": "local_sgd", "solution": true}
def local_sgd(model, optimizer, loss_of, batches, h):
    """Train ``model`` on this rank's ``batches``; average the parameters after every ``h`` steps and after the last."""
    ### BEGIN SOLUTION
    for step, batch in enumerate(batches, 1):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
        if step % h == 0 or step == len(batches):
            for p in model.parameters():
                if p.requires_grad:
                    dist.all_reduce(p.data)
                    p.data /= dist.get_world_size()
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_local_sgd", "grade": true, "points": 5}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import unsynced

check = Check("local_sgd", points=5, world_size=WORLD_SIZE, device=DEVICE)
check.meets(unsynced.local_sgd)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 2. A step on what the round changed
#
# With large H the mean of the parameters forgets where everyone was heading. DiLoCo (Douillard et al., 2023) treats
# what a round of local steps has changed as a gradient. At the start of a round all ranks have the same parameters x.
# After it, rank r has xᵣ. The *pseudo-gradient* is
#
# Δ = x − mean of xᵣ over the ranks,
#
# and an outer optimizer, gradient descent with Nesterov's momentum, steps x with it:
#
# v ← μ·v + Δ
#
# x ← x − λ·(Δ + μ·v)
#
# with the new v, which begins as 0. Every rank then goes on from x.
#
# **Guess first.** What is it with λ = 1 and μ = 0? How many bytes does it send more than local SGD, and how many
# numbers does a rank have to keep more?
#
# <details><summary>Answer</summary>Local SGD. No byte more: Δ has as many numbers as x. It keeps two more for each
# parameter, x and v. They are needed once in a round, so they may stay in the host's memory.</details>
#
# Write `OuterStep`. `parameters` is a list of tensors, in fp32 or fp64, that the local steps change in place. `step()`
# is called at the end of each round: it writes the new x into them. In a round nothing may have changed, on some ranks
# or on all. The call you need is `dist.all_reduce`, on as many numbers as there are parameters.


# %% nbgrader={"grade_id": "OuterStep", "solution": true}
class OuterStep:
    """Gradient descent with Nesterov's momentum on what each round of local steps has changed."""

    def __init__(self, parameters, lr, momentum):
        self.parameters, self.lr, self.momentum = parameters, lr, momentum
        ### BEGIN SOLUTION
        self.starts = [p.detach().clone() for p in parameters]
        self.velocities = [torch.zeros_like(start) for start in self.starts]
        ### END SOLUTION

    @torch.no_grad()
    def step(self):
        """End a round: all ranks have the new parameters."""
        ### BEGIN SOLUTION
        for p, start, velocity in zip(self.parameters, self.starts, self.velocities, strict=True):
            change = start - p
            dist.all_reduce(change)
            change /= dist.get_world_size()
            velocity.mul_(self.momentum).add_(change)
            start.sub_(self.lr * (change + self.momentum * velocity))
            p.copy_(start)
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_OuterStep", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import unsynced

check = Check("OuterStep", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(unsynced.outer_step)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## What the ranks learn together
#
# A problem to try everything on: find a matrix of 24 × 20 numbers from noisy measurements. Every rank has measurements
# of its own, and the best matrix for one rank is not the best for another. Looked for is the matrix with the smallest
# mean squared error over the data of all ranks.

# %%
ROWS, COLUMNS = 24, 20


class Problem:
    """This rank's measurements. ``gradient(x)`` is that of its own loss, ``above(x)`` says how good x is for all."""

    def __init__(self, rank, n):
        self.everyones = [self.measured(r) for r in range(n)]
        self.inputs, self.outputs = self.everyones[rank]

    def measured(self, r):
        source, here = torch.Generator("cpu").manual_seed(0), torch.get_default_device()

        def normal(*shape):
            return torch.randn(*shape, generator=source, device="cpu").to(here)

        right = normal(ROWS, COLUMNS)
        source.manual_seed(r + 1)
        own = right + 0.3 * normal(ROWS, COLUMNS)
        order = torch.randperm(ROWS, generator=source, device="cpu")
        inputs = torch.logspace(-0.7, 0.3, ROWS, device="cpu")[order].to(here) * normal(96, ROWS)
        return inputs, inputs @ own + 0.1 * normal(96, COLUMNS)

    def gradient(self, x):
        return self.inputs.T @ (self.inputs @ x - self.outputs) / len(self.inputs)

    def loss(self, x):
        return sum((a @ x - b).square().mean() for a, b in self.everyones) / len(self.everyones)

    def above(self, x):
        """How far the loss over all ranks' data is above the smallest there is."""
        square = sum(a.T @ a for a, b in self.everyones)
        least = torch.linalg.solve(square, sum(a.T @ b for a, b in self.everyones))
        return max(0.0, (self.loss(x) - self.loss(least)).item())


# %% [markdown]
# Your `local_sgd` and your `OuterStep` on it: 128 steps of gradient descent in rounds of H steps. Shown is how far the
# loss is above the smallest one at the end.
#
# **Guess first.** Does the loss still come down to the smallest one with H = 64?
#
# <details><summary>Answer</summary>No, it stops above it, and the more so the larger H is. The text after the cell says
# why.</details>


# %%
class Matrix(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(ROWS, COLUMNS))


class Descent:
    """Plain gradient descent, as an optimizer."""

    def __init__(self, parameters, rate=0.1):
        self.parameters, self.rate = list(parameters), rate

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            p -= self.rate * p.grad


def less_often(steps=128):
    """``(H, with local SGD, with DiLoCo)`` for some H: how far above the smallest loss."""
    problem = Problem(dist.get_rank(), dist.get_world_size())
    found = [(0, *2 * [problem.above(Matrix().x.detach())])]

    def loss_of(model, batch):
        return (problem.inputs @ model.x - problem.outputs).square().sum() / (2 * len(problem.inputs))

    for h in (1, 4, 16, 64):
        local, outer = Matrix(), Matrix()
        local_sgd(local, Descent(local.parameters()), loss_of, list(range(steps)), h)
        optimizer, end_of_round = Descent(outer.parameters()), OuterStep([outer.x], lr=0.7, momentum=0.5)
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(outer, step).backward()
            optimizer.step()
            if step % h == h - 1:
                end_of_round.step()
        found.append((h, problem.above(local.x.detach()), problem.above(outer.x.detach())))
    return found


if written("local_sgd", "OuterStep"):
    print("     H   local SGD    DiLoCo")
    for h, local, outer in launch(less_often, world_size=WORLD_SIZE, device=DEVICE).returns[0]:
        print(f"{h or 'start':>6} {local:11.2g} {outer:9.2g}")

# %% [markdown]
# In H steps alone each rank drifts towards the matrix that is best for its own data. The mean of where the ranks come
# to is not the best for all. More rounds do not mend that, since each begins with the same drift; a smaller rate does.
# The outer momentum makes progress faster as long as there are many rounds. With H = 64 there are two.
#
# ## 3. Whom to talk to
#
# In gossip (D-PSGD, Lian et al., 2017) a rank talks to its neighbours in a *graph*, and to nobody else. In a round it
# replaces what it has by a weighted mean of its own and its neighbours': xᵣ ← Σₛ W[r][s]·xₛ. Nobody ever has the exact
# mean of all. But if W is symmetric, with rows that sum to 1, and no part of the graph is cut off, all ranks come
# closer to it in every round.
#
# Metropolis-Hastings weights have these properties on any graph. With dᵣ the number of neighbours of rank r:
#
# - W[r][s] = 1 / (1 + max(dᵣ, dₛ)) for neighbours r and s
# - W[r][s] = 0 for others
# - W[r][r] = what is missing in row r to the sum 1
#
# How fast? The *consensus distance* is the root mean square, over the ranks, of the distance between a rank's x and the
# mean. It shrinks by |λ| or more in each round, where λ is the eigenvalue of W with the largest magnitude *besides* the
# 1 that belongs to the mean. The *spectral gap* is 1 − |λ|. With a single rank there is no other eigenvalue: the gap
# is 1.
#
# **Guess first.** Which ring of 4 ranks, of 8, of 16 has the largest gap? And what is the gap of a graph in two parts
# that nothing joins?
#
# <details><summary>Answer</summary>That of 4: on a ring λ = (1 + 2·cos(2π/N))/3, so the gap is 0.67, 0.20 and 0.05.
# News travels one step in a round, and with N ranks the gap falls like 1/N². In two separate parts the parts never
# agree: there is a second eigenvalue 1, and the gap is 0.</details>
#
# Write `metropolis` and `gap`. They send nothing, and leave what they are given as it was. `neighbours[r]` is the list
# of the neighbours of rank r, without r itself. Weights are a list of rows, each a list of N floats. `gap` is given any
# symmetric weights whose rows sum to 1 and whose eigenvalues are from −1 to 1. `torch.linalg.eigvalsh` gives the
# eigenvalues of a symmetric matrix.


# %% nbgrader={"grade_id": "metropolis", "solution": true}
def metropolis(neighbours):
    """The Metropolis-Hastings weights of a graph: N rows of N floats."""
    ### BEGIN SOLUTION
    n = len(neighbours)
    weights = [[0.0] * n for _ in range(n)]
    for r in range(n):
        for s in neighbours[r]:
            weights[r][s] = 1 / (1 + max(len(neighbours[r]), len(neighbours[s])))
        weights[r][r] = 1 - sum(weights[r])
    return weights
    ### END SOLUTION


def gap(weights):
    """1 less the largest magnitude of an eigenvalue besides the 1 of the mean."""
    ### BEGIN SOLUTION
    magnitudes = torch.linalg.eigvalsh(torch.tensor(weights, dtype=torch.float64)).abs().sort().values
    return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_metropolis", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import unsynced

check = Check("metropolis", points=3, world_size=WORLD_SIZE, device="cpu")
check.meets(unsynced.metropolis)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4. A round of gossip
#
# Rank r uses row r of the weights. It needs xₛ from each s ≠ r with W[r][s] ≠ 0, and must send its own x to each s with
# W[s][r] ≠ 0. In a symmetric W these are the same ranks. In others they are not: think of ranks that pass on to the
# right and receive from the left.
#
# **Guess first.** How many bytes does a rank of a ring send in a round, for S bytes? Is that more or less than in a
# ring all-reduce on 4 ranks, and on 1,000?
#
# <details><summary>Answer</summary>2S, to two neighbours, whatever N is. An all-reduce sends 2(N−1)/N · S: 1.5 S on 4
# ranks, nearly 2S on 1,000. Gossip on a ring saves no bytes! It saves rounds: every rank is done after one exchange
# with two neighbours, and need not wait for N − 1 others, while a ring all-reduce takes 2(N−1) rounds that follow each
# other. With one neighbour at a time it is S.</details>
#
# Write `gossip`. It returns a new tensor of the shape and type of `x`, also where nothing comes, and leaves `x` and
# `weights` as they were. `weights` may be any rows that sum to 1, symmetric or not; a weight may be below 0. A rank may
# have no neighbours. Send `x` in the type that it has, and only to those who need it. The calls you need are
# `dist.P2POp` with `dist.isend` and `dist.irecv`, and one `dist.batch_isend_irecv`, which may not be given an empty
# list. (With `dist.send` first on every rank, small messages pass on gloo, and NCCL waits for ever.)


# %% nbgrader={"grade_id": "gossip", "solution": true}
def gossip(x, weights):
    """The sum over s of weights[r][s] times the x of rank s, on rank r."""
    ### BEGIN SOLUTION
    r, n = dist.get_rank(), dist.get_world_size()
    others = [s for s in range(n) if s != r]
    received = {s: torch.empty_like(x) for s in others if weights[r][s] != 0}
    together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] != 0]
    together += [dist.P2POp(dist.irecv, received[s], s) for s in received]
    for work in dist.batch_isend_irecv(together) if together else []:
        work.wait()
    mixed = weights[r][r] * x
    for s in received:
        mixed += weights[r][s] * received[s]
    return mixed
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_gossip", "grade": true, "points": 5}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import unsynced

check = Check("gossip", points=5, world_size=WORLD_SIZE, device=DEVICE)
check.meets(unsynced.gossip)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# The consensus distance of 8 rounds on 4 ranks, measured with your `gossip`, beside what your `gap` predicts: the
# distance at the start times (1 − gap)ᵗ. (This picture is made on the CPU. Two ranks would agree after one round.)


# %%
def distances(weights, rounds=8):
    source = torch.Generator("cpu").manual_seed(dist.get_rank())
    x, found = torch.randn(200, generator=source, dtype=torch.float64), []
    for _ in range(rounds + 1):
        mean = x.clone()
        dist.all_reduce(mean)
        off = (x - mean / dist.get_world_size()).square().sum()
        dist.all_reduce(off)
        found.append((off / dist.get_world_size()).sqrt().item())
        x = gossip(x, weights)
    return found


def draw_distances():
    from ringzero_course.figures import chart

    graphs = {"ring": [[1, 3], [0, 2], [1, 3], [2, 0]], "path": [[1], [0, 2], [1, 3], [2]]}
    series, styles = {}, {}
    for name, neighbours in graphs.items():
        weights = metropolis(neighbours)
        found = launch(distances, weights, world_size=4, device="cpu").returns[0]
        rounds = list(range(len(found)))
        series[name] = (rounds, found)
        series[f"{name}, predicted"] = (rounds, [found[0] * (1 - gap(weights)) ** t for t in rounds])
        styles |= {name: "both", f"{name}, predicted": "dashed"}
    title, y = "Consensus distance", "distance from the mean"
    caption = "A straight line on the logarithmic axis: each round divides the distance by the same factor."
    return chart(series, x="rounds", y=y, title=title, log="y", styles=styles, caption=caption)


if written("metropolis", "gap", "gossip"):
    from IPython.display import display

    display(draw_distances())

# %% [markdown]
# The prediction is a bound: it is met when nothing but the slowest part is left. Faster parts die out in the first
# rounds.
#
# ## 5. The k largest numbers
#
# Most numbers of a gradient are small. *Top-k* (Aji and Heafield, 2017) sends the k numbers of the largest magnitude
# and says where they are: an index and a value for each. Ranks choose different places, so an all-reduce cannot add
# them up on the way. An all-gather brings all pairs to everyone, and each rank adds.
#
# **Guess first.** Indices are int32 and values fp32. Of a gradient of 1,000,000 numbers k = 10,000 are sent. How many
# bytes does a rank send on N ranks, and how many with an all-reduce of the whole gradient? From which N on is top-k the
# one that sends more?
#
# <details><summary>Answer</summary>80,000 bytes to each of N − 1 others: 80,000(N−1). The all-reduce sends 2(N−1)/N ·
# 4,000,000. They are equal at N = 100, where everyone gets 100 times 10,000 numbers, as many as there are.</details>
#
# Write `top_k_mean`. `vector` is 1-D fp32, and stays what it was. It returns two new vectors of that length:
#
# - `mean`: the mean over the ranks of what each rank kept, with 0 for what a rank did not keep
# - `mine`: what *this* rank kept, zeros elsewhere
#
# k may be larger than the vector; then all of it is kept. The call you need is `dist.all_gather`, with k int32 indices
# and k fp32 values from each rank, and nothing else.


# %% nbgrader={"grade_id": "top_k_mean", "solution": true}
def top_k_mean(vector, k):
    """``(mean, mine)``: the mean of the ``k`` largest numbers of each rank, and this rank's own, as whole vectors."""
    ### BEGIN SOLUTION
    n = dist.get_world_size()
    indices = vector.abs().topk(min(k, vector.numel())).indices.int()
    values = vector[indices]
    all_indices = [torch.empty_like(indices) for _ in range(n)]
    all_values = [torch.empty_like(values) for _ in range(n)]
    dist.all_gather(all_indices, indices)
    dist.all_gather(all_values, values)
    mean, mine = torch.zeros_like(vector), torch.zeros_like(vector)
    for theirs, what in zip(all_indices, all_values, strict=True):
        mean[theirs] += what / n
    mine[indices] = values
    return mean, mine
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_top_k_mean", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import compressed

check = Check("top_k_mean", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(compressed.top_k_mean)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6. A memory of what was left out
#
# What top-k leaves out is lost, and may be just what matters: a number that is small in every step, but always points
# the same way. *Error feedback* (Seide et al., 2014; Stich et al., 2018) keeps it. Each rank has a memory, at first
# of zeros. In a step it
#
# 1. adds its memory to its gradient,
# 2. compresses the sum,
# 3. keeps as its new memory what of the sum was not sent.
#
# **Guess first.** Four ranks' gradients have large numbers that cancel, and a small number on which all agree. What
# does top-k without a memory send, in every step? And with it, after a while?
#
# <details><summary>Answer</summary>Without: the large ones, which sum to about 0, for ever; training stands still.
# With: the small number grows in the memory by the same amount in each step, until it is one of the largest, and is
# sent with all that was saved up.</details>
#
# Write `ErrorFeedback`. `compress(vector)` returns `(mean, mine)`, as your `top_k_mean` does, and does all the sending.
# `mean(gradient)` returns the mean of what was sent and leaves `gradient` as it was. You call nothing of
# `torch.distributed` yourself. A gradient may be a vector or a matrix, and `compress` is given the same shape. A
# program makes one `ErrorFeedback` for each layer, and each has a memory of its own. The caller may use the gradient's
# memory again afterwards.


# %% nbgrader={"grade_id": "ErrorFeedback", "solution": true}
class ErrorFeedback:
    """Compression whose errors are made up for in later steps."""

    def __init__(self, compress):
        self.compress = compress
        ### BEGIN SOLUTION
        self.memory = 0.0
        ### END SOLUTION

    def mean(self, gradient):
        """The mean over ranks of what each sends of ``gradient`` and of what it had left out before."""
        ### BEGIN SOLUTION
        corrected = gradient + self.memory
        mean, mine = self.compress(corrected)
        self.memory = corrected - mine
        return mean
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_ErrorFeedback", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import compressed

check = Check("ErrorFeedback", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(compressed.error_feedback)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7. One bit for a number
#
# *signSGD with majority vote* (Bernstein et al., 2019) sends the sign of each number and nothing else: a bit. All ranks
# count the votes and step by +1 or −1 (times the learning rate) in each direction.
#
# A computer sends bytes, so eight signs go into one. Number i is bit i % 8 of byte i // 8, where bit 0 has the value 1
# and bit 7 the value 128. The bit is 1 if the number is not below 0, else 0. Bits that are left over in the last byte
# are 0.
#
# **Guess first.** Which byte says + − − + + − + +? How many bytes do 1,000 numbers need, and how many would a tensor
# of 1,000 bools?
#
# <details><summary>Answer</summary>1 + 8 + 16 + 64 + 128 = 217. 125 bytes; a bool takes a whole byte, so
# 1,000.</details>
#
# Write three functions.
#
# - `pack_signs(x)`: 1-D fp32 to `torch.uint8`, ⌈n/8⌉ of them. Neither of the first two functions sends anything.
# - `unpack_signs(packed, numel)`: back to `numel` fp32 numbers, 1.0 or −1.0.
# - `majority(x)`: in fp32, 1.0 where at least as many ranks have a 1 as a 0 (a tie is 1.0), else −1.0. The call you
#   need is `dist.all_gather`, of the packed signs.
#
# All three leave what they are given as it was. `torch.arange(8)` and the operators `<<`, `>>` and `&` help. (A sum of
# uint8 is int64.)


# %% nbgrader={"grade_id": "majority", "solution": true}
def pack_signs(x):
    """Eight signs in a byte: bit i % 8 of byte i // 8 is 1 unless x[i] is below 0."""
    ### BEGIN SOLUTION
    bits = torch.zeros(-(-x.numel() // 8) * 8, dtype=torch.int64)
    bits[: x.numel()] = x >= 0
    return (bits.view(-1, 8) << torch.arange(8)).sum(1).to(torch.uint8)
    ### END SOLUTION


def unpack_signs(packed, numel):
    """``numel`` numbers 1.0 or -1.0 from what ``pack_signs`` returned."""
    ### BEGIN SOLUTION
    bits = packed.long()[:, None] >> torch.arange(8) & 1
    return 2.0 * bits.view(-1)[:numel] - 1
    ### END SOLUTION


def majority(x):
    """1.0 where at least half of the ranks have a number that is not below 0, else -1.0."""
    ### BEGIN SOLUTION
    packed = pack_signs(x)
    everyones = [torch.empty_like(packed) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, packed)
    votes = sum(unpack_signs(each, x.numel()) for each in everyones)
    return torch.where(votes >= 0, 1.0, -1.0)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_majority", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import compressed

check = Check("majority", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(compressed.majority)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 8. Two thin matrices
#
# The gradient of a layer is a matrix M, m × n, and often nearly the product of two thin ones: P, m × r, times the
# transpose of Q, n × r. *PowerSGD* (Vogels et al., 2019) finds them with one step of power iteration, and because M @ Q
# is linear in M, the mean over the ranks can be taken by an all-reduce. In each step:
#
# 1. P ← M @ Q on each rank; all-reduce
# 2. make the columns of P orthonormal
# 3. Q ← Mᵀ @ P on each rank; all-reduce, and take the mean
# 4. the result is P @ Qᵀ
#
# Q is kept for the next step. Gradients change slowly, so each step begins with a good guess.
#
# **Guess first.** A matrix of 4,096 × 1,024 with r = 4: how many times fewer bytes than the matrix? In step 1, does it
# matter whether you take the mean or the sum? And in step 3?
#
# <details><summary>Answer</summary>4,194,304 / (4 · 5,120) = 204.8 times. In step 1 it does not matter: the columns of
# P are normalised anyway. In step 3 the sum would make the result N times too large.</details>
#
# Write `PowerSGD`. `q` is the first Q, n × r, the same on all ranks. `mean(matrix)` does one step and returns an
# approximation of the mean matrix, the same bits on all ranks; it leaves `matrix` and the first `q` as they were. A
# matrix may be all zeros, on some rank or on all, and the next one not. The call you need is `dist.all_reduce`, of r(m
# + n) numbers in a step. `torch.linalg.qr(a).Q` has orthonormal columns that span the same space as those of `a`.


# %% nbgrader={"grade_id": "PowerSGD", "solution": true}
class PowerSGD:
    """The mean of a matrix over the ranks, about: of rank r, from r(m + n) numbers."""

    def __init__(self, q):
        self.q = q

    def mean(self, matrix):
        """An approximation of the mean over ranks of ``matrix``; the next one begins where this one ends."""
        ### BEGIN SOLUTION
        p = matrix @ self.q
        dist.all_reduce(p)
        p = torch.linalg.qr(p).Q
        self.q = matrix.T @ p
        dist.all_reduce(self.q)
        self.q /= dist.get_world_size()
        return p @ self.q.T
        ### END SOLUTION


# %% nbgrader={"grade_id": "test_PowerSGD", "grade": true, "points": 4}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import compressed

check = Check("PowerSGD", points=4, world_size=WORLD_SIZE, device=DEVICE)
check.meets(compressed.power_sgd)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 9. What a step sends
#
# Put it into numbers. The gradient is one fp32 matrix of `rows` × `columns`. An all-reduce of B bytes makes a rank send
# 2(N−1)/N · B bytes, an all-gather to which every rank gives B bytes (N−1) · B. For each method the bytes that one rank
# sends in a step, on the average of many steps:
#
# - `"DDP"`: the gradient, all-reduced
# - `"local SGD"`: the parameters, as many as the gradient has, every `h` steps
# - `"gossip"`: the parameters to `degree` neighbours, in every step
# - `"top-k"`: `k` numbers, with indices of 4 bytes
# - `"signs"`: a bit for a number, in whole bytes
# - `"PowerSGD"`: with thin matrices of `r` columns
#
# **Guess first.** Which of these send more and more as N grows? From how many ranks on do signs send more than DDP?
#
# <details><summary>Answer</summary>Those that gather: top-k and signs. Signs: (N−1)·S/32 against 2(N−1)/N·S: from N =
# 65 on they send more, with 64 both are equal. A server in the middle that counts the votes would change
# that.</details>


# %% nbgrader={"grade_id": "bytes_a_step", "solution": true}
def bytes_a_step(method, n, rows, columns, h=1, degree=2, k=0, r=1):
    """Bytes that one of ``n`` ranks sends in a step."""
    ### BEGIN SOLUTION
    whole = 4 * rows * columns
    given = {
        "DDP": whole,
        "local SGD": whole / h,
        "top-k": 8 * k,
        "signs": -(-rows * columns // 8),
        "PowerSGD": 4 * r * (rows + columns),
    }
    if method == "gossip":
        return degree * whole
    return given[method] * (n - 1 if method in ("top-k", "signs") else 2 * (n - 1) / n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_bytes_a_step", "grade": true, "points": 3}
from ringzero_course.lab import Check
from ringzero_course.lab.subjects import compressed

check = Check("bytes_a_step", points=3, world_size=WORLD_SIZE, device="cpu")
check.meets(compressed.bytes_a_step)
### BEGIN HIDDEN TESTS
check.hidden_cases()
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## All of them on one problem
#
# The matrix from above, 120 steps each, with what you wrote. "given" is counted from the record of rank 0: the bytes
# that it gave to `torch.distributed` in a step. "sent" is your `bytes_a_step`. "above" is how far the loss of the
# ranks' mean matrix is above the smallest there is.
#
# **Guess first.** Put the methods in order of their bytes. Which of them do not come down to the smallest loss?
#
# <details><summary>Answer</summary>On 4 ranks, from few to many: signs, local SGD, PowerSGD, top-k, DDP, gossip.
# Those that forget what they left out, top-k without a memory and signs, stay furthest above; local SGD and gossip a
# little.</details>


# %%
STEPS, RATE, K, H, THIN = 120, 0.1, 24, 8, 2


def ring_weights(n):
    return metropolis([sorted({(r - 1) % n, (r + 1) % n} - {r}) for r in range(n)])


def train_with(method):
    """This rank's matrix after ``STEPS`` steps of ``method``."""
    rank, n = dist.get_rank(), dist.get_world_size()
    problem, weights, x = Problem(rank, n), ring_weights(n), torch.zeros(ROWS, COLUMNS)
    q = torch.randn(COLUMNS, THIN, generator=torch.Generator("cpu").manual_seed(0), device="cpu").to(x.device)
    power = PowerSGD(q)

    def top(vector):
        return top_k_mean(vector, K)

    def low_rank(matrix):
        mean = power.mean(matrix)
        return mean, mean  # PowerSGD's memory is of what the mean lacks

    remembering = ErrorFeedback(top if "top-k" in method else low_rank)
    for step in range(STEPS):
        gradient = problem.gradient(x)
        if method == "DDP":
            dist.all_reduce(gradient)
            x = x - RATE * gradient / n
        elif method == "local SGD":
            x = x - RATE * gradient
            if step % H == H - 1:
                dist.all_reduce(x)
                x = x / n
        elif method == "gossip":
            x = gossip(x, weights) - RATE * gradient
        elif method == "top-k":
            x = x - RATE * top(gradient.view(-1))[0].view_as(x)
        elif method == "top-k, memory":
            x = x - RATE * remembering.mean(gradient.view(-1)).view_as(x)
        elif method == "signs":
            x = x - 0.05 * (1 - step / STEPS) * majority(gradient.view(-1)).view_as(x)
        elif method == "PowerSGD, memory":
            x = x - RATE * remembering.mean(gradient)
    return x


def race():
    methods = ("DDP", "local SGD", "gossip", "top-k", "top-k, memory", "signs", "PowerSGD, memory")
    rows = []
    for method in methods:
        done = launch(train_with, method, world_size=WORLD_SIZE, device=DEVICE, trace=True)
        x = torch.stack(done.returns).mean(0)
        above = Problem(0, WORLD_SIZE).above(x)
        given = sum(op.bytes for op in done.trace if op.rank == 0 and op.kind != "recv") / STEPS
        options = {"h": H, "degree": min(WORLD_SIZE - 1, 2), "k": K, "r": THIN}
        sent = bytes_a_step(method.split(",")[0], WORLD_SIZE, ROWS, COLUMNS, **options)
        rows.append((method, given, sent, above))
    return rows


if written("metropolis", "gossip", "top_k_mean", "ErrorFeedback", "majority", "PowerSGD", "bytes_a_step"):
    print(f"{'':18}{'given':>8}{'sent':>8}   above")
    for method, given, sent, above in race():
        print(f"{method:18}{given:8,.0f}{sent:8,.0f}   {above:.2g}")

# %% [markdown]
# A memory costs no byte, and brings top-k down to where the others are. Signs have no sizes: at the end their steps are
# too long for some numbers and too short for others. Gossip gives the most bytes of all, and waits for two neighbours
# only. PowerSGD is as good as DDP here with a few hundred bytes, because its memory makes up for what two columns
# cannot say.
#
# ## 10. In your own words
#
# Four to seven sentences, with numbers. You train a model of 1 billion fp32 parameters on 8 ranks in 8 cities, joined
# by links of 1 Gbit/s (0.125 GB/s). A step takes 2 seconds of computing on every rank. How long are the messages of a
# step with DDP? Choose a method for this link, say with which H, k or r, and how long its messages are in a step. What
# may be worse in the training than with DDP, and what would you watch to notice it? And which of the methods above
# would you leave out with 1,000 ranks in place of 8, and why?

# %% [markdown] nbgrader={"grade_id": "which_method", "solution": true, "grade": true, "points": 3}
# ### BEGIN SOLUTION
# One point for each of these:
#
# 1. DDP sends 2 · 7/8 · 4 GB = 7 GB: 56 seconds beside 2 seconds of computing.
# 2. A choice with its number. DiLoCo or local SGD with H = 500: 7 GB in 1,000 seconds of computing, 0.11 seconds a
#    step, or nothing where the exchange goes on beside the next round. Or PowerSGD. Or top-k of 0.1 % with a memory: 8
#    · 1,000,000 · 7 = 56 MB, 0.45 seconds a step. Gossip alone does not help: 8 GB a step.
# 3. What is worse, how to see it, and what to leave out. With a large H the ranks drift apart; watch the loss of the
#    averaged parameters on data held back, not the loss of each rank, and the distance between ranks before they
#    average. Compression without a memory may stand still; watch the size of the memory. With 1,000 ranks whatever
#    gathers is left out, since each rank sends to 999 others: signs 125 GB, top-k of 0.1 % 8 GB, as much as DDP. What
#    is all-reduced (local SGD, PowerSGD) stays below twice its size. A ring of gossip mixes too slowly then.
#
# Three answers and their points:
#
# > A DDP step sends 7 GB, that is 56 s of messages for 2 s of computing. I take DiLoCo with H = 500: 7 GB every 1,000
# > s, so 0.11 s for a step. The eight models drift apart for 500 steps; I would watch the validation loss of the
# > average, and how far apart the models are before it. With 1,000 ranks I would not use top-k, because every rank
# > sends its 8 MB to 999 others, which is 8 GB.
#
# 3 points: all three.
#
# > 7 GB and 56 s. Top-k with 0.1 % sends 1,000,000 numbers, so 8 MB and 0.06 s. It could converge worse, so I would
# > watch the loss. With 1,000 ranks I would leave out DDP.
#
# 1 point: the first. Top-k gathers, so a rank sends its 8 MB to seven others; whose loss is watched is not said, and
# DDP's bytes hardly grow with N.
#
# > Gossip is best for slow links, since each rank talks to two neighbours only.
#
# 0 points: gossip sends two whole models a step, 8 GB.
# ### END SOLUTION
