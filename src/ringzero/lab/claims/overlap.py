"""What hides and what does not: oracles for functions of plain numbers, and claims about runs of ``harness.overlap``.

The oracles are the library's own: ``steps`` runs a training step on paper, ``costs`` has the closed forms.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import torch

from ringzero.costs import offload, pipeline
from ringzero.costs import overlap as ratios
from ringzero.lab.claims import values
from ringzero.lab.claims.answers import is_whole_number, plain_number
from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.local_steps import not_its_own
from ringzero.lab.harness import overlap
from ringzero.lab.runs import Run
from ringzero.record import spans
from ringzero.record.operation import COMMUNICATION, COMPUTE, Operation
from ringzero.steps import planner
from ringzero.steps.machine import Machine
from ringzero.steps.plan import Cluster, Estimate, Plan, estimate
from ringzero.steps.run import run as on_paper
from ringzero.steps.systems import MIB, data_parallel
from ringzero.steps.transformer import MODELS, Transformer
from ringzero.steps.unit import Unit, buckets

FP32 = 4
MOST_OF_THE_WAITING = 0.6  # of which a rank must be the cause, to be called a straggler


# ---- on paper


def the_largest_degree(run: Run) -> str | None:
    """Of the degrees of tensor parallelism that hide the all-gather before a product, the largest was returned."""
    flops, bandwidth, width, element = run.case.args
    degree = plain_number(run.returned[0])
    if not is_whole_number(degree, least=1):
        return f"returned {degree!r}, not a whole number from 1"
    here, next_one = (ratios.tensor_parallel_ratio(flops, bandwidth, width, t, element) for t in (degree, degree + 1))
    if here > 1 + 1e-9:
        return f"on {degree} ranks the all-gather takes {values.apart(here, 1.0)[0]} times as long as the product"
    if next_one == 1:
        return f"on {degree + 1} ranks the all-gather takes just as long as the product, and so it hides too"
    if next_one < 1 - 1e-9:
        return f"on {degree + 1} ranks it would hide too: the all-gather takes {next_one:.4g} times the product"
    return None


def all_reduces(
    backwards: Sequence[float], sizes: Sequence[int], cap: float, alpha: float, beta: float
) -> list[tuple[float, float]]:
    """When the all-reduce of each bucket begins and ends, by ``steps.systems.data_parallel``.

    Seconds from the beginning of the backward pass. ``sizes`` are those of the layers' gradients in bytes.
    """
    scale = 2.0 ** max(0, math.ceil(math.log2(cap / MIB)))  # there the first bucket never exceeds 1 MiB
    units = [Unit(f"layer {i}", (size,), 0.0, s) for i, (s, size) in enumerate(zip(backwards, sizes, strict=True))]
    line = {("all_reduce", "all"): ((alpha, beta * scale),)}
    machine = Machine("two ranks", 1, 2, math.inf, math.inf, line, {}, adam=0.0)
    timed = on_paper(data_parallel(units, machine, bucket_bytes=cap / scale, element=1 / scale))
    times = zip(timed.step.tasks, timed.begins, timed.ends, strict=True)
    return [(begin, end) for task, begin, end in times if task.kind == "all_reduce"]


def all_reduces_run_as_scheduled(run: Run) -> str | None:
    """The function returned ``(begin, end)`` of each bucket's all-reduce."""
    got, expected, free = _as_lists(run.returned[0]), all_reduces(*run.case.args), 0.0
    if not isinstance(got, (list, tuple)) or not all(map(_is_pair, got)):
        return f"returned {str(got)[:60]}, not a list of (begin, end)"
    backwards, sizes, cap, alpha, beta = run.case.args
    for i, (mine, right) in enumerate(zip(got, expected, strict=False)):
        size, first = cut(sizes, cap)[i]
        if why := values.number(f"the begin of all-reduce {i}", mine[0], right[0]):
            return f"{why}; its bucket is full at {sum(backwards[first:]):g} s, the link is free at {free:g} s"
        if why := values.number(f"the end of all-reduce {i}", mine[1], right[1]):
            return f"{why}; it begins at {right[0]:g} s, and its bucket has {size:,} bytes"
        free = right[1]
    return None if len(got) == len(expected) else f"there are {len(got)} all-reduces, expected {len(expected)}"


