"""One call on one rank: what the rank is told, a ``Job``, and what the process that is forked for it does, ``run``.

The process leaves files in the job's folder: ``R.out``, what rank R printed; ``R.result`` or ``R.error``; ``R.trace``,
its records; ``R.stack``, where it was when it was asked or crashed.
"""

import contextlib
import faulthandler
import fcntl
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ringzero import processes
from ringzero.ranks import devices, node, plain_data
from ringzero.record import sources

if TYPE_CHECKING:
    from torch.distributed import Store

STACK_SIGNAL = signal.SIGUSR1  # has the process write its stack
LOOK_SECONDS = 0.005  # between two looks at which ranks are connected, where some may be lost


@dataclass(frozen=True)
class Job:
    """What each rank of a call is told. It travels as JSON.

    ``device``    as ``devices.resolve`` returns it
    ``timeout``   in seconds, for the whole call
    ``trace``     whether to record also where that costs something
    ``may_lose``  whether the call goes on when ranks are lost
    ``nodes``     of an emulated cluster: the process ids that hold its nodes, each of which has equally many ranks
    ``threads``   how many of torch's own a rank gets; None for what its environment says
    ``cwd``, ``sys_path``, ``sources``  the caller's folder, its import path, and the cells of its notebook
    ``folder``    for the files of the call; the function and its arguments are there already, in ``job.pkl``
    """

    world_size: int
    device: str
    timeout: float
    trace: bool = False
    may_lose: bool = False
    nodes: tuple[int, ...] = ()
    threads: int | None = None
    cwd: str = field(default_factory=os.getcwd)
    sys_path: list[str] = field(default_factory=lambda: [*sys.path])
    sources: dict[str, list[str]] = field(default_factory=sources.collect)
    folder: str = ""

    def file(self, name: str) -> Path:
        return Path(self.folder, name)

    @property
    def ranks_per_node(self) -> int:
        return self.world_size // (len(self.nodes) or 1)


def run(rank: int, job: Job) -> NoReturn:
    """In the child that was forked for the ``job``: do it as ``rank``, and end this process."""
    status = 1
    try:
        os.setsid()
        if job.nodes:
            node.enter(job.nodes[rank // job.ranks_per_node])
        processes.die_with_parent()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _redirect_output(job.file(f"{rank}.out"))
        stacks = open(job.file(f"{rank}.stack"), "w")  # noqa: SIM115  (faulthandler keeps it)
        faulthandler.enable(stacks)
        faulthandler.register(STACK_SIGNAL, stacks, all_threads=False)
        _take_place(rank, job)
        status = _call(rank, job)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)


def _redirect_output(path: Path) -> None:
    """Send stdout and stderr of this process and its children to ``path``, as they are written."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target in (1, 2):
        os.dup2(descriptor, target)
    os.close(descriptor)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _take_place(rank: int, job: Job) -> None:
    """Have what a rank under torchrun has in its environment, and what the caller has as a Python process."""
    group_rank, local_rank = divmod(rank, job.ranks_per_node)
    places = {"RANK": rank, "WORLD_SIZE": job.world_size, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": job.world_size}
    places |= {"GROUP_RANK": group_rank, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": job.ranks_per_node}
    os.environ.update({name: str(value) for name, value in places.items()})
    os.environ.pop("TORCHELASTIC_RUN_ID", None)  # a launch inside this call starts ranks of its own
    os.environ["TMPDIR"] = tempfile.tempdir = str(job.file("tmp"))  # removed with the call's folder
    with contextlib.suppress(OSError):
        os.chdir(job.cwd)
    sys.path[:] = job.sys_path
    sys.argv = [""]
    sources.install(job.sources)


def _call(rank: int, job: Job) -> int:
    """Call the function and leave its result, or its error. The exit status of this process: 0 for a result."""
    import cloudpickle

    result_file = job.file(f"{rank}.result")
    try:
        working = _hold(job.file("working"))
        store = _init_process_group(rank, job)
        if job.may_lose:  # a rank that died while others still connect to it would fail them
            _wait_until_connected(store, rank, job)
        function, args = cloudpickle.loads(job.file("job.pkl").read_bytes())
        result = function(*args)
        devices.leave(job.device)
        _leave(result_file, lambda path: plain_data.dump(result, path))
        _let_go(working)  # a rank that exits closes its connections: wait until all are done with them
        return 0
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if result_file.exists():
            return 0  # this rank did its part; the rank that failed says why
        said = {"time": time.time(), "message": str(error), "traceback": sources.format_error(error)}
        _leave(job.file(f"{rank}.error"), lambda path: path.write_text(json.dumps(said)))
        return 1


def _leave(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file that nobody sees before it is whole."""
    unfinished = path.with_suffix(".unfinished")
    write(unfinished)
    unfinished.rename(path)


def _wait_until_connected(store: "Store", rank: int, job: Job) -> None:
    """Wait until each rank has connected to the others, or is gone."""
    store.set(f"connected/{rank}", "")
    while not all(job.file(f"{r}.gone").exists() or store.check([f"connected/{r}"]) for r in range(job.world_size)):
        time.sleep(LOOK_SECONDS)


def _hold(path: Path) -> int:
    """Have ``_let_go`` of the other ranks wait for this one: until it lets go, too, or its process ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _let_go(descriptor: int) -> None:
    """Wait until no rank holds the lock. The system wakes this rank; a store would look every 10 ms."""
    for operation in (fcntl.LOCK_UN, fcntl.LOCK_EX, fcntl.LOCK_UN):
        fcntl.flock(descriptor, operation)
    os.close(descriptor)  # which alone would not unlock: what this process has forked may have the descriptor, too


def _init_process_group(rank: int, job: Job) -> "Store":
    """Make the default group of this call, on a store of its own: nothing is shared with the call before."""
    import torch
    import torch.distributed as dist

    if job.threads not in (None, torch.get_num_threads()):  # the pool may have more ranks than this call
        torch.set_num_threads(job.threads)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # a fork would draw its parent's random numbers again
    devices.enter(job.device, int(os.environ["LOCAL_RANK"]))
    store = dist.FileStore(str(job.file("store")), job.world_size)
    dist.init_process_group(
        _backend(rank, job),
        store=dist.PrefixStore("group", store),
        rank=rank,
        world_size=job.world_size,
        timeout=timedelta(seconds=job.timeout + 60),  # the call's own limit strikes first and explains more
    )
    return dist.PrefixStore("call", store)


def _backend(rank: int, job: Job) -> str:
    """The backend's name; that of one that records, where that is asked for or costs nothing."""
    backend = devices.backend(job.device)
    if not (job.trace or devices.records_always(job.device)):
        return backend
    from ringzero.record import recorder, recording_group

    name = recording_group.register(backend, job.file(f"{rank}.trace"), rank, devices.creator(job.device))
    writer = recorder.of_this_process()
    assert writer is not None
    writer.may_lose = job.may_lose
    return name
