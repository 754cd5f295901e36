"""Where the time of a job goes whose ranks may be lost."""

import time
from dataclasses import dataclass


@dataclass
class Spent:
    """Where a rank's wall time went, in seconds, since it asked to be let in.

    ``useful`` went into steps that count, forward and backward passes included; ``lost`` into steps that did not, and
    into steps that were undone by going back to a checkpoint; ``reconfiguring`` into finding a quorum and cutting the
    shards anew; ``saving`` into checkpoints.
    """

    useful: float = 0.0
    lost: float = 0.0
    reconfiguring: float = 0.0
    saving: float = 0.0

    @property
    def goodput(self) -> float:
        """The useful part of the wall time."""
        return self.useful / ((self.useful + self.lost + self.reconfiguring + self.saving) or 1.0)


class Stopwatch:
    """Fills in ``spent``: each call says where the time since the call before went."""

    def __init__(self) -> None:
        self.spent, self._since = Spent(), time.monotonic()
        self._seconds: dict[int, float] = {}  # useful ones, by step

    def count(self, what: str) -> None:
        """As ``what``, a field of ``Spent``."""
        self._add(what, self._lap())

    def count_step(self, step: int) -> None:
        """As useful, unless the step is undone later."""
        self._seconds[step] = self._lap()
        self._add("useful", self._seconds[step])

    def undo(self, first: int) -> None:
        """Steps from number ``first`` on are undone: their time is lost."""
        for step in [step for step in self._seconds if step >= first]:
            seconds = self._seconds.pop(step)
            self._add("useful", -seconds)
            self._add("lost", seconds)

    def _add(self, what: str, seconds: float) -> None:
        setattr(self.spent, what, getattr(self.spent, what) + seconds)

    def _lap(self) -> float:
        since, self._since = self._since, time.monotonic()
        return self._since - since