def _as_lists(value):
    """A tensor or a NumPy array as lists; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def _is_pair(value):
    return isinstance(value, (list, tuple)) and len(value) == 2


def cut(sizes: Sequence[int], cap: float) -> list[tuple[int, int]]:
    """``(size, first layer)`` of each bucket, in the order in which they leave, of layers of these sizes."""
    units = [Unit(f"layer {i}", (size,), 0.0, 0.0) for i, size in enumerate(sizes)]
    return [(bucket.elements, bucket.last) for bucket in buckets(units, cap, 1, cap)]


def no_other_cap_ends_sooner(run: Run) -> str | None:
    """Of the caps given, the one returned lets the last all-reduce end first."""
    backwards, sizes, caps, alpha, beta = run.case.args
    got = values.one_value(run.returned[0])
    if got not in caps:
        return f"returned {got!r}, which is none of the caps"
    ends = {cap: all_reduces(backwards, sizes, cap, alpha, beta)[-1][1] for cap in caps}
    best = min(ends, key=lambda cap: ends[cap])
    if ends[got] <= ends[best] * (1 + 1e-9):
        return None
    mine, right = values.apart(ends[got], ends[best])
    return f"with a cap of {got:,} bytes the step ends after {mine} s, with {best:,} after {right} s"


def exposed(operations: Iterable[Operation]) -> float:
    """Seconds of one rank in which it communicates and computes nothing."""
    ops = list(operations)
    busy, sending = (
        spans.union((op.start, op.last) for op in ops if op.stream == stream) for stream in (COMPUTE, COMMUNICATION)
    )
    return spans.length(spans.without(sending, busy))


def exposed_is_what_nothing_covers(run: Run) -> str | None:
    """The function returned the ``exposed`` seconds. The reason shows a short record."""
    (operations,) = run.case.args
    why = values.number("the exposed time", run.returned[0], exposed(operations))
    if why is None or len(operations) > 6:
        return why
    lanes: dict[str, list] = {COMPUTE: [], COMMUNICATION: []}
    for op in operations:
        lanes[op.stream].append(f"{op.start:.9g}-{op.last:.9g}")
    shown = "; ".join(f"{stream} {', '.join(bars) or 'nothing'}" for stream, bars in lanes.items())
    return f"{shown}: {why}"


def prefetched(gathers: list[float], forwards: list[float], ahead: int) -> float:
    """Seconds of a forward pass of ZeRO-3 that gathers ``ahead`` layers beyond the one that computes."""
    return offload.window_seconds(gathers, forwards, min(ahead + 1, len(gathers)))


def takes_the_time_of_gathering_ahead(run: Run) -> str | None:
    """The function returned the seconds of ``prefetched``."""
    gathers, forwards, ahead = run.case.args
    expected, got = prefetched(gathers, forwards, ahead), values.one_value(run.returned[0])
    why = values.number("the time", got, expected)
    if why is None or not isinstance(got, (int, float)):
        return why
    others = {
        "that is without any overlap": sum(gathers) + sum(forwards),
        "that is as if any number of layers could be gathered ahead": prefetched(gathers, forwards, len(gathers)),
        f"that is with {ahead + 1} ahead": prefetched(gathers, forwards, ahead + 1),
        f"that is with {ahead - 1} ahead": prefetched(gathers, forwards, max(ahead - 1, 0)),
        "that is the longer of the two sums: the first gather and the last layer overlap with nothing": max(
            sum(gathers), sum(forwards)
        ),
    }
    said = [said for said, other in others.items() if other != expected and not values.number("", got, other)]
    return "; ".join([why, *said[:1]])


def the_fewest_micro_batches(run: Run) -> str | None:
    """Of the numbers of micro-batches that leave at most this share of the step idle, the smallest was returned."""
    stages, share, pieces = run.case.args
    count = plain_number(run.returned[0])
    if not is_whole_number(count, least=1):
        return f"returned {count!r}, not a whole number from 1"
    idle = pipeline.bubble_fraction(stages, count, pieces)
    if idle > share * (1 + 1e-9):
        much, most = values.apart(100 * idle, 100 * share)
        return f"{count} micro-batches leave {much} % of the step idle, more than {most} %"
    if count > 1 and _is_at_most(fewer := pipeline.bubble_fraction(stages, count - 1, pieces), share):
        return f"{count - 1} micro-batches are enough: they leave {100 * fewer:g} % of the step idle"
    return None


def _is_at_most(idle, share):
    """Whether a share of the step is surely at most another one: equal ones count where numbers have no rounding."""
    return idle <= share if (1024 * share).is_integer() else idle <= share * (1 - 1e-9)


def straggler(
    enters: Sequence[Sequence[float]],
    worth: float,
    since: Callable[[list[float]], float] = lambda times: statistics.median(times[:-1]),
) -> tuple[int, float] | None:
    """``(rank, seconds it costs)``, or None; ``enters[i][r]`` is when rank r entered collective i, on one clock.

    The last rank is charged with its time less ``since``, a function of all times in order.
    """
    costs = [0.0] * len(enters[0])
    for times in enters:
        last = max(range(len(times)), key=lambda rank: times[rank])
        costs[last] += times[last] - since(sorted(times))
    rank = max(range(len(costs)), key=lambda rank: costs[rank])
    if costs[rank] < MOST_OF_THE_WAITING * sum(costs) or costs[rank] < worth * len(enters):
        return None
    return rank, costs[rank]


SINCE: dict[str, Callable[[list[float]], float]] = {  # what else a late rank may have been charged with
    "less the smaller one of the two times in the middle": lambda times: statistics.median_low(times[:-1]),
    "since the first rank came": lambda times: times[0],
    "since the rank before it came": lambda times: times[-2],
    "less the mean of the others": lambda times: statistics.fmean(times[:-1]),
    "less the median of all ranks, its own time among them": statistics.median,
}


def names_the_straggler(run: Run) -> str | None:
    """The rank that keeps the others waiting and the seconds that it costs, or None where there is no such rank."""
    (enters, worth), got = run.case.args, _as_lists(run.returned[0])
    expected = straggler(enters, worth)
    if expected is None:
        return None if got is None else f"returned {got!r}, not None: there is no straggler"
    if got is None:
        return f"named nobody, and the others wait for rank {expected[0]}"
    if not _is_pair(got):
        return f"returned {got!r}, not (rank, seconds)"
    if values.one_value(got[0]) != expected[0]:
        return f"named rank {got[0]!r}, and the others wait for rank {expected[0]}"
    why = values.number(f"what rank {expected[0]} costs", got[1], expected[1])
    if why is None:
        return None
    others = {said: (straggler(enters, 0.0, since) or (None, None))[1] for said, since in SINCE.items()}
    others |= {"in each collective, on average; asked for is the sum": expected[1] / len(enters)}
    said = [f"that is {said}" for said, other in others.items() if other and not values.number("", got[1], other)]
    return "; ".join([why, *said[:1]])


# ---- a plan

SEQUENCES = 32  # of a step, for each node
SLOWER = 1.1  # than the best plan, at the most
CHOICES = {"data", "tensor", "pipeline", "stage", "recomputation"}


def the_plan_is_possible(run: Run) -> str | None:
    """The function returned a plan as a dict, which Llama 3 70B could be trained by, whatever the memory."""
    got = run.returned[0]
    if not isinstance(got, dict) or not {"data", "tensor", "pipeline"} <= got.keys() <= CHOICES:
        return f"returned {str(got)[:60]}, not a dict with data, tensor, pipeline, and perhaps stage and recomputation"
    for name, value in got.items():
        if name == "recomputation" and value not in ("none", "full"):
            return f"recomputation is {value!r}; it is 'none' or 'full'"
        if name == "stage" and (not is_whole_number(value, least=0) or value > 3):
            return f"stage is {value!r}; ZeRO has the stages 0 to 3"
        if name in ("data", "tensor", "pipeline") and not is_whole_number(value, least=1):
            return f"{name} is {value!r}, not a whole number from 1"
    return planner.why_not(*_job(run), Plan(**got))


def _job(run: Run) -> tuple[Transformer, Cluster, int]:
    (nodes,) = run.case.args
    return MODELS["llama3-70b"], Cluster("H100", nodes=nodes), SEQUENCES * nodes


@given(the_plan_is_possible)
def the_plan_fits(run: Run) -> str | None:
    """It needs no more memory than a GPU has."""
    job, plan = _job(run), Plan(**run.returned[0])
    best = _best(*job)
    fits = estimate(*job, plan).bytes <= job[1].memory_bytes
    return None if fits else f"the plan {planner.verdict(*job, plan, best)}"


@given(the_plan_fits)
def the_plan_is_fast(run: Run) -> str | None:
    """It takes hardly longer than the best plan that the planner knows."""
    job, plan = _job(run), Plan(**run.returned[0])
    best = _best(*job)
    is_fast = estimate(*job, plan).seconds <= SLOWER * best.seconds
    return None if is_fast else f"the plan is {planner.verdict(*job, plan, best)}"


@lru_cache
def _best(model: Transformer, cluster: Cluster, batch: int) -> Estimate:
    return planner.rank(model, cluster, batch).fitting[0]


# ---- on ranks


def means(run: Run) -> list[torch.Tensor]:
    """The mean over the ranks of each layer's gradient."""
    numels, ranks = run.case.args[0], range(run.world_size)
    of_ranks = [[overlap.gradient(rank, layer, numel) for layer, numel in enumerate(numels)] for rank in ranks]
    return [torch.stack(of_a_layer).mean(0) for of_a_layer in zip(*of_ranks, strict=True)]


