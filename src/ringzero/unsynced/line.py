"""A line between two ranks, which carries messages at any time: no rank waits for the others to call the same thing.

Each end of a line has three threads. One sends, the most urgent message first. One receives, and calls what deals with
the message. One looks whether the peer is there, because a message that was half-way when its other end died never ends
by itself (``presence``). Lines talk through the host's memory, by gloo: NCCL wants all ranks to start the same
operations in the same order.
"""

import math
import queue
import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from itertools import count

import torch
import torch.distributed as dist
from torch import Tensor

from ringzero.collectives.run import device_of
from ringzero.unsynced.presence import LOOK_SECONDS, why_gone

HEAD_BYTES = 24  # three int64
POSTED = 4  # receives that wait for messages: gloo sends nothing before it knows where the message goes
PATIENCE = timedelta(days=365)  # a line may be quiet for as long as the program runs
_LAST = -1  # the kind of the messages after which a line is closed

Head = tuple[int, int, int]  # what a message is and what it is about: (kind, two numbers that the kind explains)


def through_the_host(ranks_of: dist.ProcessGroup) -> dist.ProcessGroup:
    """A new group of the same ranks that talk through the host's memory. All ranks must ask for it together."""
    config = str(dist.get_backend_config(ranks_of))
    gloo = config if device_of(ranks_of).type == "cpu" and "strict" not in config else "gloo"
    made = dist.new_group(dist.get_process_group_ranks(ranks_of), timeout=PATIENCE, backend=gloo)
    assert isinstance(made, dist.ProcessGroup)  # this rank is one of them
    return made


class Line:
    """This rank's end of the line to rank ``peer`` of ``group``. Nothing travels before ``open()``.

    ``longest``   elements of the longest payload; payloads are 1-D and of one ``dtype``, the same at both ends
    ``arrived(head, payload)``  deals with a message, in the receiving thread; the memory of ``payload``, which is empty
                  if there was none, is used again afterwards
    ``lost(why)``  the peer is gone; called once
    ``failed(why)``  ``arrived`` raised, which is this rank's own failure; the message is dropped
    """

    def __init__(
        self,
        peer: int,
        group: dist.ProcessGroup,
        longest: int,
        dtype: torch.dtype,
        arrived: Callable[[Head, Tensor], None],
        lost: Callable[[Exception], None],
        failed: Callable[[Exception], None],
    ):
        self._peer, self._group, self._longest, self._dtype = peer, group, longest, dtype
        self._arrived, self._tell_lost, self._failed = arrived, lost, failed
        self._waiting: queue.PriorityQueue = queue.PriorityQueue()
        self._in_turn = count()  # messages of one priority leave in the order in which they were given
        self._is_lost = threading.Lock()
        self._over = threading.Semaphore(0)  # one from each thread that has ended; both at once when the peer is lost
        self._closed = threading.Event()
        loops = self._send_all, self._receive_all, self._look
        self._threads = [threading.Thread(target=loop, daemon=True) for loop in loops]

    def open(self) -> None:
        """Begin to send and to receive. Call it when all that ``arrived`` uses is there, other lines too."""
        for thread in self._threads:
            thread.start()

    def send(self, head: Head, payload: Tensor | None = None, priority: float = 0) -> None:
        """Have a message leave before those of a higher ``priority`` number. ``payload`` is copied."""
        parts = [torch.tensor(head, device="cpu").view(torch.uint8)]
        if payload is not None:
            parts.append(payload.view(torch.uint8))
        self._waiting.put((priority, next(self._in_turn), head, torch.cat(parts)))

    def close(self) -> None:
        """Send what waits, and then that no more comes. Returns when the peer has said the same, or is lost."""
        for _ in range(POSTED):
            self.send((_LAST, 0, 0), priority=math.inf)
        for _ in range(2):  # not joined: one may wait for ever, for a message that was half-way when the peer died
            self._over.acquire()
        self._closed.set()

    def _send_all(self) -> None:
        last = 0
        try:
            while last < POSTED and not self._is_lost.locked():
                _, _, (kind, *_), message = self._waiting.get()
                last += kind == _LAST
                dist.send(message, group_dst=self._peer, group=self._group)
        except Exception as error:
            self._lose(error)
        self._over.release()

    def _receive_all(self) -> None:
        try:
            posted = deque(self._post(self._room()) for _ in range(POSTED))
            while posted:
                work, message = posted.popleft()
                work.wait()
                kind, about, number = message[:HEAD_BYTES].view(torch.int64).tolist()
                if kind != _LAST:
                    self._deal_with((kind, about, number), message[HEAD_BYTES:].view(self._dtype))
                    posted.append(self._post(message))
        except Exception as error:
            self._lose(error)
        self._over.release()

    def _look(self) -> None:
        while not self._closed.wait(LOOK_SECONDS) and not self._is_lost.locked():
            if (error := why_gone(self._group, self._peer)) is not None:
                self._lose(error)

    def _deal_with(self, head: Head, payload: Tensor) -> None:
        try:
            self._arrived(head, payload)
        except Exception as error:
            self._failed(error)

    def _room(self) -> Tensor:
        return torch.empty(HEAD_BYTES + self._longest * self._dtype.itemsize, dtype=torch.uint8, device="cpu")

    def _post(self, message: Tensor) -> tuple[dist.Work, Tensor]:
        """A message may be shorter than the room for it: gloo does not mind."""
        work = dist.irecv(message, group_src=self._peer, group=self._group)
        assert work is not None
        return work, message

    def _lose(self, error: Exception) -> None:
        if self._is_lost.acquire(blocking=False):  # several threads find out
            self._tell_lost(error)
            self._over.release(2)
