"""A communicator: a queue of operations, which a thread of its own carries out one entry after another."""

from __future__ import annotations

import _thread
import queue
import random
import threading
import time

import torch.distributed as dist

from ringzero.strict import streams, watching
from ringzero.strict.accesses import StrictError
from ringzero.strict.exchange import Exchange
from ringzero.strict.pending import Pending
from ringzero.strict.works import StrictWork

LONGEST_DELAY_SECONDS = 0.0005


class Communicator:
    """The queue of ``rank``. ``seed`` decides how long an operation waits before it runs, and which read their inputs
    when they are issued.
    """

    def __init__(self, gloo: dist.ProcessGroupGloo, rank: int, seed: int):
        self._random = random.Random(f"{seed} {rank}")
        self._stream = streams.Stream()
        self._batch: list[Pending] | None = None  # between the start and the end of one: its operations so far
        self._issuers: dict[int, str] = {}  # thread -> its first line, of those that are alive
        self._last_issuer: int | None = None
        self._queue: queue.SimpleQueue[list[Pending]] = queue.SimpleQueue()
        # Not a threading.Thread: it does nothing of its own accord, so who counts threads need not count it.
        _thread.start_new_thread(self._carry_out, (Exchange(gloo, rank),))

    def _carry_out(self, exchange):
        delays = random.Random(self._random.random())
        with watching.quietly():
            while True:
                entry = self._queue.get()
                time.sleep(delays.uniform(0, LONGEST_DELAY_SECONDS))
                exchange.carry(entry)
                del entry  # and what it received, which would else be kept until the next one comes

    def issue(self, pending: Pending, blocking: bool = False) -> StrictWork | None:
        """Put an operation into the queue; no work where the call is ``blocking``. Raises StrictError if what it uses
        is in use.
        """
        self._check_thread(pending)
        if self._batch is not None:
            self._batch.append(pending)
            return StrictWork([pending])
        work = self._send_off([pending])
        if blocking:
            work.wait()
            return None
        return work

    def begin_batch(self) -> None:
        """Operations that are issued from now on are one entry."""
        self._batch = []

    def end_batch(self) -> StrictWork | None:
        """Put the entry into the queue, if anything was issued."""
        entry, self._batch = self._batch, None
        return self._send_off(entry) if entry else None

    def _send_off(self, entry):
        here = streams.current_stream()
        here.next()
        self._stream.wait_stream(here)
        number = self._stream.next()
        for pending in entry:
            watching.used(pending, self._stream, number)
            pending.clock, pending.number = self._stream.now(), (self._stream.number, number)
        with watching.quietly():
            for pending in entry:
                if pending.works_in_place() or self._random.random() < 0.5:
                    pending.read_inputs()
                pending.poison_outputs()
        watching.issued(entry)
        self._queue.put(entry)
        return StrictWork(entry)

    def _check_thread(self, pending):
        """Two threads may not take turns: in the next run the order could be another one."""
        me = threading.get_ident()
        alive = {thread.ident for thread in threading.enumerate()}
        self._issuers = {thread: line for thread, line in self._issuers.items() if thread in alive}
        if me in self._issuers and self._last_issuer not in (me, None) and self._last_issuer in self._issuers:
            raise StrictError(
                f"two threads use one communicator, in an order that only chance decides: one in {pending}, the other "
                f"at {self._issuers[self._last_issuer]}; give each thread a process group, or issue from one thread"
            )
        self._issuers.setdefault(me, pending.place)
        self._last_issuer = me
