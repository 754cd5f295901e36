"""The notebook's side of the ranks: one ``torchrun``, one socket, one call at a time."""

import atexit
import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil

from ringzero import processes
from ringzero.processes import box
from ringzero.ranks import warm_rank
from ringzero.ranks.torchrun import rank_environment, torchrun_command

INTERPRETERS = 2  # see ``warm_rank``
RANKS = 8  # of this process's pool, at least: one more costs milliseconds, and a later call with more ranks seconds
FORKED = ("--start-method", "fork", "--run-path", warm_rank.__file__)  # torchrun forks its workers, which run this file
STARTED = ("-m", warm_rank.__name__)
LENDER = "RINGZERO_LENDER"  # in the environment of those that borrow pools: the socket of ``lending``
MARK = "RINGZERO_POOL"  # in the environment of all that a pool starts: the folder of its pool
START_SECONDS = 600.0  # far above what torchrun takes on a busy machine; one that fails ends and is seen at once
GOODBYE_SECONDS = 5.0  # for a worker to end what its call started
_current: "Pool | None" = None  # the pool of this process
OF_OPTIMIZERS = "torch._dynamo"  # what an optimizer's first step imports, in a second; it makes forks slower
# In a pickled job that may have such a step: torch.optim as a whole string or in one, as names are pickled. A docstring
# may well speak of optimizers.
MAY_OPTIMIZE = (b"\x8c\x05optim\x94", b"torch.optim", b"ringzero.zero", b"ringzero.unsynced")
imports = [*warm_rank.WARM]  # what ranks of new pools have imported before they are forked


def may_optimize(pickled: bytes) -> bool:
    """Whether an optimizer may step in a job, by what it is made of."""
    return any(word in pickled for word in MAY_OPTIMIZE)


def acquire(world_size: int, optimizers: bool = False) -> "Pool":
    """This process's pool, if it lives, has at least ``world_size`` ranks and what they are to import; else a new one.

    ``optimizers``: the ranks' interpreters have imported what an optimizer's step imports.
    """
    global _current
    optimizers = optimizers or (_current is not None and _current.optimizers)
    if _current is not None and (
        _current.world_size < world_size or _current.optimizers < optimizers or not _current.alive()
    ):
        stop()
    if _current is None or _current.owner != os.getpid():
        lender = os.environ.get(LENDER)
        if lender and world_size <= RANKS and box.asked_for() is None:
            _current = Borrowed(lender)
        else:
            _current = Pool(max(world_size, RANKS), optimizers=optimizers)
    return _current


def stop() -> None:
    """End this process's warm ranks, if it has any."""
    global _current
    pool, _current = _current, None
    if pool is not None and pool.owner == os.getpid():
        pool.close()


atexit.register(stop)


