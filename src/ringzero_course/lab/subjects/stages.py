"""Lab 06, its second half: training with the three stages of ZeRO, and their checkpoints."""

import copy
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist

from ringzero.record.memory import MemoryTimeline, label
from ringzero_course.lab.claims.collectives import all_of, given
from ringzero_course.lab.claims.oracle import Values, holds_at_most, in_one_process, is_right, nothing_said
from ringzero_course.lab.harness import training
from ringzero_course.lab.harness.training import end_to_end
from ringzero_course.lab.runs import LIBRARY, Claim, Run, part
from ringzero_course.lab.specification import Rows, of, other_ranks
from ringzero_course.lab.subjects.sharding import HIDDEN, is_there, sends, sizes_of

# A usual eps, 1e-8, would let rounding decide the sign of a step whose gradient is nearly 0.
ADAMW: dict[str, Any] = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-5, "weight_decay": 0.01}
NUMBERS = ("exp_avg", "exp_avg_sq")  # AdamW's, for each parameter


def train(
    make: Callable, *, seed: int, steps: int, passes: int = 1, hidden: tuple = HIDDEN, double: tuple = (),
    beside: bool = False,
) -> dict:  # fmt: skip
    """On a rank: ``steps`` steps of ``passes`` backward passes each with ``make(layers)``, and what came of them.

    That is the ``gradients`` of the first step, ``shards`` and ``parameters`` that are there in the end, bytes ``held``
    and ``peaks`` of the last step's phases, and the whole ``history`` of memory. With ``beside`` another model, made
    later, is trained first.
    """
    module, gradients = training.Model(seed, hidden, double), list[list[float]]()
    with MemoryTimeline(module) as timeline:
        zero = make(list(module.layers))
        if beside:
            other = training.Model(seed + 1, hidden, double)
            _train(other, make(list(other.layers)), seed, steps, passes, lambda phase: None)

        def mark(phase):
            if phase == "reduced" and not gradients:
                gradients.extend(gradient.tolist() for gradient in zero.gradients)
            timeline.mark(phase)

        _train(module, zero, seed, steps, passes, mark)
        history = timeline.history()
    # What autograd keeps for the backward pass, activations, is left out.
    held = [total - kept for total, kept in zip(history.totals, history.bytes["activations"], strict=True)]
    peaks = {name: max(held[begin : end + 1]) for (_, begin), (name, end) in pairwise(history.marks)}
    return {
        "gradients": [*map(torch.tensor, gradients)],
        "shards": [flat.shard for flat in zero.flats],
        "parameters": {f"after the last step {n}": p.detach() for n, p in module.named_parameters() if is_there(p)},
        "left": sum(gradient.nbytes for gradient in zero.gradients if gradient is not None),
        "held": {name: held[end] for name, end in history.marks},
        "peaks": peaks,
        "history": [history.bytes, history.seconds, history.marks],
    }


def _train(module, zero, seed, steps, passes, mark):
    """Train a model; ``mark`` is called at the end of each phase, with its name."""
    warnings.filterwarnings("ignore", "Full backward hook is firing")  # at the first layer, in stage 3
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in range(steps):
        mark("start")
        for i in range(passes):
            loss = training.loss_of(module, seed + 100 * step + i, rank, ranks)
            module.seen.clear()
            mark("forward")
            loss.backward()
            del loss
            mark("backward")
        zero.reduce()
        _must_be_there(zero.gradients, len(zero.flats))
        for gradient in zero.gradients:
            label(gradient, "gradients")
        mark("reduced")
        zero.step()
        for value in (value for state in zero.states for value in state.values()):
            if isinstance(value, torch.Tensor):
                label(value, "optimizer")
        mark("step")


def _must_be_there(gradients, layers):
    if len(gradients) != layers:
        raise RuntimeError(f"there are {len(gradients)} gradients of {layers} layers: that of layer i is gradients[i]")
    for i, gradient in enumerate(gradients):
        if gradient is None:
            in_a_loop = ". Hooks made in a loop all see its last i, unless they keep it: lambda p, i=i: ..."
            why = f"gradients[{i}] is None after the backward pass and reduce(): nothing reduced that layer"
            raise RuntimeError(why + in_a_loop * (gradients[-1] is not None))


