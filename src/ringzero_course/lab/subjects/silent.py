"""Lab 11, silent bugs: a mended program trains as one process does on all samples, in float64, on any number of ranks.

Each harness makes data and a model on every rank and gives the student's function that rank's part alone. The oracle
of a claim makes all parts, trains in the checking process and compares parameters. An oracle also knows the usual
mistakes: parameters that come of one are named in the reason.
"""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from ringzero_course.lab.claims.collectives import all_of
from ringzero_course.lab.claims.values import FP32, close, far_off
from ringzero_course.lab.runs import LIBRARY, Claim, Run
from ringzero_course.lab.specification import of
from ringzero_course.lab.subjects import hangs

IGNORED = -100  # the label of a place without a token
TEMPERATURE = 0.2
ANY = (LIBRARY, "all_reduce", "all_gather", "broadcast", "reduce", "gather", "scatter", "reduce_scatter", "all_to_all")
ANSWERS = {
    "orders": """
        never  samples that no rank takes  76eecd7d584d  put the four lists of epoch 0 together
        most   ranks that take one sample  8056f81c8aef  count each sample in the lists of epoch 0""",
    "tokens": """
        heavy  the weight of a token of rank 1  f0181879d105  divide what it counts by what it should count
        light  the weight of a token of rank 3  f00075a54bca  divide what it counts by what it should count""",
    "windows": """
        steps  the optimizer's steps      f58b2b28b6eb  a smaller window at the end counts, too
        times  the length of the last     31859663bc54  divide one printed length by the other""",
    "dropout": """
        patterns  the different patterns  f58b24eaf074  count each pattern once, in all rows and columns""",
    "pairs": """
        four   the length of a step on four ranks   f231e22abc38  divide by the length on one rank
        eight  the length of a step on eight ranks  a4ec2a40af99  let the cell measure eight ranks, too""",
    "schedule": """
        peak  the step with the highest rate  251a66d7d582  print the rates that the program returns; steps from 0
        idle  the first step of the rest      c8b9c07c04f1  from this step on, counted from 0, all rates are 0""",
    "votes": """
        step  the step that parts the ranks  5d00b47a231f  the largest k for which the ranks agree after k steps
        rank  the rank that is first apart   77fe1962c7ca  compare the parameters after that step""",
    "head": """
        apart  the parameters that differ  cd36bdd41b9e  a list of names as they are printed
        count  how many numbers they have  64b4f202d493  add up the elements of these parameters""",
    "files": """
        a  what is wrong with the first file   87d1f031f793  compare's name for it, not our list's, or "nothing"
        b  what is wrong with the second file  c9aeff16e495  compare's name for it, not our list's, or "nothing"
        c  what is wrong with the third file   100eb491e08b  compare's name for it, not our list's, or "nothing\"""",
}
why = partial(hangs.why, answers=ANSWERS, in_any_order=("apart",))
names_the_files = why("files")  # by the names of what ``compare`` says


# ---- data and models


def numbers(*shape: int, seed: str) -> torch.Tensor:
    """Random numbers in float64, the same in every process."""
    source = torch.Generator("cpu").manual_seed(random.Random(seed).randrange(2**40))
    return torch.randn(shape, generator=source, dtype=torch.float64, device="cpu").to(torch.get_default_device())