def gradients_are_the_mean(run: Run) -> str | None:
    """Every layer's gradient came back, in the order of the layers, as the mean over the ranks."""
    numels, right = run.case.args[0], means(run)
    for rank, report in enumerate(run.reports):
        got = report.gradients
        if not isinstance(got, (list, tuple)) or len(got) != len(numels):
            what = f"{len(got)} gradients" if isinstance(got, (list, tuple)) else str(got)[:40]
            return f"rank {rank} returned {what}, not a list of {len(numels)} gradients"
        for layer, mine in enumerate(got):
            if why := _differ("the gradient of", layer, mine, right[layer], rank):
                others = {f"that is the gradient of layer {i}": mean for i, mean in enumerate(right) if i != layer}
                own = overlap.gradient(rank, layer, numels[layer])
                others |= {"that is the rank's own, and not the mean": own}
                if run.option("again"):
                    others |= {"the next step wrote over it": 2 * right[layer]}
                said = [said for said, other in others.items() if not _differ("", layer, mine, other, rank)]
                return "; ".join([why, *said[:1]])
    return None


def _differ(what, layer, got, right, rank):
    name = f"layer {layer}"
    return values.close_by_name(what, [{name: got}], {name: right}, 1e-6, rank)


def filled(run: Run) -> list[tuple[int, int]]:
    """``(bytes, first layer)`` of each bucket, in the order in which they leave."""
    numels, cap = run.case.args[:2]
    return cut([FP32 * numel for numel in numels], cap)


