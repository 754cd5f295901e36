"""Time one collective on one size, by several implementations in turn, as nccl-tests does. Runs on each rank.

In place, a collective works on one buffer, of which chunk r is rank r's. Out of place, input and output lie apart:
where an implementation works in place only, what the rank brings is copied over first, and that is timed too.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import ringzero
from ringzero.collectives.schedule import chunk_bounds
from ringzero.collectives.torchs import all_gather_single, reduce_scatter_single
from ringzero.measure import turns
from ringzero.measure.turns import CALMED, IN_PLACE, OUT_OF_PLACE, on_slowest

WARM_UP, ITERATIONS, MINIMUM = 2, 41, 9
SECONDS = 2.0  # for one collective and size; when they are over, MINIMUM iterations are enough
ROOT = 0
FORMS = {"all_to_all": (OUT_OF_PLACE,), "barrier": (IN_PLACE,)}  # the others have both


Samples = dict[tuple[str, str], tuple[list[float], list[float], int]]


def measure(collective: str, size: int, algorithms: Sequence[str], backend: str) -> Samples:
    """Time ``collective`` on a float32 buffer of ``size`` bytes, on each rank of the default group.

    Returns ``{(implementation, form): (seconds, cpu, wrong)}``: of each iteration the seconds on its slowest rank and
    the CPU's seconds of all ranks, their kernels' and gloo's threads included; and the wrong elements on all ranks.
    Implementations are our ``algorithms``, the backend's own by the backend's name, and on Linux gloo's as ``CALMED``.
    """
    case = _Case.of(collective, size // 4, dist.new_group(backend=backend))  # launch's own group records
    peers = (backend, CALMED) if backend == "gloo" and hasattr(os, "SCHED_BATCH") else (backend,)
    keys = [(name, form) for name in (*algorithms, *peers) for form in FORMS.get(collective, (OUT_OF_PLACE, IN_PLACE))]

    def once(key: tuple[str, str]) -> tuple[float, float]:
        implementation, form = key
        turns.prepare(is_ours=implementation != backend)
        return case.seconds(form, None if implementation in peers else implementation)

    wrong = {}
    for key in keys:
        once(key)
        wrong[key] = case.wrong()
    taken = turns.in_turns(keys, once, ITERATIONS, WARM_UP, MINIMUM, SECONDS)
    return {key: ([each for each, _ in taken[key]], [cpu for _, cpu in taken[key]], wrong[key]) for key in keys}


@dataclass(frozen=True)
class _Case:
    """What this rank holds: 1-D buffers. ``brings`` is the slice it contributes, ``gets`` the slice of its result."""

    collective: str
    group: dist.ProcessGroup
    source: Tensor
    expected: Tensor
    buffer: Tensor
    chunk: slice
    brings: slice
    gets: slice

    @classmethod
    def of(cls, collective: str, numel: int, group: dist.ProcessGroup) -> "_Case":
        rank, n = group.rank(), group.size()
        numel = max(n, numel // n * n)
        chunk, whole = slice(*chunk_bounds(numel, n)[rank : rank + 2].tolist()), slice(0, numel)
        at_root = whole if rank == ROOT else slice(0, 0)
        brings = {"all_gather": chunk, "gather": chunk, "broadcast": at_root, "scatter": at_root}
        gets = {"reduce_scatter": chunk, "scatter": chunk, "reduce": at_root, "gather": at_root, "barrier": slice(0, 0)}
        source, expected = _numbers(numel, rank), _expected(collective, numel, n, chunk)
        slices = (chunk, brings.get(collective, whole), gets.get(collective, whole))
        return cls(collective, group, source, expected, source.clone(), *slices)

    def seconds(self, form: str, algorithm: str | None) -> tuple[float, float]:
        """What one call takes on the slowest rank, and of all ranks' CPUs; ``algorithm`` is None for the backend's."""
        self.buffer.copy_(self.source) if form == IN_PLACE else self.buffer.fill_(-1)
        input = self.buffer if form == IN_PLACE else self.source
        dist.barrier()
        _synchronise()
        start, cpu = time.perf_counter(), time.process_time()
        self._ours(algorithm, input) if algorithm else PEERS[self.collective](self, self.buffer, input)
        _synchronise()
        seconds, of_cpus = time.perf_counter() - start, torch.tensor(time.process_time() - cpu, dtype=torch.float64)
        dist.all_reduce(of_cpus)
        return on_slowest(seconds), float(of_cpus)

    def wrong(self) -> int:
        """How many elements on all ranks are not what they must be."""
        mistakes = (self.buffer[self.gets] != self.expected[self.gets]).sum()
        dist.all_reduce(mistakes)
        return int(mistakes)

    def _ours(self, algorithm: str, input: Tensor) -> None:
        if self.collective == "barrier":
            ringzero.barrier(algorithm=algorithm, group=self.group)
        elif self.collective == "all_to_all":
            ringzero.all_to_all(self.buffer, input, algorithm=algorithm, group=self.group)
        else:
            self.bring(self.buffer, input)
            getattr(ringzero, self.collective)(self.buffer, algorithm=algorithm, group=self.group)

    def bring(self, output: Tensor, input: Tensor) -> Tensor:
        """For an implementation that works in place only: copy what this rank contributes into ``output``."""
        if input is not output:
            output[self.brings].copy_(input[self.brings])
        return output

    def chunks(self, buffer: Tensor) -> list[Tensor] | None:
        """On the root ``buffer`` cut into a chunk for each rank; None elsewhere, as torch's gather and scatter want."""
        return list(buffer.chunk(self.group.size())) if self.group.rank() == ROOT else None