def make_model(seed: int, inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two linear layers with a tanh between them, the same on every rank."""
    model = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs)).double()
    for i, parameter in enumerate(model.parameters()):
        parameter.data.copy_(numbers(*parameter.shape, seed=f"model {seed} {i}") / 2)
    return model


def samples(seed: int, step: int, rank: int, count: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """A rank's samples of a step: x of shape (count, 4) and y of shape (count, 1)."""
    return numbers(count, 4, seed=f"x {seed} {step} {rank}"), numbers(count, 1, seed=f"y {seed} {step} {rank}")


def tokens(seed: int, step: int, rank: int, ranks: int, empty: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """x of shape (3, 6, 4) and labels of shape (3, 6), of which 1 to 18 are tokens; none on one rank if ``empty``."""
    draw = random.Random(f"tokens {seed} {step} {rank}")
    count = 0 if empty and ranks > 1 and step % ranks == rank else draw.randrange(1, 19)
    labels = [draw.randrange(5) for _ in range(count)] + [IGNORED] * (18 - count)
    device = torch.get_default_device()
    return numbers(3, 6, 4, seed=f"x {seed} {step} {rank}"), torch.tensor(labels, device=device).reshape(3, 6)


def with_holes(seed: int, step: int, rank: int, ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """As ``samples``; in every third step a rank has a NaN among its y, and in step 4 every rank has."""
    x, y = samples(seed, step, rank)
    if step % 3 == 1 and (step == 4 or random.Random(f"hole {seed} {step}").randrange(ranks) == rank):
        y[rank % len(y)] = torch.nan
    return x, y


class Dropped(nn.Module):
    """Two layers with dropout between them. It keeps what it held at first, and which units training dropped."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 16).double(), nn.Linear(16, 1).double()
        self.start, self.masks = [], []

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.rand(len(x), 16) >= 0.5 if self.training else torch.ones(len(x), 16)
        y = self.last(2 * mask * torch.tanh(self.first(x)))
        if y.requires_grad:  # noted in the backward pass: what is only looked at is no step
            y.register_hook(partial(self._note, vector(self), mask.cpu()))
        return y

    def _note(self, before, mask, _gradient):
        self.start = self.start or [before]
        self.masks.append(mask)


def vector(*modules: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().cpu().flatten() for module in modules for p in module.parameters()])


# ---- on the ranks


def trained(function: Callable, make: Callable, batch: Callable, steps: int, options: tuple) -> dict:
    """The parameters that a function leaves in the model which it was given with this rank's batches."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = make()
    function(model, [batch(step, rank, ranks) for step in range(steps)], *options)
    return {"parameters": vector(model)}


def on_tokens(function, seed, steps, lr, empty=False):
    return trained(
        function, lambda: make_model(seed, 4, 6, 5), lambda *at: tokens(seed, *at, empty=empty), steps, (lr,)
    )


def on_windows(function, seed, micro, window, lr):
    return trained(function, lambda: make_model(seed, 4, 6, 1), _plain(seed), micro, (window, lr))


def on_pairs(function, seed, steps, lr):
    return trained(function, lambda: make_model(seed, 4, 6, 3), _pairs(seed), steps, (lr,))


def on_schedule(function, seed, total, warmup, lr):
    return trained(function, lambda: make_model(seed, 4, 6, 1), _plain(seed), total, (lr, warmup, total))


def on_holes(function, seed, steps, lr):
    return trained(function, lambda: make_model(seed, 4, 6, 1), lambda *at: with_holes(seed, *at), steps, (lr,))


def _plain(seed):
    return lambda step, rank, _ranks: samples(seed, step, rank)


def _pairs(seed):
    return lambda step, rank, _ranks: tuple(numbers(3, 4, seed=f"{side} {seed} {step} {rank}") for side in "ab")


def in_epochs(function, count, seed, epochs):
    """This rank's samples in each epoch, those of epoch 0 once more, and with another seed."""

    def listed(seed: int, epoch: int) -> list[int]:
        torch.manual_seed(random.Random(f"{dist.get_rank()} {seed} {epoch}").randrange(2**40))
        return [int(i) for i in function(count, seed, epoch)]

    every = [listed(seed, epoch) for epoch in range(epochs)]
    return {"epochs": every, "again": listed(seed, 0), "other": listed(seed + 1000, 0)}


def on_dropout(function, seed, steps, lr):
    """It is called twice, with other random numbers before."""
    rank = dist.get_rank()
    batches = [samples(seed, step, rank) for step in range(steps)]
    models = []
    for turn in range(2):
        torch.manual_seed(100 * turn + rank)
        found = function(Dropped, batches, seed, lr)
        models.append(found[0] if isinstance(found, (tuple, list)) and found else found)
    for model in models:
        if not isinstance(model, Dropped):
            raise ValueError(f"{function.__name__} returned {type(model).__name__}, not the model that make() gave")
    one, again = models
    start = one.start[0] if one.start else torch.zeros(0)
    return {"start": start, "masks": one.masks, "parameters": vector(one), "again": vector(again)}


def on_head(function, seed, steps, lr):
    """Body and head begin with each rank's own random numbers."""
    rank, start = dist.get_rank(), {}
    torch.manual_seed(1000 * seed + rank)

    def make(name: str, *layers: nn.Module) -> nn.Sequential:
        def note(_gradient: torch.Tensor) -> None:
            start.setdefault(name, vector(module))

        module = nn.Sequential(*layers).double()
        for p in module.parameters():
            p.register_hook(note)  # however the module is called, and not where a loss is only looked at
        return module

    batches = [samples(seed, step, rank) for step in range(steps)]
    found = function(
        lambda: make("body", nn.Linear(4, 6), nn.Tanh()),
        lambda: make("head", nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 1)), batches, lr,
    )  # fmt: skip
    if not isinstance(found, (tuple, list)) or not all(isinstance(module, nn.Module) for module in found[:2]):
        kinds = ", ".join(type(each).__name__ for each in (found if isinstance(found, (tuple, list)) else [found]))
        raise ValueError(f"{function.__name__} returned ({kinds}), not (body, head, losses)")
    if len(start) < 2:
        raise ValueError(f"{function.__name__} never trained the {'head' if 'body' in start else 'body'}")
    body, head = found[:2]
    return {"start": torch.cat([start["body"], start["head"]]), "parameters": vector(body, head)}


# ---- in one process: the losses of a program's steps, each made when the step before it is done


def alone(make: Callable[[Run], nn.Module]) -> Callable:
    """A decorator: an oracle from ``losses(run, model, **mistake)``, a generator of losses and parts of the rate.

    It gives the parameters after gradient descent with ``times`` the rate, from where rank 0 began if it reports a
    ``start``. A step whose loss is not finite is not taken.
    """

    def decorated(losses):
        def oracle(run: Run, times: float = 1.0, **mistake: Any) -> torch.Tensor:
            model = make(run)
            parameters = list(model.parameters())
            for start in [report.start for report in run.reports[:1] if hasattr(report, "start")]:
                nn.utils.vector_to_parameters(start.clone(), parameters)
            for loss, share in losses(run, model, **mistake):
                if loss.isfinite():
                    with torch.no_grad():
                        for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                            p.sub_(gradient, alpha=times * run.option("lr") * share)
            return vector(model)

        return oracle

    return decorated


def of_outputs(outputs: int) -> Callable[[Run], nn.Module]:
    return lambda run: make_model(run.option("seed"), 4, 6, outputs)


def body_and_head(_: Run) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 1)).double()