@in_one_process
def alone(n, seed, steps=3, passes=1, hidden=HIDDEN, double=(), last=False, anew=False, **_):
    """What ``train`` comes to in one process that does the parts of all ranks.

    By the parameters' names ``gradients`` of the first step, and ``after_step`` each time a checkpoint. Mistakes: of
    the passes the ``last`` counts alone, AdamW's numbers begin ``anew`` in each step.
    """
    module = training.Model(seed, hidden, double)
    optimizer, report = torch.optim.AdamW(module.parameters(), **ADAMW), {"after_step": []}
    named = dict(module.named_parameters())
    for step in range(steps):
        optimizer = torch.optim.AdamW(module.parameters(), **ADAMW) if anew else optimizer
        for i in range(passes - 1 if last else 0, passes):
            for rank in range(n):
                (training.loss_of(module, seed + 100 * step + i, rank, n) / n).backward()
        report.setdefault("gradients", {name: p.grad for name, p in named.items()})
        optimizer.step()
        optimizer.zero_grad()
        states = {name: {"parameter": p.detach(), **optimizer.state[p]} for name, p in named.items()}
        report["after_step"].append(copy.deepcopy(states))
    return [report] * n


def trained(run: Run, rank: int, **mistake: bool) -> Values:
    """An oracle of ``train``."""

    def shards(named, words):
        layers: dict[str, list] = {}
        for name, tensor in named.items():
            layers.setdefault(".".join(name.split(".")[:2]), []).append(tensor)
        return {f"{words} {at}": part(end_to_end(some), run.world_size, rank) for at, some in layers.items()}

    right: Any = alone(run, rank, **mistake)
    there = run.returned[rank]["parameters"]
    last = {name: state["parameter"] for name, state in right["after_step"][-1].items()}
    return {
        "gradients": shards(right["gradients"], "in the first step the shard of the gradient of"),
        "shards": shards(last, "after the last step the shard of"),
        "parameters": {words: last[words.split()[-1]] for words in there},
    }


HINT = ", and all shards are right. Hand them round after the step or, in stage 3, free a layer once it is reduced"
ANEW = "is what AdamW gives whose numbers begin anew in each step: keep self.states"
MISTAKES = {"is that of the last backward pass alone": {"last": True}, ANEW: {"anew": True}}
right = is_right(
    trained, "gradients", "shards",
    mistakes=lambda run, rank: {words: trained(run, rank, **each) for words, each in MISTAKES.items()},
)  # fmt: skip
as_one_process = all_of(right, is_right(trained, "parameters", hint=HINT))


def is_lean(stage: int) -> Claim:
    """A claim: AdamW's numbers, from stage 2 gradients, in stage 3 parameters are there as shards alone.

    Except for the layer at which the pass is; the last one may stay whole between the two passes.
    """

    def limits(run, rank):
        report, layer, whole = run.reports[rank], 4 * max(sizes_of(run)), 4 * sum(sizes_of(run))
        held, peaks, passed = report.held, report.peaks, run.option("passes", 1) > 1
        shard, start = 4 * sum(shard.numel() for shard in report.shards), report.held["start"]
        slack = 0.75 * layer  # the buffer into which the ring receives, step counts, a loss
        hint = f"all parameters are {whole:,}, its shards of them {shard:,}, a layer {layer:,}"
        yield "after the step", report.left, 0, "a gradient in self.gradients is not None"
        due = 3 * shard if stage == 3 else whole + 2 * shard
        yield "after the step", held["step"], due + slack, f"{hint}, and AdamW has two numbers for each one it owns"
        if stage == 3:
            before = start + shard * passed
            yield "after the forward pass", held["forward"] - before, layer + slack, f"what was gathered stays; {hint}"
            yield "during the forward pass, beside its shards,", peaks["forward"] - before, 2.5 * layer, hint
        if stage > 1:
            keeps = f"gradients that were reduced are kept; {hint}"
            yield "after the backward pass", held["backward"] - start, shard + slack, keeps
            more = peaks["backward"] - start - shard  # of a layer: what is added up, divided, checked, received
            yield "during the backward pass, beside its shards,", more, 6 * layer, hint

    return given(as_one_process)(holds_at_most(limits))


