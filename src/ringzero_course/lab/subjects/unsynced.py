"""Lab 08, training without full synchronisation: what each function must be, what calls it, and what is right.

Each section has a function that runs on the ranks (``on_ranks``), one that does the work of all ranks in one process
(``in_one_process``), and a specification. Both make the same numbers from the same seed. ``compressed`` has the second
half of the lab.
"""

import functools
import math
import random
from collections.abc import Callable
from types import SimpleNamespace

import torch
import torch.distributed as dist

from ringzero.costs.gossip import matrix_gap, neighbours
from ringzero_course.lab.claims import values
from ringzero_course.lab.claims.collectives import all_of
from ringzero_course.lab.claims.oracle import in_one_process, is_right, nothing_said, same_bits, stays
from ringzero_course.lab.claims.traffic import cannot_deadlock, each_link_carries, nobody_waits_for_all
from ringzero_course.lab.harness import paper, returned, training
from ringzero_course.lab.harness.training import end_to_end, numbers
from ringzero_course.lab.payloads import payloads
from ringzero_course.lab.runs import Claim, Run
from ringzero_course.lab.specification import MANY, of
from ringzero_course.lab.unaided import UNSYNCED, unaided

# ---- what the sections share


def on_ranks(play: Callable) -> Callable:
    """A harness: ``play`` without what the library and torch have of this, and how much was sent meanwhile."""

    @functools.wraps(play)
    def harness(*functions, **case):
        with unaided(*UNSYNCED), payloads() as sent:
            report = play(*functions, **case)
        return report | {"numbers": sum(x.numel() for x in sent), "bytes": sum(x.nbytes for x in sent)}

    return harness


def hands_over(unit: str, due: Callable[[Run], int]) -> Claim:
    """A claim: no rank hands over more than so many "numbers" or "bytes"."""

    def claim(run):
        for rank, report in enumerate(run.returned):
            if report[unit] > due(run):
                return f"rank {rank} hands over {report[unit]:,} {unit}, where {due(run):,} would do"
        return None

    return claim


def gradient(shape: tuple, seed: int, rank: int, step: int = 0, quiet: tuple = ()) -> torch.Tensor:
    """What a rank has in a step: a part that all ranks share, and one of its own.

    ``quiet[step]`` says who has nothing but zeros, 0.0 and -0.0: "odd" ranks, or "all".
    """
    who = quiet[step] if step < len(quiet) else ""
    zeros = who == "all" or (who == "odd" and rank % 2 == 1)
    shared, own = numbers(shape, 1000 * seed + step), numbers(shape, 1000 * seed + 20 * (rank + 1) + step)
    return (0 if zeros else 1) * (shared + 0.5 * own)


# ---- 1. local_sgd


def start_of(seed, steps, model):
    """A model, plain gradient descent, and the numbers of the batches, of which the first comes again."""
    module = training.Model(seed, **model)

    def step():
        for p in module.parameters():
            p.data -= 0 if p.grad is None else 0.2 * p.grad

    descent = SimpleNamespace(step=step, zero_grad=module.zero_grad)  # torch.optim takes seconds to import
    return module, descent, [100 * seed + step % 4 for step in range(steps)]


@on_ranks
def train(local_sgd, *, seed, steps, h, **model):
    """The trained parameters before each step and at the end."""
    module, optimizer, batches = start_of(seed, steps, model)
    parameters, states = list(module.trained().values()), []

    def loss_of(model, batch):
        loss = training.loss_of(model, batch, dist.get_rank(), dist.get_world_size())
        if loss.requires_grad:  # a loss that is only printed is no step
            loss.register_hook(lambda _: states.append(end_to_end(parameters)))
        return loss

    local_sgd(module, optimizer, loss_of, batches, h)
    if len(states) != len(batches):
        raise ValueError(f"local_sgd made {len(states)} backward passes for {len(batches)} batches")
    return {"states": [*states, end_to_end(parameters)], "given": [torch.tensor(batches)]}