def joined(parts: list[tuple]) -> list[torch.Tensor]:
    """All ranks' parts as one."""
    return [torch.cat(each) for each in zip(*parts, strict=True)]


def squared(model: Callable, parts: list[tuple]) -> torch.Tensor:
    x, y = joined(parts)
    return functional.mse_loss(model(x), y)


def of_ranks(run: Run, step: int) -> list[tuple]:
    return [samples(run.option("seed"), step, rank) for rank in range(run.world_size)]


@alone(of_outputs(5))
def tokens_alone(run, model, mean_of_means=False):
    n = run.world_size

    def cross_entropy(x, labels):
        return functional.cross_entropy(model(x).flatten(0, 1), labels.flatten())

    for step in range(run.option("steps")):
        parts = [tokens(run.option("seed"), step, r, n, run.option("empty", False)) for r in range(n)]
        with_tokens = [part for part in parts if (part[1] != IGNORED).any()]
        yield (
            sum(cross_entropy(*part) for part in with_tokens) / n if mean_of_means else cross_entropy(*joined(parts)),
            1,
        )


@alone(of_outputs(1))
def windows_alone(run, model, last=1.0):
    """``last``: 1 for a last window of its own mean, 0 to leave it out, -1 to divide its sum as a full one's."""
    micro, window = run.option("micro"), run.option("window")
    for first in range(0, micro, window):
        steps = range(first, min(first + window, micro))
        short = last if last >= 0 else len(steps) / window
        parts = [part for step in steps for part in of_ranks(run, step)]
        yield squared(model, parts), short if len(steps) < window else 1.0


