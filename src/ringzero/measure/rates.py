"""What each rank does in a second, measured on all ranks at once: products, AdamW, collectives, and both at a time.

Run on each rank, by ``measure.machine``. Every time is the median of several tries that a barrier starts together.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from ringzero import all_gather, reduce_scatter
from ringzero.collectives import event_threads

LAYERS = 4  # of a stack: their weights do not all stay in a cache
ELEMENTS = 2**22  # of an optimizer's step: with gradients and states, more than a cache holds
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
SMALL = 2**17  # bytes: what is tried more often
BESIDE, BESIDE_SECONDS = 2**20, 0.4  # elements of the collective that runs beside computing, and for how long


class Rates(NamedTuple):
    """Of one rank, in seconds. ``spread``: the slower quarter of the same work over the faster one, minus 1."""

    products: list[tuple[float, ...]]  # (tokens, inputs, outputs, forward, backward), of one layer
    adam: float  # of an element
    moved: float  # of a byte read or written, where a gradient moves into its bucket
    collectives: dict[str, list[tuple[float, float]]]  # {name: [(bytes, seconds), ...]}
    slower: dict[str, tuple[float, float]]  # {collective: (factor of computing, its own)}
    spread: float
    reference: float  # of ``reference()``


def rates(shapes: Sequence[tuple[int, int, int]], sizes: Sequence[int], tries: int) -> Rates:
    """For linear layers of ``shapes`` (tokens, inputs, outputs), each with a ReLU; collectives of ``sizes`` bytes."""
    group = dist.new_group(backend="gloo") if torch.get_default_device().type == "cpu" else dist.group.WORLD
    event_threads.calm()
    products: list[tuple[float, ...]] = []
    both_ways: list[list[float]] = []
    for shape in shapes:
        forwards, backwards = _passes(*shape, tries)
        both_ways.append([a + b for a, b in zip(forwards, backwards, strict=True)])
        products.append((*shape, statistics.median(forwards) / LAYERS, statistics.median(backwards) / LAYERS))
    collectives: dict[str, list[tuple[float, float]]] = {
        name: [(size, _collective(name, size, group, tries)) for size in sizes] for name in COLLECTIVES
    }
    clock = reference()
    slower = {name: _side_by_side(name, shapes[-1], group) for name in COLLECTIVES[:2]}
    return Rates(
        products, _adam(tries), _moved(tries), collectives, slower, max(map(_spread, both_ways)), _median(clock, tries)
    )


def reference() -> Callable[[], None]:
    """The same work each time, as long as a step: how long it takes now says how fast the machine is now."""
    x = torch.randn(512, 512, requires_grad=True)
    layers = nn.Sequential(*(nn.Linear(512, 512) for _ in range(LAYERS)))

    def there_and_back() -> None:
        layers(x).square().sum().backward()
        layers.zero_grad()

    return there_and_back


def _passes(tokens: int, inputs: int, outputs: int, tries: int) -> tuple[list[float], list[float]]:
    """Forward and backward seconds of a stack, there and back where layers are not square."""
    sides = [(inputs, outputs), (outputs, inputs)] if inputs != outputs else [(inputs, outputs)]
    layers = [nn.Sequential(nn.Linear(*sides[i % len(sides)]), nn.ReLU()) for i in range(LAYERS)]
    model, x = nn.Sequential(*layers), torch.randn(tokens, inputs, requires_grad=True)
    forwards, backwards = [], []
    for _ in range(tries + 1):
        dist.barrier()
        start = time.perf_counter()
        out = model(x)
        middle = time.perf_counter()
        out.backward(out)
        forwards.append(middle - start)
        backwards.append(time.perf_counter() - middle)
        model.zero_grad()
    return forwards[1:], backwards[1:]


def _adam(tries: int) -> float:
    parameters = [nn.Parameter(torch.randn(ELEMENTS // LAYERS)) for _ in range(LAYERS)]
    optimizer = torch.optim.AdamW(parameters)
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    return _median(optimizer.step, tries) / ELEMENTS


def _moved(tries: int) -> float:
    into = torch.empty(ELEMENTS)
    return _median(lambda: torch.div(torch.empty(ELEMENTS), 2, out=into), tries) / (8 * ELEMENTS)


def _collective(name: str, size: int, group: Any, tries: int) -> float:
    times = 5 if size < SMALL else 1  # milliseconds each, and the more they vary
    return _median(_call(name, size // 4, group), times * tries)


def _call(name: str, elements: int, group: Any) -> Callable[[], Any]:
    """As ``DistributedDataParallel`` and ZeRO have them travel: the backend's all-reduce, ringzero's two halves."""
    x = torch.zeros(elements)
    if name == "all_reduce":
        return lambda: dist.all_reduce(x, group=group)
    both = {"reduce_scatter": reduce_scatter, "all_gather": all_gather}
    return lambda: both[name](x, group=group)


def _side_by_side(name: str, shape: tuple[int, int, int], group: Any) -> tuple[float, float]:
    """How many times as long computing takes beside the collective, and the collective beside computing."""
    call, compute = _call(name, BESIDE, group), _computing(*shape)
    alone, pass_alone = _median(call, 3), _median(compute, 3)
    calls = torch.tensor(math.ceil(BESIDE_SECONDS / alone))
    dist.broadcast(calls, 0)

    def communicate() -> float:
        dist.barrier(group)
        start = time.perf_counter()
        for _ in range(int(calls)):
            call()
        return time.perf_counter() - start

    with ThreadPoolExecutor(1) as beside:
        communicating, start, passes = beside.submit(communicate), time.perf_counter(), 0
        while not communicating.done():
            compute()
            passes += 1
        elapsed = time.perf_counter() - start
        return elapsed / (passes * pass_alone), communicating.result() / (int(calls) * alone)


def _computing(tokens: int, inputs: int, outputs: int) -> Callable[[], Any]:
    layer, x = nn.Linear(inputs, outputs), torch.randn(tokens, inputs, requires_grad=True)

    def there_and_back() -> None:
        layer(x).square().sum().backward()
        layer.zero_grad()

    return there_and_back


def _median(call: Callable[[], Any], tries: int) -> float:
    seconds = []
    for _ in range(tries + 1):
        dist.barrier()
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])  # the first warms up


def _spread(seconds: list[float]) -> float:
    first, _, third = statistics.quantiles(seconds, n=4)
    return third / first - 1
