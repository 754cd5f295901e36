"""What ways to train are put together from: a forward pass, a backward pass, the gathers of stage 3, a collective.

Each appends tasks of rank 0 to a ``Step``, in the order in which the program issues them. Sizes are in bytes of
``element`` bytes each.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ringzero.steps.machine import Machine
from ringzero.steps.task import COMPUTE, NETWORK, Step
from ringzero.steps.unit import Bucket, Unit


def collective(step: Step, machine: Machine, kind: str, size: float, group: str = "all", queue: str = "network",
                copied: float = 0.0, late: float = 0.0, **details: Any) -> int:  # fmt: skip
    """Append what rank 0 does in a collective on ``size`` bytes, with ``copied`` bytes that are read or written for it,
    and the seconds for which it waits for ``late`` ranks. Returns its number."""
    beside, slows = machine.beside_computing(kind, size, group)
    seconds, more = machine.seconds(kind, size, group), copied / machine.memory_bandwidth + late
    return step.add(
        kind, 0, queue, NETWORK, seconds + more, bytes=int(size), beside=beside + more, slows=slows, **details
    )


class Whole:
    """Below stage 3 every unit's parameters are there: nothing is gathered, freed or hooked."""

    hooks = 0.0  # seconds of a unit in a pass

    def begin(self, order: Sequence[int]) -> None:
        """A pass through the units in this order begins."""

    def need(self, unit: int, now: int | None) -> int | None:
        """The task after which the unit can compute; ``now`` is the last one before it."""
        return None

    def size(self, unit: int) -> float:
        """Bytes that are freed once the unit has computed."""
        return 0.0


WHOLE = Whole()


class Gathers(Whole):
    """Stage 3's gathers of parameters, ``prefetch`` units ahead of the one that is needed."""

    def __init__(self, step: Step, units: Sequence[Unit], machine: Machine, group: str, element: float, prefetch: int):
        self._step, self._units, self._machine, self._group = step, units, machine, group
        self._element, self._prefetch = element, prefetch
        self.hooks = machine.hooks

    def begin(self, order: Sequence[int]) -> None:
        self._order, self._numbers = order, dict[int, int]()

    def need(self, unit: int, now: int | None) -> int:
        """Start what the unit needs, and what comes after it, once task ``now`` has ended. Returns its gather."""
        place = self._order.index(unit)
        for each in self._order[len(self._numbers) : place + 1 + self._prefetch]:
            size = self._units[each].elements * self._element
            self._numbers[each] = collective(
                self._step, self._machine, "all_gather", size, self._group, queue="gathers", after=[now],
                copied=2 * size / self._machine.group_size(self._group),  # the rank's own shard into the whole
                name=self._units[each].name, holds=size,
            )  # fmt: skip
        return self._numbers[unit]

    def size(self, unit: int) -> float:
        return self._units[unit].elements * self._element


def forward_pass(step: Step, units: Sequence[Unit], gathers: Whole = WHOLE) -> int | None:
    """The forward pass. Returns its last task."""
    last = None
    gathers.begin(range(len(units)))
    for number, unit in enumerate(units):
        last = step.add(
            "forward", 0, "compute", COMPUTE, unit.forward + gathers.hooks, after=[last, gathers.need(number, last)],
            name=unit.name, holds=unit.kept, frees=gathers.size(number),
        )  # fmt: skip
    return last


def backward_pass(
    step: Step,
    units: Sequence[Unit],
    cut: Sequence[Bucket],
    leave: Callable[[Bucket, int], int],
    last: int | None,
    machine: Machine,
    element: float,
    waits_for: int | None,
    gathers: Whole = WHOLE,
    holds_gradients: bool = False,
) -> int | None:
    """The backward pass. ``leave(bucket, after)`` sends a full bucket; so many ``waits_for`` may be on their way while
    the pass goes on, None for any number. Returns its last task."""
    left: list[int] = []
    blocked = None
    order = range(len(units) - 1, -1, -1)
    gathers.begin(order)
    for number in order:
        unit = units[number]
        moved = 2 * unit.elements * element / machine.memory_bandwidth  # gradients move into their bucket
        last = step.add(
            "backward", 0, "compute", COMPUTE, unit.backward + moved + gathers.hooks,
            after=[last, gathers.need(number, last), blocked], name=unit.name,
            holds=unit.elements * element * holds_gradients, frees=unit.kept + gathers.size(number),
        )  # fmt: skip
        for bucket in cut:
            if bucket.last == number:
                left.append(leave(bucket, last))
        if waits_for is not None and len(left) > waits_for:
            blocked = left[-1 - waits_for]
    return last
