"""What each rank does in a second, measured on all ranks at once: products, AdamW, collectives, and both at a time.

Run on each rank, by ``measure.machine``. Every time is the median of several tries that a barrier starts together.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from ringzero import all_gather, reduce_scatter
from ringzero.collectives import event_threads
from ringzero.data_parallel.executor import queue_of
from ringzero.measure.turns import times
from ringzero.zero import ZeroStage3

TINY, UNITS = 8, 16  # width and number of units
LAYERS, DEEP = 4, 12  # of a stack
MET, MET_TOKENS = 640, 160  # width and tokens of layers between which ranks meet
CACHE_BYTES = 2**26  # more than what a cache keeps from one training step to the next
ELEMENTS = 2**22  # of an optimizer's step: with gradients and states, more than a cache holds
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
IN_A_ROW, ROW_BYTES = 8, 2**24  # collectives that are timed together: so many, or as many as have these bytes
BESIDE_SECONDS, BESIDE_CALLS = 0.15, 64  # a collective beside computing: again and again for so long, or so often


class Rates(NamedTuple):
    """Of one rank, in seconds. ``spread``: the slower quarter of the same work over the faster one, minus 1."""

    products: list[tuple[float, ...]]  # (tokens, inputs, outputs, forward, backward), of one layer
    adam: float  # of an element
    moved: float  # of a byte read or written, where a gradient moves into its bucket
    collectives: dict[str, list[tuple[int, float]]]  # {name: [(bytes, seconds), ...]}
    beside: dict[str, list[tuple[int, float, float]]]  # {name: [(bytes, seconds beside computing, its factor), ...]}
    hooks: float  # of a unit in one pass, in stage 3, whatever its size
    meeting: float  # of a meeting of all ranks in the middle of computing, beside what its collective takes
    spread: float
    reference: float  # of ``reference()``


def rates(shapes: Sequence[tuple[int, int, int]], sizes: Sequence[int], tries: int) -> Rates:
    """For linear layers of ``shapes`` (tokens, inputs, outputs), each with a ReLU; collectives of ``sizes`` bytes."""
    group = dist.new_group(backend="gloo") if torch.get_default_device().type == "cpu" else dist.group.WORLD
    event_threads.calm()
    products: list[tuple[float, ...]] = []
    both_ways: list[list[float]] = []
    clock: list[float] = []  # between the passes: the machine may change its speed from one minute to the next
    for shape in shapes:
        forwards, backwards, references = _passes(*shape, tries)
        clock += references
        both_ways.append([a + b for a, b in zip(forwards, backwards, strict=True)])
        products.append((*shape, statistics.median(forwards) / LAYERS, statistics.median(backwards) / LAYERS))
    collectives: dict[str, list[tuple[int, float]]] = {
        name: [(size, _collective(name, size, group, tries)) for size in sizes] for name in COLLECTIVES
    }
    beside = _beside(collectives, group, tries)
    return Rates(
        products, _adam(tries), _moved(tries), collectives, beside, _hooks(tries), _meeting(group, tries),
        max(map(_spread, both_ways)), statistics.median(clock),
    )  # fmt: skip


def reference() -> Callable[[], None]:
    """The same work each time, as long as a step: how long it takes now says how fast the machine is now."""
    return _stack(LAYERS)


def _stack(depth: int) -> Callable[[], None]:
    x = torch.randn(512, 512, requires_grad=True)
    layers = nn.Sequential(*(nn.Linear(512, 512) for _ in range(depth)))

    def there_and_back() -> None:
        layers(x).square().sum().backward()
        layers.zero_grad()

    return there_and_back


def _passes(tokens: int, inputs: int, outputs: int, tries: int) -> tuple[list[float], list[float], list[float]]:
    """Forward and backward seconds of a stack, there and back where layers are not square; and of the reference."""
    sides = [(inputs, outputs), (outputs, inputs)] if inputs != outputs else [(inputs, outputs)]
    layers = [nn.Sequential(nn.Linear(*sides[i % len(sides)]), nn.ReLU()) for i in range(LAYERS)]
    model, x = nn.Sequential(*layers), torch.randn(tokens, inputs, requires_grad=True)
    forwards, backwards, references = [], [], []
    other, work = torch.zeros(CACHE_BYTES // 4), reference()
    for _ in range(tries + 1):
        other.add_(1)  # as after an optimizer's step, no weight is in a cache
        dist.barrier()
        start = time.perf_counter()
        out = model(x)
        middle = time.perf_counter()
        out.backward(out)
        forwards.append(middle - start)
        backwards.append(time.perf_counter() - middle)
        model.zero_grad()
        dist.barrier()
        start = time.perf_counter()
        work()
        references.append(time.perf_counter() - start)
    return forwards[1:], backwards[1:], references[1:]


def _adam(tries: int) -> float:
    parameters = [nn.Parameter(torch.randn(ELEMENTS // LAYERS)) for _ in range(LAYERS)]
    optimizer = torch.optim.AdamW(parameters)
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    return _median(optimizer.step, tries) / ELEMENTS


def _moved(tries: int) -> float:
    of, into = torch.ones(ELEMENTS), torch.empty(ELEMENTS)
    return _median(lambda: torch.div(of, 2, out=into), tries) / (8 * ELEMENTS)


def _hooks(tries: int) -> float:
    """What stage 3 adds to a pass through units that are too small to count, on a rank that shares them with none."""
    alone = [dist.new_group([rank], backend="gloo") for rank in range(dist.get_world_size())][dist.get_rank()]
    plain, sharded = (nn.Sequential(*(nn.Linear(TINY, TINY) for _ in range(UNITS))) for _ in range(2))
    zero = ZeroStage3(sharded, torch.optim.SGD, lr=0.0, units=list(sharded), group=alone)
    x = torch.randn(1, TINY)
    without, with_hooks = (_median(partial(_pass, model, x), 3 * tries) for model in (plain, zero))
    return max(0.0, with_hooks - without) / (2 * UNITS)


def _meeting(group: Any, tries: int) -> float:
    """Seconds that ranks lose where they meet after a layer: they compute the same, and are not ready at the same
    moment, so each time all wait for the slowest."""
    layers, x = [nn.Linear(MET, MET) for _ in range(DEEP)], torch.randn(MET_TOKENS, MET)
    model = nn.Sequential(*layers)
    number = torch.zeros(1)
    alone = _median(partial(_pass, model, x), 3 * tries)
    in_a_row = _median(lambda: [dist.all_reduce(number, group=group) for _ in range(DEEP)], tries)
    for layer in layers:
        layer.weight.register_post_accumulate_grad_hook(lambda _: dist.all_reduce(number, group=group))
    together = _median(partial(_pass, model, x), 3 * tries)
    return max(0.0, together - alone - in_a_row) / DEEP


def _pass(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()


def _collective(name: str, size: int, group: Any, tries: int) -> float:
    """Of one of several in a row: alone after a barrier, a small one takes up to twice as long, or none of the link's
    time."""
    call, count = _call(name, size, group), _in_a_row(size)

    def in_a_row() -> None:
        for _ in range(count):
            call()

    return _median(in_a_row, tries) / count


def _in_a_row(size: int) -> int:
    return max(1, min(IN_A_ROW, ROW_BYTES // size))


def _call(name: str, size: int, group: Any) -> Callable[[], Any]:
    """A collective on ``size`` bytes, each time another buffer's, since those of a step are not in a cache.

    As ``DistributedDataParallel`` and ZeRO have them travel: the backend's all-reduce; ringzero's two halves, by the
    thread that does them, to which they are handed and which says when they are done.
    """
    buffers = cycle(torch.zeros(size // 4) for _ in range(_in_a_row(size)))
    if name == "all_reduce":
        return lambda: dist.all_reduce(next(buffers), group=group)
    half = partial({"reduce_scatter": reduce_scatter, "all_gather": all_gather}[name], group=group)
    queue = queue_of(group, torch.get_default_device())
    return lambda: queue.submit(partial(half, next(buffers))).result()


def _beside(
    collectives: dict[str, list[tuple[int, float]]], group: Any, tries: int
) -> dict[str, list[tuple[int, float, float]]]:
    """Of each collective and size: its seconds beside computing, and how many times as long computing takes then."""
    compute = _stack(DEEP)
    pass_alone = _median(compute, tries)
    found: dict[str, list[tuple[int, float, float]]] = {name: [] for name in collectives}
    with ThreadPoolExecutor(1) as thread:
        for name, of_name in collectives.items():
            for size, alone in of_name:
                call = _call(name, size, group)
                both = [_side_by_side(call, alone, group, compute, thread) for _ in range(math.ceil(tries / 2))]
                seconds, passes = (statistics.median(each) for each in zip(*both, strict=True))
                found[name].append((size, seconds, passes / pass_alone))
    return found


def _side_by_side(call: Callable[[], Any], alone: float, group: Any, compute: Callable[[], None],
                  thread: ThreadPoolExecutor) -> tuple[float, float]:  # fmt: skip
    """Seconds of a collective that ``thread`` does again and again, and of a pass of ``compute`` meanwhile."""
    calls = torch.tensor(min(BESIDE_CALLS, math.ceil(BESIDE_SECONDS / alone)))
    dist.broadcast(calls, 0)

    def communicate() -> float:
        dist.barrier(group)
        start = time.perf_counter()
        for _ in range(int(calls)):
            call()
        return time.perf_counter() - start

    communicating, start, passes = thread.submit(communicate), time.perf_counter(), 0
    while not passes or not communicating.done():  # on a busy machine all may be sent before the first pass
        compute()
        passes += 1
    return communicating.result() / int(calls), (time.perf_counter() - start) / passes


def _median(call: Callable[[], Any], tries: int) -> float:
    return statistics.median(times(call, tries=tries + 1)[1:])  # the first warms up


def _spread(seconds: list[float]) -> float:
    first, _, third = statistics.quantiles(seconds, n=4)
    return third / first - 1
