"""Whether a rank is still there, and a wait that ends when it is not.

gloo raises an error when the other end of a message has died. But if the message was half-way then, gloo raises nothing
and the wait never ends. A new message to or from the dead rank raises an error at once. So while a wait takes long, ask
for a message that nobody sends (``NOBODYS_TAG``): that raises if the rank is gone, and does nothing if it is there.
"""

import _thread
import queue
from typing import Any

import torch
import torch.distributed as dist

from ringzero.record.wire import NOBODYS_TAG

LOOK_SECONDS = 0.5  # between two questions whether the other end is there


def why_gone(group: dist.ProcessGroup, peer: int) -> RuntimeError | None:
    """What gloo says of ``peer``, a rank of ``group``, if its process has ended; None while it lives."""
    unrecorded = getattr(group, "unrecorded", group)
    try:
        unrecorded.recv([torch.empty(1, device="cpu")], peer, NOBODYS_TAG)
    except RuntimeError as error:
        return error
    return None


class Waiter:
    """Waits for messages in a thread of its own, which it leaves behind where a message will never come."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._works: queue.SimpleQueue = queue.SimpleQueue()
        self._ends: queue.SimpleQueue = queue.SimpleQueue()
        # Not a ``threading.Thread``: a deadlock is proved only when all of those wait, and this one waits for ever.
        _thread.start_new_thread(_wait_for_each, (self._works, self._ends))

    def wait(self, work: Any, group: dist.ProcessGroup, peer: int) -> None:
        """Wait for a message between this rank and ``peer``. Raises RuntimeError if it fails, or ``peer`` is gone."""
        getattr(work, "wait_by", lambda wait: wait(work))(lambda inner: self._wait(inner, group, peer))

    def _wait(self, work, group, peer):
        self._works.put(work)
        while True:
            try:
                error = self._ends.get(timeout=LOOK_SECONDS)
                break
            except queue.Empty:
                if (error := why_gone(group, peer)) is not None:
                    self._begin()
                    break
        if error is not None:
            raise error
        return True


def _wait_for_each(works, ends):
    while True:
        try:
            works.get().wait()
            ends.put(None)
        except RuntimeError as error:
            ends.put(error)