@alone(of_outputs(3))
def pairs_alone(run, model, own_pairs=False):
    def of_pairs(a, b):
        logits = functional.normalize(model(a), dim=1) @ functional.normalize(model(b), dim=1).T / TEMPERATURE
        right = torch.arange(len(a))
        return (functional.cross_entropy(logits, right) + functional.cross_entropy(logits.T, right)) / 2

    for step in range(run.option("steps")):
        parts = [_pairs(run.option("seed"))(step, r, run.world_size) for r in range(run.world_size)]
        groups = [[part] for part in parts] if own_pairs else [parts]
        yield sum(of_pairs(*joined(group)) for group in groups) / len(groups), 1


@alone(of_outputs(1))
def schedule_alone(run, model, late=0, speed=1):
    warmup, total = run.option("warmup"), run.option("total")
    for step in range(total):
        at = speed * (step + late)
        yield squared(model, of_ranks(run, step)), min(at / warmup, max(0.0, (total - at) / (total - warmup)))


@alone(of_outputs(1))
def holes_alone(run, model, without=False):
    """``without``: a step is taken with the gradients of the ranks that have no NaN, divided by N."""
    n = run.world_size
    for step in range(run.option("steps")):
        parts = [with_holes(run.option("seed"), step, r, n) for r in range(n)]
        good = [part for part in parts if not part[1].isnan().any()] if without else parts
        yield squared(model, good) * len(good) / n if good else torch.tensor(torch.nan), 1


@alone(lambda run: Dropped())
def dropout_alone(run, model):
    for step in range(run.option("steps")):
        masks = torch.cat([report.masks[step] for report in run.reports])
        yield squared(lambda x, masks=masks: model(x, masks), of_ranks(run, step)), 1


@alone(body_and_head)
def head_alone(run, model):
    for step in range(run.option("steps")):
        yield squared(model, of_ranks(run, step)), 1


# ---- claims

SCALED = (
    (lambda n: {"times": n}, "the steps are N times too long: what should be a mean over the ranks is a sum"),
    (lambda n: {"times": 1 / n}, "the steps have 1/N of their length: something is divided by N once too often"),
    (lambda n: {"times": 1 / n**2}, "the steps have 1/N² of their length: two things are divided by N"),
)


def as_one_process(oracle: Callable, *mistakes: tuple[dict, str]) -> Claim:
    """A claim: every rank ends with the parameters of one process. ``mistakes``: what the oracle takes, and words."""

    def claim(run):
        got = [report.parameters for report in run.reports]

        def off_from(right: torch.Tensor) -> str | None:
            return close("the model", got, [right] * len(got), FP32)

        if (rank := next((r for r, each in enumerate(got) if each.isnan().any()), None)) is not None:
            return f"on rank {rank} the model has NaN in it: a step was taken with a gradient that has NaN"
        reason = off_from(oracle(run))
        if reason is None:
            return None
        known = [*mistakes, *((options(run.world_size), words) for options, words in SCALED if run.world_size > 1)]
        named = next((words for options, words in known if off_from(oracle(run, **options)) is None), None)
        untrained = off_from(oracle(run, times=0.0)) is None
        named = "it is as it was before the first step" if untrained else named
        return f"{reason}; {named}" if named else reason

    return claim


def alike(run: Run) -> str | None:
    """All ranks have one model."""
    return _as_rank_0("the model", [report.parameters for report in run.reports])


def begin_alike(run: Run) -> str | None:
    return _as_rank_0("the model at the first step", [report.start for report in run.reports])


