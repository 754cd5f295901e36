"""Claims about runs of ``harness.local_steps``: the parameters of every step, and what was sent between which steps."""

from functools import lru_cache
from itertools import pairwise

import torch

from ringzero.lab.claims import values
from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.traffic import nobody_waits_for_all
from ringzero.lab.harness import local_steps
from ringzero.lab.runs import Run

IN_EVERY_STEP = (
    "that is what averaging in every step gives, of gradients or of parameters; average parameters, when due"
)
INSTEAD = {  # what ``averaged`` of ``local_steps.alone`` may have been
    "nothing": "these are the parameters of a rank that trains alone: they were not averaged",
    "gradients": IN_EVERY_STEP,
    "velocities": "what the optimizer remembers was averaged, too",
    "not at the end": "after the last step they were not averaged",
    "gradients, when due": "gradients were averaged when due, not parameters",
    "one step early": "they were averaged one step too early: the first step is number 1",
    "gradients kept": "the gradients of the steps before are still in p.grad: call optimizer.zero_grad() in each step",
}


@lru_cache(maxsize=64)
def _alone(ranks, options, averaged):
    return local_steps.alone(ranks, averaged=averaged, **dict(options))


def _simulated(run, averaged="parameters"):
    """The parameters of all ranks before each step and at the end."""
    before, after = _alone(run.world_size, tuple(run.case.options.items()), averaged)
    return [*before, after[-1]]


# ``train``


def as_simulated(run: Run) -> str | None:
    """Before every step, and at the end, each rank's parameters are those that one process computes."""
    steps = run.option("steps")
    for rank, report in enumerate(run.reports):
        if len(report.began) != steps:
            return f"rank {rank} computed {len(report.began)} losses for {steps} batches"
        if report.stepped != steps:
            return f"rank {rank} called optimizer.step() {report.stepped} times for {steps} batches"
        if not report.kept:
            return (
                f"on rank {rank} the model has other parameters now; write into those that it has, with copy_ or div_"
            )
    for step, right in enumerate(_simulated(run)):
        for rank, report in enumerate(run.reports):
            when = "at the end" if step == steps else f"before step {step + 1}"
            if why := _differ(f"{when} the vector of", _states(report)[step], right[rank], rank, _tolerance(run)):
                return f"{why}{_instead(run, step, rank)}"
    changed = [rank for rank, report in enumerate(run.reports) if report.batches_changed]
    return f"rank {changed[0]} changed the list of batches that it was given" if changed else None


def _tolerance(run):
    return TOLERANCE[run.option("precision", "float32")]


def _states(report):
    """A rank's parameters before each step and at the end."""
    return [*report.began, report.end]


TOLERANCE = {"float32": 1e-4, "float64": 1e-11}  # of the largest number
SEVEN_DIGITS = "; that is right to seven digits only: was something float32? The parameters are float64"


def _differ(what, got, right, rank, tolerance=1e-4):
    return values.close_by_name(what, [{"parameters": got}], {"parameters": right}, tolerance, first_rank=rank)


def _instead(run, step, rank):
    """What a rank has before a step, if another kind of averaging explains that; one that explains all steps first."""
    got, everyones = _states(run.reports[rank])[step], [_states(report)[step] for report in run.reports]
    alike = run.world_size > 1 and all(torch.equal(mine, everyones[0]) for mine in everyones)
    if alike and not _differ("", got, _simulated(run, "nothing")[step][0], rank):
        return "; all ranks have what rank 0 had, not the mean"
    if not _differ("", got, _simulated(run)[step][rank], rank):
        return SEVEN_DIGITS
    explains = [kind for kind in INSTEAD if not _differ("", got, _simulated(run, kind)[step][rank], rank)]
    in_all = [kind for kind in explains if _explains_all(run, kind, rank)]
    if explains:
        return f"; {INSTEAD[(in_all or explains)[0]]}"
    if not _differ("", got, _simulated(run)[step][rank], rank, 0.02):
        return "; that is nearly right: was something rounded, to 16 bits?"
    return ""


