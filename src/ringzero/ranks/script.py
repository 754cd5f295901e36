"""Run a script on N ranks as ``torchrun`` does, watch over its communication, and say why it hangs if it does.

On the CPU the ranks' groups record, and a job whose ranks can never get on is ended with the cause. On GPUs torch's own
Flight Recorder is switched on; if NCCL's watchdog ends the job, its dumps are explained.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import psutil

from ringzero import processes
from ringzero.explain import deadlock, report
from ringzero.ranks import script_rank
from ringzero.ranks.torchrun import TORCHRUN, rank_environment, torchrun_command
from ringzero.record import export, trace_file
from ringzero.record.operation import Operation

PREFIX, IN_USE = "ringzero-run-", "in_use"  # of a run's folder, and the file in it that the run locks
MARK = "RINGZERO_RUN"  # in the environment of all that a run starts: its folder
# The ranks have said what went wrong, and torchrun says it once more in fifty lines, which name a rank as the cause.
QUIETLY = f"""
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
try:
    {TORCHRUN}
except (ChildFailedError, SignalException):
    raise SystemExit(1)
"""
STILL_WITH_THREADS = 4.0  # a progress bar has a thread; one that communicates is soon seen to
LONG_SECONDS = 30.0  # of silence, after which that is said
STACK_SECONDS = 2.0  # a rank on a busy machine has written its stack by then
SHARED_MEMORY, ENOUGH = "/dev/shm", 2**28  # bytes; a rank's records take four million of them
STOP_SECONDS = 30.0  # torchrun gives its ranks as long before it kills them


class Ended(NamedTuple):
    """How a script ended: its exit ``status``, torchrun's own; ``why`` it hung or failed, in sentences, "" if unknown;
    and the last ``operations`` of all ranks.
    """

    status: int
    why: str
    operations: list[Operation]

    def save_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the operations as JSON that Perfetto (ui.perfetto.dev) and ``ringzero timeline`` read."""
        export.save_chrome_trace(self.operations, path)


def run(
    command: Sequence[str], ranks: int, is_module: bool = False, explain: Callable[[list[Path]], str] = lambda _: ""
) -> Ended:
    """Run ``command``, a script or module and its arguments, on ``ranks`` ranks of this machine.

    What the script prints passes through. Interrupted, it says where each rank was. ``explain(files)`` says what NCCL's
    dumps show, if its watchdog left some. Whatever happens, no process is left.
    """
    _remove_abandoned()
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX, dir=_in_memory()) as name,
        open(Path(name, IN_USE), "w") as in_use,
    ):
        fcntl.flock(in_use, fcntl.LOCK_EX)
        script = _Script(Path(name), ranks)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a cluster stops jobs by it
        try:
            script.start([*(["-m"] if is_module else []), *command])
            why = script.watch() or explain(sorted(script.folder.glob(f"{script_rank.DUMP}*")))
            records = [trace_file.read_last(script.folder / f"{rank}.trace", rank) for rank in range(ranks)]
            return Ended(script.status(), why, [op for record in records for op in record.operations])
        finally:
            signal.signal(signal.SIGTERM, before)
            script.end()