def _as_rank_0(what, got):
    return close(f"{what} differs from that on rank 0: it", got, [got[0]] * len(got), FP32)


def trains(harness: Callable, oracle: Callable, cases: tuple[dict, ...], *mistakes: tuple[dict, str]) -> Callable:
    """The specification of a function that trains as one process does. In hidden tests ``cases`` get other seeds."""
    right = as_one_process(oracle, *mistakes)

    @of(harness=harness, built_from=ANY)
    def rows(check):
        first, *others = cases
        one = check.run(**first)
        check.that("the model is that of one process on all samples", one, right, weight=2)
        check.that("and all ranks have the same", one, alike)
        more = [run for case in (first, *others) for run in check.runs(ranks=(1, 3, 5), **case)]
        check.that("the same on 1, 3 and 5 ranks", more, all_of(alike, right))
        draw = yield
        drawn = [{**case, "seed": draw.randrange(100, 10**6), "lr": draw.uniform(0.05, 0.2)} for case in cases]
        several = [run for case in drawn for run in check.runs(ranks=range(1, 6), **case)]
        check.that("1 to 5 ranks, other samples and rates", several, all_of(alike, right), weight=3)

    return rows


# ---- the eight programs

train_on_tokens = trains(
    on_tokens, tokens_alone,
    ({"seed": 1, "steps": 4, "lr": 0.3}, {"seed": 2, "steps": 5, "lr": 0.2, "empty": True}),
    ({"mean_of_means": True}, "that comes of a mean over the ranks in which all ranks count alike"),
)  # fmt: skip
train_in_windows = trains(
    on_windows, windows_alone,
    ({"seed": 3, "micro": 7, "window": 3, "lr": 0.1}, {"seed": 4, "micro": 6, "window": 4, "lr": 0.1},
     {"seed": 4, "micro": 4, "window": 2, "lr": 0.1}, {"seed": 5, "micro": 2, "window": 3, "lr": 0.1}),
    ({"last": -1.0}, "that comes of a last window that is divided as a full one"),
    ({"last": 0.0}, "that comes of a last window that is left out"),
)  # fmt: skip
train_on_pairs = trains(
    on_pairs, pairs_alone, ({"seed": 6, "steps": 4, "lr": 0.2},),
    ({"own_pairs": True}, "that comes of a loss on each rank's own pairs alone"),
)  # fmt: skip
train_with_schedule = trains(
    on_schedule, schedule_alone,
    ({"seed": 7, "total": 12, "warmup": 3, "lr": 0.2}, {"seed": 8, "total": 7, "warmup": 2, "lr": 0.1}),
    ({"late": 1}, "that comes of a schedule which is a step ahead: the first step must have the rate of step 0"),
    *[({"speed": n}, f"that comes of a schedule which advances {n} times in each step") for n in range(2, 6)],
)  # fmt: skip
train_past_nan = trains(
    on_holes, holes_alone, ({"seed": 9, "steps": 8, "lr": 0.1},),
    ({"without": True}, "one process takes no step where any of its samples is NaN; here the others still step"),
)  # fmt: skip


@of(harness=in_epochs, built_from=ANY)
def epoch_order(check):
    def rows_of(runs, words, weight):
        check.that(f"every sample is taken once in an epoch{words}", runs, each_once, weight=weight)
        check.that(f"each epoch has an order of its own{words}", runs, shuffled, weight=weight)

    n = check.world_size
    rows_of([check.run(count=10 * n, seed=3, epochs=3)], "", 1)
    rows_of(check.runs(ranks=(1, 3, 5), count=lambda n: 12 * n, seed=4, epochs=2), ", on 1, 3 and 5 ranks", 1)
    draw = yield
    size, seed = draw.randrange(10, 20), draw.randrange(100, 10**6)
    rows_of(check.runs(ranks=range(1, 6), count=lambda n: size * n, seed=seed, epochs=4), ", on 1 to 5 ranks", 2)


