"""The communication executor: what communicates beside the computation, one queue for each process group.

A queue runs its jobs one after another, in the order of ``submit``. All ranks must submit the same jobs to a group in
the same order, or their messages do not meet; ``in_order`` and, for parameters, ``zero.gather`` see to it.

On the CPU a queue is a thread. On GPUs it is a stream: the job is issued at once, by the thread that submits it, and
the GPU runs it when all that was computed before has ended. So the order in which ranks issue is that of the program,
over all groups, and no chance decides it.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from ringzero.collectives.run import needs_the_host
from ringzero.record import wire

Job = Callable[[], object]


class Done(Protocol):
    """What ``submit`` returns: ``result()`` waits for the end of the job, and raises what it raised."""

    def result(self) -> Any: ...


class Queue(Protocol):
    def submit(self, job: Job, after: Job | None = None) -> Done: ...


class Thread:
    """A thread of its own runs the jobs; ``after`` comes right after its job."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    def submit(self, job: Job, after: Job | None = None) -> Future:
        return self._thread.submit(_both, job, after)


class Stream:
    """A stream beside the caller's runs the jobs; ``after`` comes when the caller waits.

    Only then may the caller free what the job uses: before, the GPU may not have come so far.
    """

    def __init__(self, device: torch.device):
        self._module = torch.get_device_module(device)
        self._stream, self._device = self._module.Stream(device, priority=-1), device

    def submit(self, job: Job, after: Job | None = None) -> "OnStream":
        self._stream.wait_stream(self._module.current_stream(self._device))
        with self._module.stream(self._stream):
            job()
        return OnStream(partial(self._module.current_stream, self._device), self._stream.record_event(), job, after)


class OnStream:
    """A job that was issued. It keeps the job, and with it the memory that it uses, until somebody waits."""

    def __init__(self, current_stream: Callable[[], Any], event: Any, job: Job, after: Job | None):
        self._current_stream, self._event, self._job, self._after = current_stream, event, job, after

    def result(self) -> None:
        """The caller's stream waits; the caller itself goes on."""
        self._current_stream().wait_event(self._event)
        after, self._job, self._after = self._after, _nothing, None
        if after is not None:
            after()


class AtOnce:
    """The caller runs the job: for tensors on a GPU whose messages go through the CPU, which must wait for them."""

    def submit(self, job: Job, after: Job | None = None) -> Future:
        done: Future = Future()
        done.set_result(_both(job, after))
        return done


_queues: WeakKeyDictionary[dist.ProcessGroup, dict[torch.device, Queue]] = WeakKeyDictionary()


def queue_of(group: dist.ProcessGroup, device: torch.device) -> Queue:
    """The queue for jobs that use ``group`` on tensors of ``device``."""
    queues = _queues.setdefault(group, {})
    if device not in queues:
        if needs_the_host(device, group):
            queues[device] = AtOnce()
        else:
            queues[device] = Stream(device) if wire.goes_in_groups(group, device.type == "cuda") else Thread()
    return queues[device]


def _both(job, after):
    job()
    if after is not None:
        after()


def _nothing() -> None:
    pass