@given(gradients_are_the_mean)
def one_all_reduce_a_bucket(run: Run) -> str | None:
    """Each bucket travels once and whole, the last layers' first. A rank alone may leave that out."""
    expected = [size for size, _ in filled(run)]
    for rank, operations in enumerate(run.operations if run.world_size > 1 else ()):
        made = [op.bytes for op in operations if op.kind == "all_reduce"]
        if made != expected:
            return f"rank {rank} all-reduced {_list(made)} bytes, expected {_list(expected)}"
    return None


def _list(numbers):
    return ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "") or "no"


@given(one_all_reduce_a_bucket)
def sends_its_own(run: Run) -> str | None:
    """What a rank sends are its gradients of a bucket's layers, or an Nth of them, in any order."""
    if why := not_its_own([[[tensor] for tensor in report.sent] for report in run.reports], "bucket"):
        return why
    numels, n = run.case.args[0], run.world_size
    for rank, report in enumerate(run.reports if n > 1 else ()):
        behind = len(numels)
        for number, (sent, (_, first)) in enumerate(zip(report.sent, filled(run), strict=True)):
            own = torch.cat([overlap.gradient(rank, i, numels[i]) for i in range(first, behind)]).sort().values
            got, behind = sent.flatten().float().sort().values, first
            if not any(torch.allclose(got, right, rtol=1e-5) for right in (own, own / n)):
                return f"rank {rank}, bucket {number}: what it sends are not its gradients"
    return None