class Pool:
    """``world_size`` ranks under ``torchrun``, connected to this process by a Unix socket.

    The ranks end when ``close`` is called and when this process ends, however it ends. Ranks that are not ``warm``
    import torch anew in every call. ``optimizers``: whether the ranks have imported what an optimizer's step imports.
    """

    def __init__(self, world_size: int, warm: bool = True, optimizers: bool = False):
        self.world_size, self.optimizers = world_size, optimizers
        self.owner = os.getpid()
        self.box = box.asked_for()
        self.broken = False  # a rank is gone or out of step: end this pool, start another
        self.agent: subprocess.Popen[bytes] | None = None  # torchrun
        self.workers: list[socket.socket] = []  # by rank
        self.pids: list[int] = []  # by rank
        self.parents: set[int] = set()  # the interpreters that forked the ranks
        self._buffers: dict[int, bytes] = {}
        self.directory = Path(tempfile.mkdtemp(prefix="ringzero-", dir=processes.short_temporary_folder()))
        self._selector = selectors.DefaultSelector()
        try:
            self._start([*imports, *([OF_OPTIMIZERS] if optimizers else [])] if warm else [])
        except BaseException:
            self.close()
            raise

    def _start(self, modules: list[str]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            address = self.directory / "pool.sock"
            listener.bind(str(address))
            self._give_to_ranks(self.directory, address)
            listener.listen(self.world_size)
            listener.settimeout(0.1)
            self._start_torchrun([str(address), str(self.world_size), *modules])
            deadline = time.monotonic() + START_SECONDS
            workers: dict[int, socket.socket] = {}
            pids: dict[int, int] = {}
            while len(workers) < self.world_size:
                if not self._agent_lives() or time.monotonic() > deadline:
                    self.workers, self.pids = [*workers.values()], [*pids.values()]
                    raise RuntimeError(self._start_failure())
                with contextlib.suppress(TimeoutError):
                    connection, _ = listener.accept()
                    connection.settimeout(START_SECONDS)
                    hello = json.loads(connection.makefile("rb").readline())
                    connection.setblocking(True)
                    rank, pid = hello["rank"], _process_behind(connection, hello["pid"])
                    workers[rank], pids[rank] = connection, pid
                    self.parents.add(hello["parent"] if pid == hello["pid"] else psutil.Process(pid).ppid())
        self._take([workers[rank] for rank in range(self.world_size)])
        self.pids = [pids[rank] for rank in range(self.world_size)]

    def _start_torchrun(self, arguments: list[str]) -> None:
        """Start torchrun, whose workers are ``warm_rank`` with these arguments; in a box, if one was asked for."""
        # While a submission is graded, two pools start at the same time: the one in a box imports torch twice, not
        # three times. Only on Linux, where boxes are: elsewhere it may not be safe to fork torchrun's threads.
        worker = [*(FORKED if self.box else STARTED), *arguments]
        command = [*torchrun_command(min(INTERPRETERS, self.world_size), self.directory / "logs"), *worker]
        if self.box is not None:
            command = self.box.enclosed(command, [Path(tempfile.gettempdir())])
        # torch._dynamo makes a folder for inductor's files when it is imported: it goes with the pool.
        cache = {"TORCHINDUCTOR_CACHE_DIR": str(self.directory / "inductor")}
        with open(self.directory / "torchrun.log", "wb") as log:
            self.agent = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=cache | rank_environment(self.world_size) | {MARK: str(self.directory)},
                start_new_session=True,  # Ctrl-C in the terminal reaches the notebook only
            )

    def _take(self, workers: list[socket.socket]) -> None:
        """From now on talk to these, by rank."""
        self.workers = workers
        self._buffers = dict.fromkeys(range(self.world_size), b"")
        for rank, connection in enumerate(workers):
            self._selector.register(connection, selectors.EVENT_READ, rank)

    def _give_to_ranks(self, *paths: Path) -> None:
        """Let ranks in a box use these files and folders; others can anyway."""
        if self.box is not None:
            for path in paths:
                self.box.give(path)

    def _start_failure(self) -> str:
        said = (self.directory / "torchrun.log").read_text(errors="replace")[-3000:]
        ended = self.agent.poll() if self.agent is not None else None
        how = f"It took more than {START_SECONDS:g} s" if ended is None else f"It ended with {ended}"
        return f"torchrun could not start ranks (a pool of {self.world_size}, for all calls). {how} and said:\n{said}"

    def _agent_lives(self) -> bool:
        return self.agent is not None and self.agent.poll() is None

    def own_processes(self) -> set[int]:
        """The process ids of torchrun and warm ranks: what runs between calls."""
        return {*self.pids, *self.parents, *([] if self.agent is None else [self.agent.pid])}

    def told(self) -> bytes:
        """What a ``Borrowed`` needs to know of this pool, besides its sockets."""
        agent = None if self.agent is None else self.agent.pid
        return json.dumps([self.pids, [*self.parents], agent, str(self.directory)]).encode()

    def alive(self) -> bool:
        """Whether the next call can use this pool. Between calls a rank is silent: what can be read is its end."""
        return not self.broken and self._agent_lives() and not self._selector.select(0)

    @contextlib.contextmanager
    def call_directory(self) -> Iterator[Path]:
        """A fresh directory for one call, removed when the call is over."""
        # A name that a rank of an earlier call cannot have known: it could have put a link there, to anywhere.
        directory = Path(tempfile.mkdtemp(prefix="call-", dir=self.directory))
        (directory / "tmp").mkdir()
        self._give_to_ranks(directory, directory / "tmp")
        try:
            yield directory
        finally:
            processes.remove(directory)

    def send(self, ranks: Iterable[int], message: dict[str, Any]) -> None:
        """Send ``message`` to the workers of ``ranks``; ``warm_rank`` says which messages there are."""
        data = json.dumps(message).encode() + b"\n"
        for rank in ranks:
            with contextlib.suppress(OSError):  # a dead worker shows in ``exits``
                self.workers[rank].sendall(data)

    def exits(self, timeout: float) -> dict[int, int | None]:
        """``{rank: exit code}`` of the children that ended within ``timeout`` seconds (it returns at the first).

        A rank whose worker died, killed by the job or the machine, has the exit code None.
        """
        done: dict[int, int | None] = {}
        for key, _ in self._selector.select(timeout):
            rank = key.data
            data = b""
            with contextlib.suppress(OSError):
                data = self.workers[rank].recv(1 << 16)
            if not data:
                self._selector.unregister(key.fileobj)
                done[rank], self.broken = None, True
                continue
            *lines, self._buffers[rank] = (self._buffers[rank] + data).split(b"\n")
            for line in lines:
                done[rank] = json.loads(line)["exit"]
        return done

    def cpu_seconds(self, rank: int) -> float:
        """What the processes of a rank's call have computed so far; of a rank that is gone, 0."""
        with contextlib.suppress(psutil.Error):
            times = [child.cpu_times() for child in psutil.Process(self.pids[rank]).children(recursive=True)]
            return sum(each.user + each.system for each in times)
        return 0.0

    def close(self) -> None:
        """End every process of the pool and remove its files."""
        for connection in self.workers:
            with contextlib.suppress(OSError):
                connection.close()  # a worker that reads end-of-file kills its child and leaves
        self._selector.close()
        if self.agent is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.agent.pid, signal.SIGKILL)  # torchrun's own way to end takes seconds
            self.agent.wait()
        deadline = time.monotonic() + GOODBYE_SECONDS
        for pid in self.pids:  # a worker ends what its call started, unless the call killed or stopped the worker
            _wait_gone(pid, deadline)
        processes.end(lambda: processes.marked(MARK, str(self.directory)))
        processes.remove(self.directory)


