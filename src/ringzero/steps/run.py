"""Run a training step on paper: when each task begins and ends.

A task runs once its queue is free, what it comes after has ended, and all of its meeting can begin. Two things make it
slower than alone. Tasks that use the same resource of a rank share it in equal parts. And a collective that runs on the
cores that multiply slows them, and is slowed (``Task.slows`` and ``Task.beside``).
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ringzero.record.operation import COMMUNICATION, Operation
from ringzero.record.operation import COMPUTE as COMPUTE_STREAM
from ringzero.record.spans import Spans, length, union, without
from ringzero.steps.task import COMPUTE, HOST, Step, Task


@dataclass(frozen=True)
class Timed:
    """A step with times, in seconds from its beginning: task i ran from ``begins[i]`` to ``ends[i]``."""

    step: Step
    begins: tuple[float, ...]
    ends: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Of the whole step: until the last task of the last rank has ended."""
        return max(self.ends, default=0.0)

    def computing(self, rank: int) -> float:
        """Seconds in which the rank computes, or its host does for it."""
        return length(self._spans(rank, computes=True))

    def exposed(self, rank: int) -> float:
        """Seconds in which the rank communicates and computes nothing: what overlap did not hide."""
        return length(without(self._spans(rank, computes=False), self._spans(rank, computes=True)))

    def bubble(self, rank: int) -> float:
        """The share of the step in which the rank neither computes nor communicates."""
        return 1 - (self.computing(rank) + self.exposed(rank)) / self.seconds

    def memory(self, rank: int) -> list[tuple[float, float]]:
        """``[(seconds, bytes from then on), ...]``, in order of time."""
        changes = []
        for task, begin, end in zip(self.step.tasks, self.begins, self.ends, strict=True):
            if task.rank == rank:
                changes += [(begin, 1, task.holds)] if task.holds else []
                changes += [(end, 0, -task.frees)] if task.frees else []  # what ends at a moment frees first
        held, curve = self.step.base, [(0.0, self.step.base)]
        for time, _, change in sorted(changes):
            held += change
            curve.append((time, held))
        return curve

    def peak_memory(self, rank: int) -> float:
        """The most bytes that the rank holds at a time."""
        return max(held for _, held in self.memory(rank))

    @cached_property
    def operations(self) -> list[Operation]:
        """What ``figures.timeline`` draws. A communication is waited for from when its rank computes no more."""
        whole = [(0.0, self.seconds)]
        idle = {rank: without(whole, self._spans(rank, computes=True)) for rank in self.step.ranks}
        return [
            self._operation(number, task, begin, end, idle[task.rank])
            for number, (task, begin, end) in enumerate(zip(self.step.tasks, self.begins, self.ends, strict=True))
        ]

    def _operation(self, number: int, task: Task, begin: float, end: float, idle: Spans) -> Operation:
        wait = None
        if not _computes(task):
            wait = next((max(begin, first) for first, last in idle if first < end <= last), end)
        stream = COMPUTE_STREAM if _computes(task) else COMMUNICATION
        return Operation(
            task.kind, task.rank, begin, wait, end, stream, task.bytes, peer=task.peer, line=task.name, sequence=number
        )

    def _spans(self, rank: int, computes: bool) -> Spans:
        return union(
            (begin, end)
            for task, begin, end in zip(self.step.tasks, self.begins, self.ends, strict=True)
            if task.rank == rank and _computes(task) == computes
        )


def run(step: Step) -> Timed:
    """Give every task of ``step`` its times.

    Raises ValueError for a step in which tasks wait for each other forever, with their names.
    """
    return _Clock(step).run()


class _Clock:
    """Time goes on from one moment to the next at which a task begins or ends."""

    def __init__(self, step: Step):
        self.step = step
        self.queues: dict[tuple[int, str], deque[int]] = defaultdict(deque)
        self.members: dict[int, list[int]] = defaultdict(list)  # of each meeting; a task alone is a meeting of one
        self.then: dict[int, list[int]] = defaultdict(list)  # tasks that wait for a task
        for number, task in enumerate(step.tasks):
            self.queues[task.rank, task.queue].append(number)
            self.members[self._meeting(number)].append(number)
            for before in task.after:
                self.then[before].append(number)
        self.waits_for = [set(task.after) for task in step.tasks]
        self.begins, self.ends = ([0.0] * len(step.tasks) for _ in range(2))
        self.left: dict[int, float] = {}  # of each meeting that runs: the seconds that it would still take alone

    def run(self) -> Timed:
        now = 0.0
        self._begin([queue[0] for queue in self.queues.values()], now)
        while self.left:
            alone = self._speeds()
            needs = {meeting: left / alone[meeting] for meeting, left in self.left.items()}
            passes = min(needs.values())
            now += passes
            for meeting in needs:
                self.left[meeting] -= passes * alone[meeting]
            self._begin(self._end([meeting for meeting, need in needs.items() if need <= passes], now), now)
        if stuck := [queue[0] for queue in self.queues.values() if queue]:
            tasks = [self.step.tasks[number] for number in stuck]
            names = ", ".join(f"{task.kind} {task.name} of rank {task.rank}" for task in tasks)
            raise ValueError(f"the tasks of {self.step.name} wait for each other: {names}")
        return Timed(self.step, tuple(self.begins), tuple(self.ends))

    def _meeting(self, number: int) -> int:
        meeting = self.step.tasks[number].meeting
        return -1 - number if meeting is None else meeting

    def _speeds(self) -> dict[int, float]:
        """Of each meeting that runs: 1 is as fast as alone."""
        running: dict[int, list[Task]] = defaultdict(list)
        for meeting in self.left:
            for number in self.members[meeting]:
                running[self.step.tasks[number].rank].append(self.step.tasks[number])
        return {
            meeting: min(self._speed(self.step.tasks[number], running) for number in self.members[meeting])
            for meeting in self.left
        }

    def _speed(self, task: Task, running: Mapping[int, Sequence[Task]]) -> float:
        beside = running[task.rank]
        slower = float(sum(each.resource == task.resource for each in beside))
        if task.resource == COMPUTE:
            slower *= prod(each.slows for each in beside)  # each takes its share of what computes
        elif task.beside is not None and task.seconds and any(each.resource == COMPUTE for each in beside):
            slower *= task.beside / task.seconds
        return 1 / slower

    def _end(self, meetings: list[int], now: float) -> list[int]:
        """Returns tasks that may be able to begin now."""
        next_ones = []
        for meeting in meetings:
            del self.left[meeting]
            for number in self.members[meeting]:
                self.ends[number] = now
                queue = self.queues[self.step.tasks[number].rank, self.step.tasks[number].queue]
                queue.popleft()
                next_ones += [queue[0]] if queue else []
                for later in self.then[number]:
                    self.waits_for[later].discard(number)
                    next_ones.append(later)
        return next_ones

    def _begin(self, numbers: list[int], now: float) -> None:
        for number in numbers:
            meeting = self._meeting(number)
            if meeting not in self.left and all(map(self._can_begin, self.members[meeting])):
                self.left[meeting] = max(self.step.tasks[member].seconds for member in self.members[meeting])
                for member in self.members[meeting]:
                    self.begins[member] = now

    def _can_begin(self, number: int) -> bool:
        task = self.step.tasks[number]
        queue = self.queues[task.rank, task.queue]
        return bool(queue) and queue[0] == number and not self.waits_for[number]


def _computes(task: Task) -> bool:
    return task.resource in (COMPUTE, HOST)