def _explains_all(run, kind, rank):
    pairs = zip(_states(run.reports[rank]), _simulated(run, kind), strict=True)
    return not any(_differ("", mine, right[rank], rank) for mine, right in pairs)


def _due(run):
    """Numbers of the steps after which the ranks average."""
    steps, h = run.option("steps"), run.option("h")
    return [step for step in range(1, steps + 1) if local_steps.is_due(step, steps, h)]


def _given(report, step, steps):
    """The tensors that were sent after a step, counted from 1, and before the next."""
    start = report.sent_before[step - 1]
    return report.sent[start : report.sent_before[step]] if step < steps else report.sent[start:]


@given(as_simulated)
def sends_only_when_due(run: Run) -> str | None:
    """After every h-th step and the last each rank sends its trained parameters once; otherwise nothing."""
    if run.world_size == 1:
        return None
    steps, due = run.option("steps"), _due(run)
    for rank, report in enumerate(run.reports):
        whole = report.end.nbytes
        if report.sent_before[0]:
            return f"rank {rank} sent {size_of(report.sent[: report.sent_before[0]])} bytes before the first step"
        for step in range(1, steps + 1):
            size, right = size_of(_given(report, step, steps)), whole if step in due else 0
            if size != right:
                when = f"after step {step} of {steps}, with h = {run.option('h')},"
                return f"{when} rank {rank} gave all_reduce {size:,} bytes, expected {right:,}"
    return nobody_waits_for_all(run)


@given(sends_only_when_due)
def sends_its_own(run: Run) -> str | None:
    """What a rank sends depends on what it has: it is not zeros, and not what another rank sends."""
    steps = run.option("steps")
    return not_its_own([[_given(report, step, steps) for step in _due(run)] for report in run.reports], "averaging")


def ends_alike(run: Run) -> str | None:
    """At the end all ranks have the same parameters, to the last bit."""
    return values.same("the vector of parameters", [report.end for report in run.reports])


# ``outer_rounds``


def outer_steps(
    run: Run,
    nesterov: bool = True,
    keep: bool = True,
    times: float = 1.0,
    from_the_first: bool = False,
    dampened: bool = False,
    momentum: float | None = None,
) -> list[torch.Tensor]:
    """All parameters at the start and after each round, as one vector, in fp64.

    Without ``nesterov`` by ordinary momentum, without ``keep`` with a velocity of 0 at the start of each round, with
    ``times`` the pseudo-gradient, and ``from_the_first`` with all changes and steps counted from the very first start.
    A velocity that is ``dampened`` takes only 1 - momentum of each gradient; ``momentum`` is another than the case's.
    """
    lr, momentum = run.option("lr"), run.option("momentum") if momentum is None else momentum
    states = [_vector(run, local_steps.start_of)]
    velocity = torch.zeros_like(states[0])
    for changes in _changes(run):
        start = states[0] if from_the_first else states[-1]
        gradient = times * (start - states[-1] - torch.stack(changes).mean(0))
        velocity = momentum * velocity * keep + gradient * (1 - momentum * dampened)
        states.append(start - lr * (gradient + momentum * velocity if nesterov else velocity))
    return states


def _changes(run):
    """What the local steps of each round change, for each rank."""
    ranks, rounds, idle = range(run.world_size), range(run.option("rounds", 3)), run.option("idle")
    changes = [[_vector(run, local_steps.change_of, turn, rank) for rank in ranks] for turn in rounds]
    return [[c * (turn != idle or rank % 2 == 0) for rank, c in enumerate(some)] for turn, some in enumerate(changes)]


def _vector(run, of, *more):
    seed, shapes = run.option("seed"), run.option("shapes", local_steps.SHAPES)
    return torch.cat([of(seed, i, shape, *more).double().reshape(-1) for i, shape in enumerate(shapes)])