@in_one_process
def trained(n, *, seed, steps, h, cleared=True, **model):
    modules, optimizers, (batches, *_) = zip(*(start_of(seed, steps, model) for _ in range(n)), strict=True)
    parameters = [list(module.trained().values()) for module in modules]
    states = [[end_to_end(each) for each in parameters]]
    for step, batch in enumerate(batches, 1):
        for rank in range(n):
            if cleared:
                optimizers[rank].zero_grad()
            training.loss_of(modules[rank], batch, rank, n).backward()
            optimizers[rank].step()
        states.append([end_to_end(each) for each in parameters])
        if step % h == 0 or step == steps:
            states[-1] = [torch.stack(states[-1]).mean(0)] * n
            for each in parameters:
                torch.nn.utils.vector_to_parameters(states[-1][0].clone(), each)
    given = {"the list of batches": torch.tensor(batches)}
    words = "after step {} the vector of parameters"
    return [{"states": {words.format(i): s[rank] for i, s in enumerate(states)}, "given": given} for rank in range(n)]


@of(harness=train, built_from=("all_reduce",))
def local_sgd(check):
    def when_due(run):
        return math.ceil(run.option("steps") / run.option("h")) * run.returned[0]["states"][0].numel()

    stale = "is what gradients of the steps before give: call optimizer.zero_grad() in each step"
    states = is_right(trained, "states", mistakes=lambda run, rank: {stale: trained(run, rank, cleared=False)})
    as_simulated = all_of(states, stays(trained))
    sends = all_of(as_simulated, hands_over("numbers", when_due), nobody_waits_for_all)

    six, alone = check.run(seed=1, steps=6, h=3), check.run(seed=4, steps=3, h=2, ranks=1)
    rest = check.run(seed=2, steps=7, h=3, ranks=3, frozen=(1,))
    seldom = check.run(seed=5, steps=2, h=5, tied=(1, 2), hidden=(8, 8, 8), gain=True)
    unused = check.run(seed=6, steps=4, h=1, hidden=(6, 6, 6), skipped_on_odd=(1,), ranks=3)
    check.that("6 steps, averaged twice: every step is as simulated", six, as_simulated, weight=2)
    check.that("7 steps, one layer frozen; h larger than the number of steps", [rest, seldom], as_simulated)
    check.that("a layer that odd ranks do not use; a single rank", [unused, alone], as_simulated)
    check.that("parameters are sent when it is due", [six, rest, seldom, unused], sends, weight=2)
    check.on_nccl(rest, as_simulated)
    draw = yield
    case = {"seed": draw.randrange(MANY), "steps": draw.randrange(4, 8), "h": draw.randrange(2, 4)}
    several = check.runs(ranks=(1, 2, 3, 5), **case, hidden=tuple(draw.choices(range(3, 10), k=draw.randrange(1, 4))))
    several += check.runs(ranks=(2, 4), seed=case["seed"], steps=3, h=50, hidden=(6, 6, 6), frozen=(0,))
    check.that("1 to 5 ranks; h larger than the number of steps", several, sends, weight=3)


# ---- 2. OuterStep

SHAPES = ((5, 3), (), (2, 2, 2))
SIZES = [math.prod(shape) for shape in SHAPES]


@on_ranks
def outer_rounds(make, *, seed, lr, momentum, rounds=3, quiet=()):
    """All parameters after each round. Local steps change them by ``gradient``."""
    rank, here = dist.get_rank(), torch.get_default_device()
    starts = zip(numbers((sum(SIZES),), seed).to(here).split(SIZES), SHAPES, strict=True)
    parameters = [torch.nn.Parameter(start.view(shape).clone()) for start, shape in starts]
    outer, states = make(list(parameters), lr, momentum), []
    for turn in range(rounds):
        changes = gradient((sum(SIZES),), seed, rank, turn, quiet).to(here).split(SIZES)
        for p, change in zip(parameters, changes, strict=True):
            p.data += change.view_as(p)
        outer.step()
        states.append(end_to_end(parameters))
    return {"states": states}


