"""One rank between calls: torch imported, no threads, no CUDA context; it forks a clean child for each call.

``torchrun`` starts two interpreters, which import torch and fork the ranks: one the even ranks, one the odd ones. To
import takes two seconds of a core and 150 MB, so it is done twice and not by every rank. Forked from one interpreter,
all ranks would iterate over sets in one order, and hide the programs that depend on that order and hang on a real
cluster. In a box, torchrun forks the first interpreter from itself.

Each rank connects to the socket of the pool that asked for it, says which rank it is, and then serves one call at a
time:

    pool -> worker   {"job": the fields of a Job}     fork a child that does it (``ringzero.ranks.job``)
    pool -> worker   {"stack": true}                  have the child write where it is
    pool -> worker   {"kill": true}                   kill that child and all it started
    worker -> pool   {"exit": status}                 the child has ended, and every process below it

When the pool's end of the socket closes, for whatever reason, the worker kills its child and leaves.
"""

import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import select
import signal
import socket
import stat
import sys
import traceback
from collections.abc import Iterable
from typing import Any

from ringzero import processes
from ringzero.ranks import job

# What calls need. An import here is done twice; in a call, by each of its ranks, and again in the next call.
WARM = (
    "cloudpickle",
    "numpy.random",  # which numpy imports when it is first used: 10 ms
    "safetensors.torch",
    "torch.distributed",
    "ringzero.record.recording_group",
    "ringzero.collectives",
    "ringzero.strict.group",
    "ringzero.unsynced",  # and with it the rooms of training: 0.1 s
)
IDLE_SECONDS = 900  # an unused pool ends by itself; the next call starts a new one


def main(socket_path: str, ranks: int, modules: Iterable[str]) -> None:
    """Import ``modules``, fork this interpreter's share of the ``ranks``, and stay until all have ended."""
    import_once(modules)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the notebook's to handle
    for rank in range(int(os.environ["LOCAL_RANK"]), ranks, int(os.environ["LOCAL_WORLD_SIZE"])):
        if os.fork() == 0:
            try:
                os.setsid()
                processes.die_with_parent()
                serve(rank, socket_path)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)  # unloading torch takes longer than everything else here
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def import_once(modules: Iterable[str]) -> None:
    """Import what forks of this process will need."""
    gc.disable()  # to look through what an import makes, again and again, takes up to a third of its time
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # a fork that collects garbage leaves what is here alone, and shares the memory
    gc.enable()


def serve(rank: int, socket_path: str) -> None:
    """Serve calls until the pool closes its socket, or for ``IDLE_SECONDS`` asks for nothing."""
    processes.adopt_orphans()  # a daemon that a student's code started is still ours to end
    woken, wake = _wake_when_a_child_ends()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(socket_path)
    _send(connection, {"rank": rank, "pid": os.getpid(), "parent": os.getppid()})
    child: int | None = None
    pending = b""
    while True:
        inputs: list[Any] = [connection, woken]
        ready, _, _ = select.select(inputs, [], [], None if child else IDLE_SECONDS)
        if not ready:
            return  # idle
        if woken in ready:
            os.read(woken, 4096)
        if connection in ready:
            data = connection.recv(1 << 16)
            if not data:  # the pool's process has ended, perhaps killed before it could clean up
                processes.end(processes.descendants)
                if rank == 0:
                    processes.remove(os.path.dirname(socket_path))
                return
            *messages, pending = (pending + data).split(b"\n")
            for message in map(json.loads, messages):
                if "job" in message and child is None:
                    child = _fork(rank, job.Job(**message["job"]), connection, woken, wake)
                elif "kill" in message:
                    processes.end(processes.descendants)  # ``_reap`` collects the child
                elif "stack" in message and child is not None:
                    os.kill(child, job.STACK_SIGNAL)
        if (status := _reap(child)) is not None:
            processes.end(processes.descendants)
            child = None
            _send(connection, {"exit": status})


def _wake_when_a_child_ends() -> tuple[int, int]:
    """The two ends of a pipe: the first can be read whenever a child has ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken, wake


def _send(connection: socket.socket, message: dict[str, int]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _fork(rank: int, told: job.Job, connection: socket.socket, *descriptors: int) -> int:
    """Fork the child that does the job; in the child, close what is the worker's."""
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.close()
        job.run(rank, told)
    return child


def _reap(child: int | None) -> int | None:
    """Collect every dead child; the exit code of ``child`` (negative: the signal) if it is among them."""
    status = None
    while True:
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            status = os.waitstatus_to_exitcode(raw)


def _leave_torchrun(arguments: list[str]) -> None:
    """In a process that torchrun has forked: give up what is torchrun's. All but the first become new interpreters.

    The first has torch imported already. Its ranks must have neither torchrun's connections nor its signal handlers.
    """
    if os.environ["LOCAL_RANK"] != "0":
        os.execv(sys.executable, [sys.executable, "-m", "ringzero.ranks.warm_rank", *arguments])
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the one that lists them
            if descriptor > 2 and not stat.S_ISFIFO(os.fstat(descriptor).st_mode):  # a pipe tells torchrun of our end
                os.close(descriptor)
    for name in os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"].split(","):
        signal.signal(signal.Signals[name], signal.SIG_DFL)


if __name__ == "__main__":
    if multiprocessing.parent_process() is not None:
        _leave_torchrun(sys.argv[1:])
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    os._exit(1)  # with 0, torchrun would wait for what a function that it forked for returned
