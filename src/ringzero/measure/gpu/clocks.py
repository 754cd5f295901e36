"""The time of work on a GPU: by the host's clock, by the same after waiting for the GPU, by the GPU's events."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

SIZES = (256, 1024, 4096, 8192)
LAUNCHES = 10
LONG_ENOUGH = 0.005  # seconds, beside which the start and the end of a measurement do not count


def synchronize(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def returned_and_done(work: Callable[[], object], device: str) -> tuple[float, float]:
    """Seconds until ``work()`` came back, and until the device had done it, by the host's clock."""
    synchronize(device)
    start = time.perf_counter()
    work()
    returned = time.perf_counter() - start
    synchronize(device)
    return returned, time.perf_counter() - start


def medians(work: Callable[[], object], device: str, tries: int) -> tuple[float, float]:
    """Of ``returned_and_done``, after two calls that warm up."""
    both = [returned_and_done(work, device) for _ in range(2 + tries)][2:]
    returned, done = map(statistics.median, zip(*both, strict=True))
    return returned, done


def by_events(work: Callable[[], object], times: int = 1) -> float:
    """Seconds between two events around ``times`` calls of ``work`` on this thread's stream of the GPU."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def seconds_of(work: Callable[[], object], device: str, tries: int = 7) -> float:
    """Seconds of one call: the median of ``tries`` measurements of as many calls in a row as are long enough.

    On a GPU by events. What the host needs to issue a call counts only where the GPU has to wait for it.
    """

    def several(times: int) -> float:
        if device == "cuda":
            return by_events(work, times)
        start = time.perf_counter()
        for _ in range(times):
            work()
        return time.perf_counter() - start

    several(2)  # libraries start, memory is cached
    times = max(1, min(1000, round(LONG_ENOUGH / max(several(3) / 3, 1e-9))))
    return statistics.median(several(times) for _ in range(tries)) / times


def rows(device: str, sizes: Sequence[int] = SIZES, tries: int = 20) -> Iterator[dict[str, Any]]:
    """Of the product of two bf16 matrices by size: seconds by each clock; then a loop whose ``item()`` seems slow."""
    for size in sizes:
        a = torch.randn(size, size, device=device).bfloat16()
        yield {"what": "product", "size": size, **three_clocks(lambda a=a: a @ a, device, tries)}  # type: ignore[misc]
    synchronize(device)
    start = time.time()
    for _ in range(LAUNCHES):
        total = (a @ a).sum()
    launched = time.time()
    total.item()
    yield {"what": f"{LAUNCHES} products", "size": sizes[-1], "host_seconds": launched - start}
    yield {"what": "item()", "size": sizes[-1], "host_seconds": time.time() - launched}


def three_clocks(work: Callable[[], object], device: str, tries: int) -> dict[str, float | None]:
    """Medians of ``work``: ``host_seconds`` until the call returned; ``synchronized_seconds`` until the device was
    done, by the same clock; ``event_seconds``, None where there is no GPU."""
    returned, done = medians(work, device, tries)
    events = [by_events(work) for _ in range(tries)] if device == "cuda" else None
    return {
        "host_seconds": returned,
        "synchronized_seconds": done,
        "event_seconds": statistics.median(events) if events else None,
    }
