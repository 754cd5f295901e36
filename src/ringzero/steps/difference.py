"""Where a measured step first parts from the predicted one."""

from collections.abc import Iterable
from itertools import groupby, zip_longest
from typing import NamedTuple

from ringzero.record.operation import COMPUTE, Operation
from ringzero.record.spans import length, union, without

WAITING = "waiting for communication"
SHARE = 0.2  # of a phase's predicted seconds: a smaller difference is none


class Phase(NamedTuple):
    """What a rank is busy with from ``start`` to ``end``, in seconds from the beginning of its step."""

    name: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


def phases(operations: Iterable[Operation], rank: int = 0, begin: float | None = None) -> list[Phase]:
    """What the rank computes, neighbours of one kind put together, and after each the time in which it waits.

    ``begin``  of the step, by the operations' clock; by default when the first of them began. A pass may be one
    operation that waits inside, as in a trace, or many with pauses between, as in a prediction: all waiting of a pass
    stands behind its computing.
    """
    mine = sorted((op for op in operations if op.rank == rank and op.end is not None), key=lambda op: op.start)
    if not mine:
        return []
    begin, end = mine[0].start if begin is None else begin, max(op.last for op in mine)
    waits = union((op.wait, op.last) for op in mine if op.stream != COMPUTE and op.wait is not None)
    passes = [list(some) for _, some in groupby((op for op in mine if op.stream == COMPUTE), key=lambda op: op.kind)]
    starts = [each[0].start for each in passes]
    found = [Phase(WAITING, 0.0, starts[0] - begin)] if starts and starts[0] > begin else []
    for each, start, following in zip(passes, starts, [*starts[1:], end], strict=True):
        busy = length(without(union((op.start, op.last) for op in each), waits))
        found.append(Phase(each[0].kind, start - begin, start - begin + busy))
        found += [Phase(WAITING, start - begin + busy, following - begin)] if following > start + busy else []
    return found


def first_difference(measured: Iterable[Operation], predicted: Iterable[Operation], begin: float | None = None) -> str:
    """One sentence: the first phase of rank 0 that is more than a fifth longer or shorter than predicted, if any.

    ``begin`` is that of the measured step. Phases under a fiftieth of the step count as equal.
    """
    there, here = phases(predicted), phases(measured, begin=begin)
    step = max((phase.end for phase in there), default=0.0)
    for one, other in zip_longest(_worth_it(here, step), _worth_it(there, step)):
        if other is None:
            return f"After {one.start * 1e3:.0f} ms the predicted step has ended, and rank 0 did {one.name}."
        if one is None:
            return f"After {other.start * 1e3:.0f} ms {other.name} was predicted, and rank 0's step has ended."
        if one.name != other.name:
            return f"After {other.start * 1e3:.0f} ms {other.name} was predicted, and rank 0 did {one.name}."
        if abs(one.seconds - other.seconds) > SHARE * other.seconds:
            return (
                f"The first difference is in {one.name}: {one.seconds * 1e3:.0f} ms instead of "
                f"{other.seconds * 1e3:.0f}, from {one.start * 1e3:.0f} ms on."
            )
    return f"No part of rank 0's step is more than {SHARE:.0%} from its prediction."


def _worth_it(phases: list[Phase], step: float) -> list[Phase]:
    return [phase for phase in phases if phase.seconds > step / 50]