def trains(stage: int, lean: str, cheap: str, collectives: Callable[[int], tuple[int, int]]) -> Callable[..., Rows]:
    """A specification: ``train`` with the class of this ``stage``, which is ``lean`` and ``cheap`` in these words."""

    @of(harness=train, built_from=(LIBRARY,))
    def specification(check):
        sends_little = sends(as_one_process, collectives)
        both = [check.run(seed=1, steps=1), check.run(seed=2, steps=3, ranks=4)]
        beside = check.run(seed=3, steps=2, hidden=(12, 13), beside=True)
        mixed = check.run(seed=4, steps=2, hidden=(33,) * 4, double=(1, 3), passes=2)
        check.that("steps are those of torch's AdamW in one process", both, as_one_process, weight=2)
        check.that("also with two matrices in a layer, and two backward passes", mixed, as_one_process)
        check.that("and beside another model, which is trained first", beside, as_one_process)
        check.that(lean, both, is_lean(stage), weight=3)
        check.that(cheap, [*both, mixed], sends_little, weight=2)
        check.on_nccl(both[0], as_one_process)
        draw = yield
        model = {"hidden": (draw.randrange(28, 36),) * draw.choice((7, 8)), "double": draw.choice(((), (2,)))}
        case = {"seed": draw.randrange(999), "steps": 2, "passes": draw.choice((1, 2, 3))}
        others = check.runs(ranks=other_ranks(draw), **case, **model)
        check.that("another model, on 1 rank and others", others, as_one_process, weight=3)
        check.that("lean and cheap there", others, all_of(is_lean(stage), sends_little), weight=2)

    return specification


STATES = "AdamW's numbers are there for the shard alone, and no gradient is left"
stage_1 = trains(1, STATES, "a step sends one reduce-scatter and one all-gather", lambda passes: (1, 1))
GRADIENTS = "gradients that the rank does not own go during the backward pass"
stage_2 = trains(2, GRADIENTS, "no more is sent than in stage 1 each pass", lambda passes: (passes, 1))
LAYERS = "shards alone are kept, and one layer at a time is whole"
SENDS = "each pass sends one reduce-scatter and two all-gathers"
stage_3 = trains(3, LAYERS, SENDS, lambda passes: (passes, 2 * passes))


# ---- checkpoints


def train_and_save(checkpoint: Callable, *stages: Callable, stage: int, seed: int, **model: Any) -> dict:
    """On a rank: three steps with one of the stages, over the layers in reverse order, a checkpoint after each.

    What a checkpoint spoils shows in the next one. Reported are the first and the last one at the very end, and which
    parameters have memory only since a checkpoint.
    """
    module = training.Model(seed, **model)
    zero, saved, back = stages[stage - 1](list(module.layers)[::-1]), [], []

    def save(phase):
        if phase == "step":
            freed = [name for name, p in module.named_parameters() if not is_there(p)]
            saved.append(checkpoint(module, zero))
            back.extend(name for name in freed if is_there(module.get_parameter(name)))

    _train(module, zero, seed, 3, 1, save)
    if not isinstance(saved[0], dict):
        raise TypeError(f"checkpoint returned {saved[0]!r}, not a dict of a dict for each parameter")
    (first, last), words = map(_by_key, saved[::2]), " was freed, and has memory again after a checkpoint"
    return {"first": first["parameter"], **last, "back": [name + words for name in back]}


def _by_key(saved):
    """A checkpoint, ``{name: {key: tensor}}``, as ``{key: {"key of name": tensor}}``."""
    return {key: {f"{key} of {name}": each.get(key) for name, each in saved.items()} for key in ("parameter", *NUMBERS)}


def saved(run: Run, rank: int) -> Values:
    """An oracle of ``train_and_save``."""
    first, _, last = map(_by_key, alone(run, rank)["after_step"])
    return {"first": first["parameter"], **last}


@of(harness=train_and_save, uses=("Zero1", "Zero2", "Zero3"), built_from=(LIBRARY,))
def checkpoint(check):
    copies = is_right(saved, "first", hint=": a step later it is another; make copies, anew each time", tolerance=1e-3)
    parameters = is_right(saved, "parameter", tolerance=1e-3)
    whole = all_of(is_right(saved, "parameter", *NUMBERS, tolerance=1e-3), copies)
    kept = given(whole)(nothing_said("back"))
    of_3 = check.run(stage=3, seed=1, hidden=(33,) * 3)
    of_1 = check.run(stage=1, seed=2, hidden=(12, 13, 14))
    of_2 = check.run(stage=2, seed=3, hidden=(9, 10, 11), double=(1, 3))
    check.that("parameters of a stage 3 model", of_3, parameters, weight=2)
    check.that("and AdamW's numbers; all of it copies", of_3, whole, weight=2)
    check.that("of stages 1 and 2, with two matrices in some layers", [of_1, of_2], whole)
    check.that("what was freed stays freed", of_3, kept)
    check.on_nccl(of_3, parameters)
    draw = yield
    model = {"hidden": tuple(draw.randrange(9, 30) for _ in range(3)), "seed": draw.randrange(999)}
    others = check.runs(ranks=other_ranks(draw), stage=lambda n: 2 if n == 1 else 3, **model)
    check.that("another model, on 1 rank and others", others, kept, weight=3)