@given(gradients_are_the_mean)
def uses_what_comes_back(run: Run) -> str | None:
    """In a second step, in which all-reduces bring twice the sum, the gradients are twice the mean."""
    for rank, report in enumerate(run.reports):
        for layer, (mine, right) in enumerate(zip(report.doubled, means(run), strict=True)):
            if _differ("", layer, mine, 2 * right, rank):
                return (
                    f"in a second step all-reduces bring twice the sum, and on rank {rank} the gradient of layer "
                    f"{layer} is not twice the mean: is it made of what comes back in this step?"
                )
    return None


@given(gradients_are_the_mean)
def leaves_the_layers(run: Run) -> str | None:
    """The list of the layers is what it was."""
    layers = len(run.case.args[0])
    for rank, report in enumerate(run.reports):
        if report.layers_left != layers:
            return f"rank {rank} changed the list layers that it was given: the next step needs it as it was"
    return None


@given(gradients_are_the_mean)
def last_layer_computes_first(run: Run) -> str | None:
    """The layers ran once each, backwards."""
    expected = list(range(len(run.case.args[0])))[::-1]
    for rank, report in enumerate(run.reports):
        order = [layer for layer, _, _ in report.computed]
        if order != expected:
            return f"rank {rank} computed the layers {_list(order)}; a backward pass goes {_list(expected)}"
    return None


def _each_all_reduce(check: Callable) -> Callable:
    """A claim about every all-reduce: ``check(op, first layer of its bucket, {layer: (begin, end)}, its name)``."""

    @given(one_all_reduce_a_bucket)
    @given(last_layer_computes_first)
    def claim(run):
        for rank, report in enumerate(run.reports if run.world_size > 1 else ()):
            made = [op for op in run.operations[rank] if op.kind == "all_reduce"]
            times = {layer: (begin, end) for layer, begin, end in report.computed}
            for number, (op, (_, first)) in enumerate(zip(made, filled(run), strict=True)):
                if why := check(op, first, times, f"rank {rank}, bucket {number} of {len(made)}"):
                    return why
        return None

    return claim


@_each_all_reduce
def _leaves_before_the_next_layer(op: Operation, first: int, times: dict, which: str) -> str | None:
    """No layer begins between the last gradient of a bucket and its all-reduce, which comes after that gradient."""
    if op.start < times[first][1]:
        return f"{which}: it left before layer {first}, whose gradient belongs to it, was done"
    passed = [layer for layer, (begin, _) in times.items() if layer < first and begin < op.start]
    if not passed:
        return None
    return f"{which}: full when layer {first} was done, but it left when layer {min(passed)} had begun"


@given(_leaves_before_the_next_layer)
def leaves_as_soon_as_it_is_full(run: Run) -> str | None:
    """The last bucket, after which no layer computes, leaves before any other is waited for."""
    for rank, report in enumerate(run.reports if run.world_size > 1 else ()):
        *others, last = [op for op in run.operations[rank] if op.kind == "all_reduce"]
        over = max(end for _, _, end in report.computed)
        waits = [op.wait for op in others if op.wait is not None]
        if waits and over <= min(waits) < last.start:
            return f"rank {rank}: its last bucket was full, but it left only when another one had been waited for"
    return None


@_each_all_reduce
def _waits_come_last(op: Operation, first: int, times: dict, which: str) -> str | None:
    over = max(end for _, end in times.values())
    if op.wait is None:  # what a future waits for in C++ has an end alone
        return f"{which}: never waited for" if op.end is None else None
    if op.wait == op.start < over:
        return f"{which}: without async_op=True all_reduce waits itself, while layers have still to compute"
    return f"{which}: waited for while layers had still to compute" if op.wait < over else None


@given(_waits_come_last)
def waited_for_at_the_end(run: Run) -> str | None:
    """Nothing is waited for while a layer has still to compute: no all-reduce, by whatever call, and no other rank."""
    for rank, report in enumerate(run.reports if run.world_size > 1 else ()):
        over = max(end for _, _, end in report.computed)
        if any(time < over for time in report.asked):
            return f"rank {rank} asks whether an all-reduce is over while layers have still to compute: go on instead"
        barriers = [op for op in run.operations[rank] if op.kind == "barrier"]
        if barriers:
            when = "while layers have still to compute " if barriers[0].start < over else ""
            return f"rank {rank} calls barrier {when}({barriers[0].line}): nobody is to wait for another rank"
    return None
