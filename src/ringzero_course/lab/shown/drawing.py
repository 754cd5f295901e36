"""Draw what a student's own collective did, from the messages its ranks sent.

The function runs on coded input (``runs.codes``), so the first element of a message tells which piece of the buffer it
carries and which ranks' contributions are in it. A message that was sent after another had arrived belongs to a later
round. The result is a ``Schedule``, as the library's own algorithms are, and is drawn and priced like those.
"""

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ringzero.collectives import Round, Schedule
from ringzero_course.lab import failure, handle
from ringzero_course.lab.execute import execute
from ringzero_course.lab.handle import Handle
from ringzero_course.lab.runs import Case, Run, decode

if TYPE_CHECKING:
    from ringzero_course.figures import Figure


class NothingToDrawError(Exception):
    """The function did not get far enough; the message is for the student."""


@dataclass(frozen=True)
class Note:
    """A sentence where a figure should be."""

    text: str

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return f"<p>{html.escape(self.text)}</p>"


def draw(function: str | Callable, *, world_size: int, numel: int = 840, **options: Any) -> "Figure | Note":
    """The space-time figure of ``function(tensor, **options)`` on ``world_size`` ranks, or why there is none.

    ``function`` is a name in the notebook or a function. It runs on the CPU, whatever the device of the lab.
    """
    from ringzero_course.figures import spacetime

    try:
        schedule, _ = observe(handle.of(function), world_size, numel, options)
    except NothingToDrawError as nothing:
        return Note(str(nothing))
    return spacetime(schedule)


def observe(function: Handle, world_size: int, numel: int, options: dict) -> tuple[Schedule, list[float]]:
    """``(schedule, shares)`` of what the function did: ``shares[c]`` is the part of the buffer in chunk c.

    Raises NothingToDrawError with the reason if it did not get to its end.
    """
    name = function.name
    run = Run(Case(world_size, numel, torch.int64, (), options, watched=True))
    execute([run], [function], None, "cpu")
    problem = run.problem or failure.unmatched(run)
    if problem:
        raise NothingToDrawError(f"Nothing to draw: {problem}" + ("" if problem.endswith(".") else "."))
    transfers = _transfers(run)
    starts = sorted({element for _, _, element, *_ in transfers}) or [0]
    sizes: dict[int, int] = {} if transfers else {0: numel}
    for _, _, element, count, _, _ in transfers:
        sizes[element] = max(count, sizes.get(element, 0))
    by_round: dict[int, list] = {}
    for src, dst, element, _, reduce, number in transfers:
        by_round.setdefault(number, []).append((src, dst, starts.index(element), reduce))
    rounds = tuple(Round(*zip(*by_round[number], strict=True)) for number in sorted(by_round))
    collective = "broadcast" if "root" in options else "all_reduce"
    schedule = Schedule(collective, name, world_size, len(starts), rounds, options.get("root"))
    return schedule, [sizes[element] / numel for element in starts]


def _transfers(run):
    """``(src, dst, first element, elements, reduce, round)`` of every message that is not empty, rounds from 1."""
    received = [[] for _ in range(run.world_size)]  # (when complete, round) of what a rank has received
    last_sent, found = [0] * run.world_size, []
    for op, arrival in sorted(run.messages(), key=lambda message: message[0].start):
        src, dst = op.rank, arrival.rank
        if not op.bytes:
            continue
        where = decode(op.head)
        if where is None:
            raise NothingToDrawError(
                f"Nothing to draw: rank {src} sent something to rank {dst} that is not a sum of the ranks' tensors."
            )
        before = [number for complete, number in received[src] if complete <= op.start]
        earlier = [number for _, number in received[dst]]
        number = 1 + max([0, last_sent[src], *before, *earlier])
        last_sent[src] = number
        received[dst].append((arrival.end, number))
        element, contributors = where
        reduce = "root" not in run.case.options and len(contributors) < run.world_size
        found.append((src, dst, element, op.bytes // run.element_size, reduce, number))
    return found


def price(schedule: Schedule, shares: list[float], size: float, alpha: float, beta: float) -> float:
    """Seconds for a buffer of ``size`` bytes if each round takes as long as its largest message."""
    return sum(alpha + max(shares[t.chunk] for t in round) * size * beta for round in schedule.rounds)
