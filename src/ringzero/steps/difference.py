"""Where a measured step first parts from the predicted one."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from ringzero.record.operation import COMPUTE, Operation

WAITING = "waiting for communication"


class Phase(NamedTuple):
    """What a rank is busy with from ``start`` to ``end``, in seconds from the beginning of its step."""

    name: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


def phases(operations: Iterable[Operation], rank: int = 0, begin: float | None = None) -> list[Phase]:
    """The rank's computing in order, neighbours of one kind put together, and the pauses between, in which it waits.

    ``begin``  of the step, by the operations' clock; by default when the first of them began. Waits inside what
    computes are part of it, as with a trace that calls the whole backward pass one operation.
    """
    mine = sorted((op for op in operations if op.rank == rank and op.end is not None), key=lambda op: op.start)
    if not mine:
        return []
    begin = mine[0].start if begin is None else begin
    found: list[Phase] = []
    for kind, some in groupby((op for op in mine if op.stream == COMPUTE), key=lambda op: op.kind):
        same = list(some)
        found.append(Phase(kind, same[0].start - begin, max(op.last for op in same) - begin))
    together: list[Phase] = []
    for phase in found:
        last = together[-1].end if together else 0.0
        together += [Phase(WAITING, last, phase.start)] if phase.start > last else []
        together.append(phase)
    last, end = together[-1].end if together else 0.0, max(op.last for op in mine) - begin
    return [*together, *([Phase(WAITING, last, end)] if end > last else [])]


def first_difference(
    measured: Iterable[Operation], predicted: Iterable[Operation], rank: int = 0, share: float = 0.2,
    begin: float | None = None,
) -> str:  # fmt: skip
    """One sentence: the first phase whose length is more than ``share`` from its prediction, if there is one.

    Phases under a fiftieth of the step count as equal.
    """
    there, here = phases(predicted, rank), phases(measured, rank, begin)
    step = max((phase.end for phase in there), default=0.0)
    for one, other in zip(_worth_it(here, step), _worth_it(there, step), strict=False):
        if one.name != other.name:
            return f"After {other.start * 1e3:.0f} ms {other.name} was predicted, and rank {rank} did {one.name}."
        if abs(one.seconds - other.seconds) > share * other.seconds:
            return (
                f"The first difference is in {one.name}: {one.seconds * 1e3:.0f} ms instead of "
                f"{other.seconds * 1e3:.0f}, from {one.start * 1e3:.0f} ms on."
            )
    return f"No part of rank {rank}'s step is more than {share:.0%} from its prediction."


def _worth_it(phases: list[Phase], step: float) -> list[Phase]:
    return [phase for phase in phases if phase.seconds > step / 50]
