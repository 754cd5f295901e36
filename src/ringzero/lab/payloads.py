"""What a student's code gives to the other ranks, kept as copies, while every other way to them is closed.

The records of a rank say how many bytes it sent. A fake that sends as many zeros and carries the data by a way that
nobody records would pass. So a check can look at what was sent, and other process groups, stores, sockets and files
that are written raise an error meanwhile. This closes what a program does openly; it is no prison.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock  # patch.object can also undo the override of an inherited method

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from ringzero.record import sources
from ringzero.record.recording_group import TracedProcessGroup

# Methods of a process group, and which argument holds what this rank gives.
GIVEN = {
    **dict.fromkeys(("send", "allreduce", "allreduce_coalesced", "broadcast", "reduce"), 0),
    **dict.fromkeys(("allgather", "allgather_coalesced", "all_gather_single", "_allgather_base"), 1),
    **dict.fromkeys(("all_gather_single_coalesced", "allgather_into_tensor_coalesced", "gather", "scatter"), 1),
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_single", "_reduce_scatter_base", "alltoall"), 1),
    **dict.fromkeys(("all_to_all_single", "alltoall_base"), 1),
}
GROUPS = ("_new_process_group_helper", "_get_default_store", "_get_process_group_store")  # all others call these
STORES = ("FileStore", "TCPStore", "HashStore", "ProcessGroupGloo")
_STANDARD = os.path.dirname(os.__file__) + os.sep
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
SOCKETS = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "mmap.__new__")
LINKS = ("os.link", "os.symlink", "os.setxattr")  # can say something, too
# A library may have its reasons, at an import for instance: only a caller is kept from these.
FOLDERS = ("os.mkdir", "os.rmdir", "os.rename", "os.remove", "os.truncate", "os.utime", "os.chmod", "os.chown")
PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "sqlite3.connect", "ctypes.dlopen")
STORAGES = ("from_file", "_new_with_file", "_new_shared", "_new_shared_fd_cpu", "_new_shared_filename_cpu")
SAVES = ("serialize_file", "save_file")  # of safetensors, which writes without Python

_closed = False  # whether files and sockets are closed now
_hooked = False  # an audit hook cannot be taken out again


@contextmanager
def payloads(note: Callable[[], None] | None = None) -> Iterator[list[torch.Tensor]]:
    """Inside, a list grows by a copy of each tensor that this rank hands to the default process group.

    ``note`` is called after each. Another process group, a store, a socket and a file opened for writing raise an
    error.
    """
    given: list[torch.Tensor] = []
    with ExitStack() as stack:
        for name, place in GIVEN.items():
            method = vars(TracedProcessGroup)[name]
            stack.enter_context(mock.patch.object(TracedProcessGroup, name, _keeping(method, place, given, note)))
        stack.enter_context(no_other_way())
        yield given


@contextmanager
def doubled() -> Iterator[None]:
    """Inside, what this rank hands to ``all_reduce`` is doubled on its way, so what comes back is twice the sum.

    A function whose result does not double has not used what came back.
    """
    allreduce = TracedProcessGroup.allreduce

    def doubling(self: TracedProcessGroup, tensors: list, *args: Any, **options: Any) -> Any:
        for tensor in tensors:
            tensor.detach().mul_(2)
        return allreduce(self, tensors, *args, **options)

    with mock.patch.object(TracedProcessGroup, "allreduce", doubling):
        yield


def _keeping(method: Callable, place: int, given: list, note: Callable | None) -> Callable:
    def kept(self: TracedProcessGroup, *args: Any, **options: Any) -> Any:
        for tensor in _tensors(args[place]):
            given.append(tensor.detach().clone())
            if note is not None:
                note()
        return method(self, *args, **options)

    return kept


def _tensors(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
        return
    for item in tree or ():
        yield from _tensors(item)


@contextmanager
def no_other_way() -> Iterator[None]:
    """Inside, another process group, a store, a socket and a file opened for writing raise an error."""
    global _closed, _hooked
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True
    with ExitStack() as stack:
        for name in GROUPS:
            function = getattr(distributed_c10d, name, None)
            if function is not None:
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = _refuse.__code__
        for name in STORES:
            kind = getattr(dist, name, None)
            if kind is not None:
                stack.enter_context(mock.patch.object(kind, "__init__", _refuse))
        if "_get_backend" not in vars(TracedProcessGroup):  # it is there inside another ``no_other_way``
            asked = _for_torch_alone(TracedProcessGroup._get_backend)
            stack.enter_context(mock.patch.object(TracedProcessGroup, "_get_backend", asked))
        stack.enter_context(mock.patch.object(dist.ProcessGroup, "get_group_store", _refuse))
        for thing, names in _writers():
            for name in names:
                refusing = staticmethod(_no_file) if isinstance(thing, type) else _no_file
                stack.enter_context(mock.patch.object(thing, name, refusing, create=True))
        writer = _into_buffers_alone(torch._C.PyTorchFileWriter)
        stack.enter_context(mock.patch.object(torch._C, "PyTorchFileWriter", writer))
        world: dict[Any, Any] = distributed_c10d._world.pg_map
        for group, (backend, store) in list(world.items()):
            stack.callback(partial(world.__setitem__, group, (backend, store)))
            world[group] = (backend, None)
        stack.callback(_close, _closed)
        _closed = True
        yield


def _writers():
    """What reaches files, pipes and shared memory without an event to audit: ``(module or class, names)``."""
    for module in (os, sys.modules[os.name]):  # the name of a pipe can say something
        yield module, ("mkfifo", "mknod", "memfd_create", "openpty", "posix_openpt")
    yield torch, ("from_file",)
    yield torch.UntypedStorage, [name for name in STORAGES if hasattr(torch.UntypedStorage, name)]
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "safetensors"]:
        yield module, [name for name in SAVES if hasattr(module, name)]


def _into_buffers_alone(writer: Callable) -> Callable:
    """``torch.save`` to a path opens it in C++, which no audit hook sees."""

    def opened(where: Any, *args: Any, **options: Any) -> Any:
        if isinstance(where, (str, bytes, os.PathLike)):
            _refuse_writing(where)
        return writer(where, *args, **options)

    return opened


def _for_torch_alone(method: Callable) -> Callable:
    """The backend under a recorded process group does not record: torch may ask for it, and nobody else."""

    def asked(self: TracedProcessGroup, *args: Any) -> Any:
        if "/torch/" not in sys._getframe(1).f_code.co_filename.replace(os.sep, "/"):
            _refuse()
        return method(self, *args)

    return asked


def _close(before):
    global _closed
    _closed = before


def _refuse(*_, **__):
    raise RuntimeError("use the default process group: what travels by another group or a store is not counted")


def _refuse_writing(path):
    raise PermissionError(f"{path!r} is opened for writing: ranks may talk through the default group alone")


def _no_file(*_, **__):
    raise PermissionError("a file, or memory that others share: ranks may talk through the default process group alone")


def _audit(event, args):
    if not _closed:
        return
    if event == "open" and isinstance(args[2], int) and args[2] & WRITES:
        _refuse_writing(args[0])
    if event in (*SOCKETS, *LINKS) or (event in (*FOLDERS, *PROGRAMS) and _is_a_callers()):
        raise PermissionError(f"{event}: ranks may talk through the default process group alone")


def _is_a_callers():
    """Whether no library but Python's own lies between a caller's line and this event."""
    frame = sys._getframe(2)
    while frame is not None and _is_standard(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and sources.is_callers(frame.f_code.co_filename)


def _is_standard(filename):
    return filename.startswith(("<frozen", _STANDARD)) and "-packages" not in filename