# torch.distributed's own: functions of a case, output and input (which may be one buffer).
PEERS: dict[str, Callable[[_Case, Tensor, Tensor], Any]] = {
    "all_reduce": lambda c, o, i: dist.all_reduce(c.bring(o, i), group=c.group),
    "reduce_scatter": lambda c, o, i: reduce_scatter_single(o[c.chunk], i, group=c.group),
    "all_gather": lambda c, o, i: all_gather_single(o, i[c.chunk], group=c.group),
    "broadcast": lambda c, o, i: dist.broadcast(c.bring(o, i), group_src=ROOT, group=c.group),
    "reduce": lambda c, o, i: dist.reduce(c.bring(o, i), group_dst=ROOT, group=c.group),
    "gather": lambda c, o, i: dist.gather(i[c.chunk], c.chunks(o), group_dst=ROOT, group=c.group),
    "scatter": lambda c, o, i: dist.scatter(o[c.chunk], c.chunks(i), group_src=ROOT, group=c.group),
    "all_to_all": lambda c, o, i: dist.all_to_all_single(o, i, group=c.group),
    "barrier": lambda c, o, i: dist.barrier(group=c.group),
}


def _numbers(numel: int, rank: int) -> Tensor:
    """Whole numbers, so that a sum is exact in any order and every element can be checked."""
    return torch.arange(numel, dtype=torch.int64).mul_(rank + 3).remainder_(1009).float()


def _expected(collective: str, numel: int, n: int, mine: slice) -> Tensor:
    """The buffer after the collective, on a rank that gets all of it; ``mine`` is this rank's chunk."""
    everyone = [_numbers(numel, rank) for rank in range(n)]
    if "reduce" in collective:
        return torch.stack(everyone).sum(0)
    if collective in ("all_gather", "gather"):
        return torch.cat([part.chunk(n)[rank] for rank, part in enumerate(everyone)])
    if collective == "all_to_all":
        return torch.cat([part[mine] for part in everyone])
    return everyone[ROOT]


def _synchronise() -> None:
    if torch.cuda.is_available() and torch.get_default_device().type == "cuda":
        torch.cuda.synchronize()
