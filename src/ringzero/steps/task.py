"""A training step as data: what each rank computes and sends, in which order, and what waits for what.

A task is an ``Operation`` that has no times yet. It stands in a queue of its rank. A rank does the tasks of one queue
one after another, as a GPU does what is in a stream, and those of different queues side by side. A queue uses one
resource of the rank: its cores, its network card, its link to the host's memory. A collective sends and receives at
once, so it uses the card in both directions; a message uses one, "network" where it leaves and "arriving".
"""

from collections.abc import Iterable
from typing import NamedTuple

COMPUTE, NETWORK, ARRIVING, COPY, HOST = "compute", "network", "arriving", "copy", "host"  # resources


class Task(NamedTuple):
    """What one rank does once.

    ``kind``      as an ``Operation``'s: "forward", "all_reduce", ...
    ``name``      of what: "layer 3", "bucket 0"
    ``seconds``   that it takes alone
    ``beside``    the same while its rank computes, where that is known; and ``slows``: how many times as long computing
                  takes meanwhile
    ``after``     numbers of tasks, of any rank, that end before it begins
    ``meeting``   tasks with the same number begin together and end together: a collective, a send and its receive
    ``holds``     bytes that the rank takes when it begins; negative where it gives back what others took
    ``frees``     bytes that it gives back when it ends
    """

    kind: str
    rank: int
    queue: str
    resource: str
    seconds: float
    name: str = ""
    after: tuple[int, ...] = ()
    meeting: int | None = None
    bytes: int = 0
    peer: int | None = None
    holds: float = 0.0
    frees: float = 0.0
    beside: float | None = None
    slows: float = 1.0


class Step:
    """The tasks of a training step, in an order in which each queue is worked through; numbered from 0.

    ``base``  bytes that a rank holds before it begins and after it ends: parameters, optimizer states
    """

    def __init__(self, name: str, base: float = 0.0):
        self.name, self.base = name, base
        self.tasks: list[Task] = []
        self._meetings = 0

    def add(self, kind: str, rank: int, queue: str, resource: str, seconds: float, *,
            after: Iterable[int | None] = (), **details: object) -> int:  # fmt: skip
        """Append a task; None in ``after`` is left out. Returns its number."""
        numbers = tuple(number for number in after if number is not None)
        self.tasks.append(Task(kind, rank, queue, resource, seconds, after=numbers, **details))  # type: ignore[arg-type]
        return len(self.tasks) - 1

    def meeting(self) -> int:
        """A new number for tasks that begin and end together."""
        self._meetings += 1
        return self._meetings - 1

    @property
    def ranks(self) -> list[int]:
        return sorted({task.rank for task in self.tasks})
