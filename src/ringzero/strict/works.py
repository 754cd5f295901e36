"""What the calls of a strict process group return: work handles, and futures."""

from __future__ import annotations

import torch
import torch.distributed as dist

from ringzero.strict import streams, watching
from ringzero.strict.pending import Pending


class StrictWork(dist.Work):
    """What an asynchronous call returns; of a batch there is one."""

    def __init__(self, entry: list[Pending]):
        super().__init__()
        self._entry = entry
        self._outputs = [output for pending in entry for output in pending.given]

    def wait(self, timeout=None):
        """The current stream waits."""
        for pending in self._entry:
            pending.wait()
            streams.learn(streams.current_stream().clock, pending.clock)
        return True

    def is_completed(self):
        """Whether it is over; then the program itself may rely on it."""
        over = all(pending.is_over() for pending in self._entry)
        if over:
            self.wait()
            self.synchronize()
        return over

    def synchronize(self):
        for pending in self._entry:
            with watching.quietly():  # torch's own DDP asks from C++, where nothing else says that this is ours
                pending.settle()
            streams.host_learns(pending.clock)

    def is_success(self):
        return self.is_completed()

    def exception(self):
        return None

    def result(self):
        self.wait()
        self.synchronize()
        return self._outputs

    def get_future(self):
        """A future that is complete already. That the program waits is noted when it calls the future's ``wait``."""
        outputs = self.result()
        for pending in self._entry:
            pending.has_not_waited()
        return OverAtOnce(self._entry, outputs)


class OverAtOnce(torch.futures.Future):
    """A complete future, which notes when the program waits for it."""

    def __init__(self, entry: list[Pending], outputs: list[torch.Tensor]):
        super().__init__()
        self._entry = entry
        self.set_result(outputs)

    def wait(self):
        for pending in self._entry:
            pending.wait()
        return super().wait()