class Borrowed(Pool):
    """A pool that another process lends to this one at the socket ``lender`` (see ``lending``), until ``close``."""

    def __init__(self, lender: str):
        self.owner = os.getpid()
        self.box, self.broken, self.optimizers = None, False, True
        self._selector = selectors.DefaultSelector()
        self._lender = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lender.connect(lender)
        told, descriptors, *_ = socket.recv_fds(self._lender, 1 << 16, RANKS)
        if not told:
            raise RuntimeError(f"the process that lends pools of ranks at {lender} could not start one, and says why")
        self.pids, parents, self._agent, directory = json.loads(told)
        self.world_size, self.parents, self.directory = len(self.pids), set(parents), Path(directory)
        self._take([socket.socket(fileno=descriptor) for descriptor in descriptors])

    def _agent_lives(self) -> bool:
        return psutil.pid_exists(self._agent)

    def own_processes(self) -> set[int]:
        return {*self.pids, *self.parents, self._agent}

    def close(self) -> None:
        """Give the pool back; one that is broken, the lender ends."""
        self._selector.close()
        for connection in self.workers:
            connection.close()
        with self._lender, contextlib.suppress(OSError):
            self._lender.sendall(b"" if self.broken else b"\n")


def _process_behind(connection: socket.socket, says: int) -> int:
    """The process id of who connected, as this process counts: in a box the numbers are others."""
    if not hasattr(socket, "SO_PEERCRED"):
        return says
    return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def _wait_gone(pid: int, deadline: float) -> None:
    """Wait until the process has ended; whether anybody has collected it yet does not matter."""
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.Error:
            return
        time.sleep(0.005)