def as_nesterov(run: Run) -> str | None:
    """After each round all ranks have the start of the round, stepped by SGD with Nesterov momentum."""
    right, changes = outer_steps(run), _changes(run)
    others = {
        "that is a step without momentum": outer_steps(run, momentum=0.0),
        "that is a step of ordinary momentum, not of Nesterov's": outer_steps(run, nesterov=False),
        "the velocity of the round before was lost": outer_steps(run, keep=False),
        "the changes were added up and not averaged": outer_steps(run, times=run.world_size),
        "it steps away from where the ranks went": outer_steps(run, times=-1),
        "each round's change was counted from the very first start": outer_steps(run, from_the_first=True),
        "the velocity is a sum, and nothing is multiplied with 1 - momentum": outer_steps(run, dampened=True),
    }
    for turn in range(1, len(right)):
        for rank, report in enumerate(run.reports):
            if not report.kept:
                return f"on rank {rank} the list has other parameters now; write into those that it has, with copy_"
            got = report.values[turn - 1]
            why = _differ(f"after round {turn} the vector of", got, right[turn], rank, _tolerance(run))
            if why and not _differ("", got, right[turn], rank):
                return why + SEVEN_DIGITS
            if why and not _differ("", got, right[turn - 1] + changes[turn - 1][rank], rank):
                return f"{why}; nothing but the rank's own steps changed it"
            if why:
                said = [said for said, other in others.items() if not _differ("", got, other[turn], rank)]
                for_good = [each for each in said if _is_so_to_the_end(report, others[each], rank)]
                return "; ".join([why, *[*for_good, *said][:1]])
    return None


def _is_so_to_the_end(report, states, rank):
    """Whether a rank's parameters are these ``states`` after every round; the first round tells few apart."""
    return not any(_differ("", got, state, rank) for got, state in zip(report.values, states[1:], strict=True))


@given(as_nesterov)
def sends_once_a_round(run: Run) -> str | None:
    """A round sends as many bytes as there are in the parameters, and making it sends nothing."""
    if run.world_size == 1:
        return None
    for rank, report in enumerate(run.reports):
        whole = report.values[0].nbytes
        if report.sent_before[0]:
            return f"rank {rank} sent {size_of(report.sent[: report.sent_before[0]])} bytes before the first round"
        for turn, sent in enumerate(_rounds_of(report), 1):
            if size_of(sent) != whole:
                size = f"{size_of(sent):,} bytes"
                return f"in round {turn} rank {rank} gave all_reduce {size}; the parameters are {whole:,}"
    return nobody_waits_for_all(run)


@given(sends_once_a_round)
def sends_its_own_change(run: Run) -> str | None:
    """What a rank sends in a round depends on what it changed: it is not zeros, and not what another rank sends."""
    return not_its_own([_rounds_of(report) for report in run.reports], "round")


@given(as_nesterov)
def stays_alike(run: Run) -> str | None:
    """After each round all ranks have the same parameters, to the last bit."""
    for turn in range(len(run.reports[0].values)):
        if why := values.same(f"the vector after round {turn + 1}", [report.values[turn] for report in run.reports]):
            return why
    return None


def _rounds_of(report):
    return [report.sent[start:stop] for start, stop in pairwise(report.sent_before)]


def size_of(tensors: list[torch.Tensor]) -> int:
    """Bytes of all of them."""
    return sum(tensor.nbytes for tensor in tensors)


def not_its_own(ranks, what):
    """Why what each rank sent, a list of tensors for each time, does not depend on what it had; or None."""
    if len(ranks) == 1:
        return None
    for number, everyones in enumerate(zip(*ranks, strict=True), 1):
        for rank, sent in enumerate(everyones):
            if not any(tensor.any() for tensor in sent):
                return f"in {what} {number} rank {rank} sent nothing but zeros"
            for other in range(rank):
                if all(map(torch.equal, sent, everyones[other])):
                    return f"in {what} {number} ranks {other} and {rank} sent the same, and they had different numbers"
    return None