@in_one_process
def nesterov(n, *, seed, lr, momentum, rounds=3, quiet=()):
    x = numbers((sum(SIZES),), seed)
    velocity, states = torch.zeros_like(x), {}
    for turn in range(rounds):
        delta = -torch.stack([gradient(x.shape, seed, rank, turn, quiet) for rank in range(n)]).mean(0)
        velocity = momentum * velocity + delta
        x = x - lr * (delta + momentum * velocity)
        states[f"after round {turn + 1} the vector of parameters"] = x
    return [{"states": states}] * n


@of(harness=outer_rounds, built_from=("all_reduce",))
def outer_step(check):
    plain = "is x less λ·Δ alone; the step is λ·(Δ + μ·v), with the new v"
    right = is_right(nesterov, "states", mistakes=lambda run, rank: {plain: nesterov(run, rank, momentum=0.0)})
    sends = hands_over("numbers", lambda run: run.option("rounds", 3) * sum(SIZES))
    whole = all_of(right, sends, same_bits("states", "the vector of parameters"))

    mean, three = check.run(seed=1, lr=1.0, momentum=0.0), check.run(seed=2, lr=0.7, momentum=0.9)
    quiet = check.run(seed=6, lr=0.7, momentum=0.5, rounds=4, quiet=("", "odd", "all"), ranks=3)
    alone = check.run(seed=4, lr=0.6, momentum=0.7, ranks=1)
    check.that("λ = 1 without momentum: the mean of the parameters", mean, right)
    check.that("three rounds with Nesterov's momentum", three, right, weight=2)
    check.that("rounds in which odd ranks change nothing, or nobody; a single rank", [quiet, alone], right)
    check.that("a round sends one number for each parameter; all ranks have the same bits", [three, quiet], whole)
    check.on_nccl(quiet, right)
    draw = yield
    case = {"lr": draw.uniform(0.2, 0.9), "momentum": draw.uniform(0.3, 0.9), "rounds": draw.randrange(5, 8)}
    several = check.runs(ranks=(1, 2, 3, 5), seed=draw.randrange(MANY), **case)
    check.that("1 to 5 ranks, more rounds", several, whole, weight=3)


# ---- 3. metropolis and gap


def weights_of(near: list[list[int]]) -> list[list[float]]:
    """By Metropolis and Hastings."""
    ranks = range(len(near))
    rows = [[(s in near[r]) / (1 + max(len(near[r]), len(near[s]))) for s in ranks] for r in ranks]
    for r, row in enumerate(rows):
        row[r] = 1 - sum(row)
    return rows


def mix(metropolis, gap, near, rows=None):
    """The weights of a graph; and the gap of these ``rows``, or of the right weights."""
    found = paper.on_paper(metropolis, near)
    return {"weights": found, "gap": paper.on_paper(gap, rows or weights_of(near))}


def has_metropolis_weights(run: Run) -> str | None:
    got = torch.tensor([[float(weight) for weight in row] for row in run.reports[0].weights])
    return values.close("the matrix of weights", [got], [torch.tensor(weights_of(run.case.args[0]))])


def has_the_gap(run: Run) -> str | None:
    near, *rows = run.case.args
    got, right = values.one_value(run.reports[0].gap), matrix_gap(rows[0] if rows else weights_of(near))
    is_right = isinstance(got, int | float) and abs(got - right) < 1e-5
    return None if is_right else f"the gap is {got!r}, expected {right:.6g}"


@of(harness=mix, uses=("gap",), built_from=(), ranks=1)
def metropolis(check):
    rings, uneven = [check.run(neighbours("ring", n)) for n in (1, 2, 4, 5)], check.run(neighbours("star", 6))
    parts, swapped = check.run([[1], [0], [3], [2]]), check.run([[1], [0]], [[0.0, 1.0], [1.0, 0.0]])
    check.that("weights of rings, also of one rank and of two", rings, has_metropolis_weights)
    check.that("weights where ranks have different numbers of neighbours", uneven, has_metropolis_weights)
    check.that("gaps of these graphs", [*rings, uneven], has_the_gap)
    check.that("gaps of a graph in two parts, and of two ranks that swap what they have", [parts, swapped], has_the_gap)
    draw = yield

    def drawn(n):
        edges = [{r, s} for r in range(n) for s in range(r) if draw.random() < 0.4]
        return [[s for s in range(n) if {r, s} in edges] for r in range(n)]

    more = [check.run(drawn(draw.randrange(3, 20))) for _ in range(6)]
    more += [check.run(neighbours(kind, draw.randrange(4, 18))) for kind in ("ring", "chain", "star")]
    check.that("weights of other graphs", more, has_metropolis_weights)
    check.that("gaps of other graphs", more, has_the_gap)


