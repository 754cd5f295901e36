"""The work handles that a recording process group returns: they note when the program waited, and until when."""

import contextlib
import sys
from functools import partial

import torch
import torch.distributed as dist

from ringzero.record import sources
from ringzero.record.eager import none_compiled
from ringzero.record.trace_file import CLOSED


class TracedMessage:
    """The handle of a send or receive. Created for each message, so it is a slotted wrapper and not a ``dist.Work``."""

    __slots__ = ("_offset", "_recorder", "_work")

    def __init__(self, work, recorder, offset):
        self._work, self._recorder, self._offset = work, recorder, offset

    def wait(self, *timeout, **named):
        return self.wait_by(lambda work: work.wait(*timeout, **named))

    def wait_by(self, wait):
        """As ``wait``, where ``wait(work)`` waits for gloo's own handle."""
        offset, self._offset = self._offset, None  # waiting again changes nothing
        self._recorder.begins_to_wait(offset)  # not ``waited``: this is done for each message
        try:
            done = wait(self._work)
        except Exception:
            self._recorder.has_failed(offset)
            raise
        self._recorder.has_ended(offset)
        return done

    def __getattr__(self, name):
        return getattr(self._work, name)

    def __del__(self):
        if self._offset is not None:
            self._recorder.was_dropped(self._offset)


class TracedWork(dist.Work):
    """The handle of a collective. It is a ``dist.Work``, as torch's C++ code requires."""

    def __init__(self, work, recorder, offset):
        super().__init__()
        self._work, self._recorder, self._offset = work, recorder, offset

    wait, wait_by, __getattr__ = TracedMessage.wait, TracedMessage.wait_by, TracedMessage.__getattr__

    def is_completed(self):
        """Whether it is over; then the program may use the result without ``wait``."""
        over = self._work.is_completed()
        for offset in self._take() if over and self._work.is_success() else ():
            self._recorder.has_ended(offset)
        return over

    def _take(self):
        """Where it is recorded, once: waiting again changes nothing."""
        offset, self._offset = self._offset, None
        return (offset,)

    def is_success(self):
        return self._work.is_success()

    def exception(self):
        return self._work.exception()

    def source_rank(self):
        return self._work.source_rank()

    def result(self):
        return self._work.result()

    def get_future(self):
        offset, self._offset = self._offset, None
        if offset is None or torch.cuda.is_initialized():  # a future of ours would have to know the streams
            return self._work.get_future()
        self._recorder.given_to_torch(offset)
        future = self._work.get_future()
        future.add_done_callback(partial(_note_end, self._recorder, offset))
        # C++ gets the backend's own: it takes the error of a future made in Python for a value, and crashes.
        caller = sys._getframe().f_back
        by_torch = caller is None or sources.is_package_code(caller.f_code.co_filename)
        return future if by_torch else TracedFuture(future, self._recorder, offset)


def _note_end(recorder, offset, future):
    """Note that a future is complete, or failed."""
    with contextlib.suppress(*CLOSED):
        try:
            future.value()
        except Exception:
            recorder.has_failed(offset)
        else:
            recorder.has_ended(offset)


class TracedFuture(torch.futures.Future):
    """The future of a collective, which notes when ``wait`` is called."""

    def __init__(self, future, recorder, offset):
        super().__init__()
        self._recorder, self._offset = recorder, offset
        future.add_done_callback(self._complete)

    def _complete(self, future):
        try:
            value = future.value()
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(value)

    def wait(self):
        return self._recorder.waited((self._offset,), super().wait)


class TracedBatch(TracedWork):
    """The one handle of messages that went out together; ``parts`` are where they are recorded."""

    def __init__(self, work, recorder, parts):
        super().__init__(work, recorder, None)
        self._parts = parts

    def wait(self, *timeout, **named):
        return self._recorder.waited(self._take(), partial(self._work.wait, *timeout, **named))

    def _take(self):
        parts, self._parts = self._parts, ()
        return parts


for _class in (TracedMessage, TracedWork, TracedFuture, TracedBatch):
    none_compiled(_class)