class _Script:
    def __init__(self, folder: Path, world_size: int):
        self.folder, self.world_size = folder, world_size
        (folder / report.OF_A_SCRIPT).touch()
        self.began = time.monotonic()
        self.is_stuck = self.said = False
        self.begun: list[int] = []  # operations, by rank, and when there was a new one
        self.moved = self.began

    def start(self, command: list[str]) -> None:
        torchrun = torchrun_command(self.world_size, self.folder / "logs", QUIETLY)
        self.agent = subprocess.Popen(
            [*torchrun, "-m", script_rank.__name__, str(self.folder), *command],
            env=rank_environment(self.world_size) | {MARK: str(self.folder)},
            preexec_fn=processes.die_with_parent,
            start_new_session=True,  # an interrupt is this process's, which first asks the ranks where they are
        )

    def watch(self) -> str:
        """Wait for the script's end; why it hung or failed."""
        watched = deadlock.Watch(self.folder, self.world_size, self._ask, self._cpu_seconds, STILL_WITH_THREADS)
        try:
            while self.agent.poll() is None:
                time.sleep(deadlock.LOOK_SECONDS)
                self._note_ends()
                if self._all_began() and watched.deadlocked(self._running()):
                    return self._hangs(True)
                self._say_if_nothing_moves()
        except KeyboardInterrupt:
            why = self._hangs(False)
            self.agent.terminate()  # which has the ranks end, as torchrun does
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                self.agent.wait(STOP_SECONDS)
            return why
        if self.agent.returncode == 0:
            return ""
        return report.reason(self.folder, self.world_size) or ""

    def _say_if_nothing_moves(self):
        """Once: a rank that computes or reads for long may go on, and the user may know that it will not."""
        begun = [trace_file.begun(self._file(rank, "trace")) for rank in range(self.world_size)]
        if begun != self.begun:
            self.begun, self.moved = begun, time.monotonic()
        elif any(begun) and not self.said and time.monotonic() - self.moved > LONG_SECONDS:
            self.said = True
            print(
                f"ringzero: for {LONG_SECONDS:g} s no rank has called anything. One may still go on by itself; "
                "Ctrl-C ends the script and says where each rank is.",
                file=sys.stderr,
            )

    def status(self) -> int:
        """The exit status of the whole run; 1 of one that hung."""
        return 1 if self.is_stuck else self.agent.returncode

    def end(self) -> None:
        """End what still runs: torchrun, its ranks, and what those started."""
        if self.agent.poll() is None:
            self.agent.kill()  # it has nothing to tidy up, and its own way takes seconds
            self.agent.wait()
        processes.end(lambda: processes.marked(MARK, str(self.folder)))

    def _hangs(self, for_good):
        self.is_stuck = True
        if not self._all_began():
            return "Ended before all ranks had begun the script."
        running = self._running()
        before = {rank: self._file(rank, "stack").stat().st_size for rank in running}  # of stacks asked for earlier
        self._ask(running)
        deadline = time.monotonic() + STACK_SECONDS
        while time.monotonic() < deadline and any(self._file(r, "stack").stat().st_size == before[r] for r in running):
            time.sleep(0.01)
        seconds = time.monotonic() - self.began
        return report.timeout(self.folder, running, self.world_size, round(seconds, 1), for_good, if_slow="")[1]

    def _file(self, rank, what):
        return self.folder / f"{rank}.{what}"

    def _all_began(self):
        return all(self._file(rank, "pid").exists() for rank in range(self.world_size))

    def _running(self):
        ended = ("result", "error", "gone")
        return [rank for rank in range(self.world_size) if not any(self._file(rank, how).exists() for how in ended)]

    def _process(self, rank):
        return psutil.Process(int(self._file(rank, "pid").read_text() or 0))

    def _note_ends(self):
        """Mark the ranks whose process is gone though their script did not return."""
        for rank in self._running():
            if self._file(rank, "pid").exists():
                try:
                    gone = self._process(rank).status() == psutil.STATUS_ZOMBIE
                except psutil.NoSuchProcess:
                    gone = True
                if gone and rank in self._running():  # it may have returned since
                    self._file(rank, "gone").touch()

    def _ask(self, ranks: Iterable[int]) -> None:
        for rank in ranks:
            with contextlib.suppress(psutil.Error, OSError):
                self._process(rank).send_signal(script_rank.STACK_SIGNAL)

    def _cpu_seconds(self, rank):
        with contextlib.suppress(psutil.Error, OSError):
            process = self._process(rank)
            times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
            return sum(each.user + each.system for each in times)
        return 0.0


def _remove_abandoned() -> None:
    """Remove the folders of runs that were killed before they could: nobody holds their locks."""
    for held in Path(SHARED_MEMORY).glob(f"{PREFIX}*/{IN_USE}"):
        with contextlib.suppress(OSError), open(held) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            processes.remove(held.parent)


def _in_memory() -> str | None:
    """A folder in memory, if it has room: a record on a disk costs a microsecond more, and some cost fifty."""
    with contextlib.suppress(OSError):
        if os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free > ENOUGH:
            return SHARED_MEMORY
    return None
