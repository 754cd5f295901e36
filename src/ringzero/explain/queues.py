"""Would this hang on NCCL? What ranks issued, put through queues that behave as NCCL's communicators do.

On NCCL a rank only *issues* an operation; the GPU runs it later. A communicator runs one operation after another, in
the order of issue. A send or receive that stands alone is an operation of its own: it is done only when the other end
runs too. Messages of one ``batch_isend_irecv`` are one operation, and all of them run at once. gloo has none of these
rules, so a program that is right there may hang on NCCL. Tags do not exist: messages from one rank to another meet in
order.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ringzero.record.operation import COMMUNICATION, HEADER, Operation

Entry = list[Operation]  # operations of one rank that run at once


class Queues:
    """What comes of the operations of all ranks, ``ranks``, each in the order of issue.

    ``one_queue``: as if a rank had a single queue for all its process groups. NCCL has one for each, but asks that
    ranks issue in one order even then: kernels of two communicators may not find room on the GPU side by side.
    """

    def __init__(self, ranks: Sequence[Iterable[Operation]], one_queue: bool = False):
        self._all = range(len(ranks))
        self._entries: dict[int, list[Entry]] = {}  # by queue
        self._numbers: dict[int, tuple] = {}  # operation -> what it is on all ranks: the k-th of its channel or group
        self._ends: dict[tuple, list[tuple[int, Operation]]] = {}  # number -> its ends: (queue, operation)
        self._rank: list[int] = []  # of each queue
        count: Counter = Counter()
        queues: dict[tuple, int] = {}
        meetings: dict[tuple, int] = {}
        for rank, operations in enumerate(ranks):
            for op in operations:
                if op.stream != COMMUNICATION or op.kind == HEADER:
                    continue
                name = meetings.setdefault(_meets(op), len(meetings))
                queue = queues.setdefault((rank,) if one_queue else (rank, op.group, op.members), len(queues))
                if queue == len(self._rank):
                    self._rank.append(rank)
                number = self._numbers[id(op)] = (name, count[rank, name])
                self._ends.setdefault(number, []).append((queue, op))
                count[rank, name] += 1
                entries = self._entries.setdefault(queue, [])
                if entries and _together(op) is not None and _together(op) == _together(entries[-1][0]):
                    entries[-1].append(op)
                else:
                    entries.append([op])
        self._at = dict.fromkeys(self._entries, 0)
        self._done: set = set()  # numbers of messages and collectives whose ends all ran
        while self._advance():
            pass

    def is_done(self, op: Operation) -> bool:
        """Whether this one of the operations ends."""
        return op.kind == HEADER or self._numbers[id(op)] in self._done

    def stuck(self) -> Iterator[Operation]:
        """What runs and never ends: what stands at the heads of queues."""
        return (op for _, op in self._running() if not self.is_done(op))

    def ends(self) -> Iterator[list[Operation]]:
        """The operations that must run at once: both ends of a message, or a collective on all ranks."""
        return ([op for _, op in ends] for ends in self._ends.values())

    def behind(self, op: Operation) -> list[tuple[Operation, Operation]]:
        """The other ends of an ``op`` that stand behind something else in their queues: ``(end, what it waits for)``"""
        found = []
        for queue, end in self._ends[self._numbers[id(op)]]:
            head = self._head(queue)
            if head and not any(each is end for each in head):
                found.append((end, next(each for each in head if not self.is_done(each))))
        return found

    def _advance(self):
        """Whether anything could go on: run what stands at the heads, and take out entries of which all is done."""
        running, wanted = {}, {}  # the ranks that run a number, and those that must run it at once
        for queue, op in self._running():
            number = self._numbers[id(op)]
            if number not in running:
                wanted[number] = {op.rank, op.peer_rank} if op.is_message else set(op.members or self._all)
            running.setdefault(number, set()).add(self._rank[queue])
        ran = {number for number, ranks in running.items() if ranks >= wanted[number]} - self._done
        self._done |= ran
        for queue, entries in self._entries.items():
            while self._at[queue] < len(entries) and all(
                self._numbers[id(op)] in self._done for op in entries[self._at[queue]]
            ):
                self._at[queue] += 1
        return bool(ran)

    def _running(self):
        for queue in self._entries:
            for op in self._head(queue):
                yield queue, op

    def _head(self, queue):
        return self._entries[queue][self._at[queue]] if self._at[queue] < len(self._entries[queue]) else []


def _together(op):
    """What operations that run at once have in common, or None. ringzero's own collectives group a round's messages."""
    return op.batch if op.call is None else ("call", op.call)


def _meets(op):
    """What an operation has in common with its other ends: the channel of a message, or the group of a collective."""
    if not op.is_message:
        return ("collective", op.group, op.members)
    ends = (op.rank, op.peer_rank) if op.kind == "send" else (op.peer_rank, op.rank)
    return ("message", op.group, *ends)


def another_order(ranks: Sequence[Iterable[Operation]]) -> str | None:
    """None if all ranks issued in one order, over all their process groups; else a sentence about two that did not."""
    queues = Queues(ranks, one_queue=True)
    for op in queues.stuck():
        for end, first in queues.behind(op):
            return (
                f"ranks issue in different orders: rank {op.rank} begins with {op.kind} ({op.line}), rank {end.rank} "
                f"with {first.kind} ({first.line}) and comes to the other one later ({end.line}). These are different "
                "process groups. A GPU may not have room for both at once, so on NCCL all ranks must issue in one order"
            )
    return None