# ---- 4. gossip


def weights(kind: str, n: int) -> list[list[float]]:
    """Rows that sum to 1: those of a "ring", or "mixed" ones, of either sign and not symmetric."""
    if kind == "ring":
        return weights_of(neighbours("ring", n))
    dice = random.Random(2)
    rows = [dice.choices((0.0, 0.0, 0.5, -0.25, 0.01), k=n) for _ in range(n)]
    for r, row in enumerate(rows):
        row[r] += 1 - sum(row)
    return rows


@on_ranks
def gossip_rounds(gossip, *, kind, seed, shape=(37,), dtype=torch.float32, rounds=1):
    """What comes of some rounds; and what the last one was given, afterwards."""
    x = numbers(shape, 10 * seed + dist.get_rank()).to(torch.get_default_device(), dtype)
    rows = weights(kind, dist.get_world_size())
    for _ in range(rounds):
        given = x.clone()
        new = gossip(given, rows)
        x = returned.tensor("gossip", new, dtype)
        is_given = new.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
    wrong = ["gossip returned the x that it was given, not a new tensor"] * is_given
    return {"x": [x], "given": [given, torch.tensor(rows)], "wrong": wrong}


@in_one_process
def mixed(n, *, kind, seed, shape=(37,), dtype=None, rounds=1):
    x, rows = torch.stack([numbers(shape, 10 * seed + rank) for rank in range(n)]), torch.tensor(weights(kind, n))
    given = torch.tensordot(rows.matrix_power(rounds - 1), x, 1)
    x = torch.tensordot(rows, given, 1)
    before = [{"the x that was given": each, "the matrix of weights": rows} for each in given]
    return [{"x": {"the new x": x[rank]}, "given": before[rank]} for rank in range(n)]


def to_those_who_need_it(run: Run) -> list[list[int]]:
    """Bytes from each rank to each other: x, in each round, to those in whose row there is a weight for it."""
    n, rows = run.world_size, weights(run.option("kind"), run.world_size)
    size = math.prod(run.option("shape", (37,))) * run.option("dtype", torch.float32).itemsize
    due = run.option("rounds", 1) * size
    return [[due * (src != dst and rows[dst][src] != 0) for dst in range(n)] for src in range(n)]


@of(harness=gossip_rounds)
def gossip(check):
    right = is_right(mixed, "x", hint="; rank r uses row r of the weights")
    sends = all_of(right, each_link_carries(to_those_who_need_it))
    whole = all_of(sends, stays(mixed), nothing_said("wrong"), cannot_deadlock)
    circle, other = check.run(kind="ring", seed=1, rounds=3), check.run(kind="mixed", seed=2, shape=(4, 3))
    three = check.run(kind="mixed", seed=3, shape=(), dtype=torch.float64, ranks=3)
    alone = check.run(kind="ring", seed=5, ranks=1)
    check.that("three rounds on a ring: the weighted means", circle, right)
    check.that("weights that are not symmetric, some below 0; a single number in fp64", [other, three], right)
    check.that("a rank without neighbours", alone, right)
    check.that("x goes to those who need it, once", [circle, other, three], sends, weight=2)
    check.that("x and the weights stay; the order cannot deadlock", [circle, other, three, alone], whole)
    check.on_nccl(other, right)
    draw = yield
    case = {"seed": draw.randrange(MANY), "shape": (2, 1, draw.randrange(2, 9)), "rounds": 2}
    for kind in ("ring", "mixed"):
        check.that(f"1 to 6 ranks, {kind}", check.runs(ranks=range(1, 7), kind=kind, **case), whole, weight=2)