def each_once(run: Run) -> str | None:
    count = run.option("count")
    for epoch in range(run.option("epochs")):
        lists = [report.epochs[epoch] for report in run.reports]
        for rank, mine in enumerate(lists):
            if len(mine) * run.world_size != count:
                return f"in epoch {epoch} rank {rank} takes {len(mine)} samples, expected {count // run.world_size}"
        times = Counter(i for mine in lists for i in mine)
        if (wrong := next((i for i in range(count) if times[i] != 1), None)) is not None:
            return f"in epoch {epoch} sample {wrong} is taken {times[wrong]} times"
    return None


def shuffled(run: Run) -> str | None:
    for rank, report in enumerate(run.reports):
        for epoch, mine in enumerate(report.epochs):
            if mine == sorted(mine):
                return f"in epoch {epoch} rank {rank} takes its samples in the order of the file: they are not shuffled"
            if mine in report.epochs[:epoch]:
                return f"rank {rank} takes its samples in epoch {epoch} as in epoch {report.epochs.index(mine)}"
        if report.again != report.epochs[0]:
            return f"called again with the same seed and epoch, rank {rank} takes other samples: no run can be repeated"
        if report.other == report.epochs[0]:
            return f"with another seed rank {rank} takes the same samples"
    return None


@of(harness=on_dropout, built_from=ANY)
def train_with_dropout(check):
    as_one = as_one_process(dropout_alone)
    right = all_of(begin_alike, own_masks, as_one, same_again)
    one = check.run(seed=11, steps=4, lr=0.1)
    check.that("all ranks begin with one model", one, begin_alike)
    check.that("each rank drops units of its own, in each step others", one, own_masks, weight=2)
    check.that("with these units dropped, the model is one process's", one, all_of(own_masks, as_one))
    check.that("the same seed gives the same model again", one, all_of(begin_alike, own_masks, same_again))
    check.that("all this on 1, 3 and 5 ranks", check.runs(ranks=(1, 3, 5), seed=12, steps=3, lr=0.2), right)
    draw = yield
    seed = draw.randrange(100, 10**6)
    check.that("on 1 to 5 ranks", check.runs(ranks=range(1, 6), seed=seed, steps=4, lr=0.1), right, weight=4)


def own_masks(run: Run) -> str | None:
    for rank, report in enumerate(run.reports):
        if len(report.masks) != run.option("steps"):
            return f"rank {rank} made {len(report.masks)} backward passes in {run.option('steps')} steps"
        for step, mask in enumerate(report.masks):
            if mask.all():
                return f"in step {step} rank {rank} drops nothing: is the model in evaluation mode?"
            if any(torch.equal(mask, before) for before in report.masks[:step]):
                return f"rank {rank} drops the same units in step {step} as before: it is seeded anew in each step"
            for other in range(rank):
                if torch.equal(mask, run.reports[other].masks[step]):
                    return f"in step {step} ranks {other} and {rank} drop the same units"
    return None


def same_again(run: Run) -> str | None:
    for rank, report in enumerate(run.reports):
        if far_off("", report.again, report.parameters, FP32):
            return f"called again with the same seed, rank {rank} ends with another model: no run can be repeated"
    return None


@of(harness=on_head, built_from=ANY)
def train_with_head(check):
    right = all_of(begin_alike, as_one_process(head_alone))
    one = check.run(seed=13, steps=4, lr=0.1)
    check.that("all ranks begin with one body and one head", one, begin_alike)
    check.that("they end with the same", one, alike)
    check.that("which are one process's on all samples", one, right, weight=2)
    check.that("all this on 1, 3 and 5 ranks", check.runs(ranks=(1, 3, 5), seed=14, steps=3, lr=0.1), right)
    draw = yield
    case = {"seed": draw.randrange(100, 10**6), "steps": draw.randrange(3, 7), "lr": draw.uniform(0.05, 0.2)}
    check.that("on 1 to 5 ranks", check.runs(ranks=range(1, 6), **case), right, weight=3)
