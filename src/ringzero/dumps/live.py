"""A job that hangs now, seen from outside: where the Python of each rank stands, and what its recorder kept.

The stacks are py-spy's, which stops a process for some milliseconds and changes nothing in it. Stacks do not count
calls: ranks that stand in the same call at one line may still be in different rounds of a loop. NCCL's recorder does
count, and writes its dump when asked through the pipe that ``TORCH_NCCL_DEBUG_INFO_PIPE_FILE`` names.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from ringzero.dumps import entries
from ringzero.explain.words import names, standing_apart, verb
from ringzero.record import sources

APART_SECONDS = 3.0  # between two looks at a rank
SETTLED_SECONDS = 0.3  # py-spy stops a process and wakes it again
DUMP_SECONDS = 10.0  # NCCL looks into the pipe every second
PY_SPY_SECONDS = 30.0
HEAD = ("rank", "process", "is in", "line and function")
IN_BACKWARD = "_engine_run_backward"  # torch's function in which a backward pass runs, and waits for DDP's collectives
CALLS = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "all_gather_into_tensor": "all_gather",
    "reduce_scatter": "reduce_scatter", "reduce_scatter_tensor": "reduce_scatter", "broadcast": "broadcast",
    "reduce": "reduce", "gather": "gather", "scatter": "scatter", "barrier": "barrier",
    "monitored_barrier": "barrier", "all_to_all": "all_to_all", "all_to_all_single": "all_to_all", "send": "send",
    "recv": "recv", "all_gather_object": "all_gather_object", "broadcast_object_list": "broadcast_object_list",
    "gather_object": "gather_object", "scatter_object_list": "scatter_object_list",
    "init_process_group": "init_process_group", "new_group": "new_group",
    "destroy_process_group": "destroy_process_group",
}  # fmt: skip


class NotAllowedError(ValueError):
    """py-spy is missing, or may not look into a process; the text says what would help."""


class GoneError(ValueError):
    """A process that is not there, or not any more."""


class Rank(NamedTuple):
    """Where a rank stands: ``call``, what it is in ("" for no communication); ``line``, of the caller's own code.

    ``moves``: it stood elsewhere a moment later, or had left its call and come to it again.
    """

    pid: int
    call: str
    line: str
    moves: bool = False

    @property
    def place(self) -> str:
        return f"{self.call}, {self.line}" if self.call else f"no communication, {self.line}"


class Stacks(NamedTuple):
    """Where the ranks of a job stand; ``world_size`` is the whole job's, ``ranks`` are those of this machine."""

    ranks: Mapping[int, Rank]
    world_size: int

    @property
    def sentence(self) -> str:
        """Who stands apart, or that nobody does."""
        if moving := self.moving:
            waiting = [rank for rank in self.ranks if rank not in moving]
            others = f"; {self._standing(waiting)}" if waiting else ""
            they = verb(moving, "is at work: it", "are at work: they")
            return f"{names(moving)} {they} went on within {APART_SECONDS:g} seconds{others}."
        said = f"{standing_apart(self.apart)}{self._standing([*self.ranks])}."
        said += f" For {APART_SECONDS:g} seconds none went on; a rank that is only slow looks the same, so look again."
        if missing := [rank for rank in range(self.world_size) if rank not in self.ranks]:
            it = verb(missing, "it has ended, runs", "they have ended, run")
            return f"{said} No process of {names(missing)} was seen: {it} on another machine, or was not named."
        if len(self._parties([*self.ranks])) == 1:
            said += (
                " By their stacks nobody is missing, but stacks do not count calls: the ranks may be in different "
                "rounds of a loop."
            )
        return said

    @property
    def moving(self) -> list[int]:
        """The ranks at work."""
        return [rank for rank, each in self.ranks.items() if each.moves]

    @property
    def apart(self) -> list[int]:
        """The ranks outside of communication, or else the fewest that stand at one place; none if it is even."""
        idle = [rank for rank, each in self.ranks.items() if not each.call]
        parties = sorted(self._parties([*self.ranks]).values(), key=len)
        if idle:
            return idle if len(idle) < len(self.ranks) else []
        return parties[0] if len(parties) > 1 and len(parties[0]) < len(parties[1]) else []

    @property
    def next(self) -> str:
        """What to look at next."""
        look = f"what brought {names(self.apart)} there. " if self.apart else ""
        return (
            f"Next: {look}Started anew, the job can count its calls, which says which one is missing: under `ringzero "
            "run` on CPUs, with TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/fr_pipe_rank_ on "
            "GPUs."
        )

    def rows(self) -> list[tuple[str, ...]]:
        """A row under ``HEAD`` for each rank."""
        return [
            (str(rank), str(each.pid), each.call or "no communication", each.line)
            for rank, each in sorted(self.ranks.items())
        ]

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        ranks = {str(rank): each._asdict() for rank, each in self.ranks.items()}
        said = {"sentence": self.sentence, "next": self.next, "apart": self.apart}
        return said | {"world_size": self.world_size, "ranks": ranks}

    def _parties(self, ranks):
        parties: dict[tuple, list[int]] = {}
        for rank in sorted(ranks):
            parties.setdefault((self.ranks[rank].call, self.ranks[rank].line), []).append(rank)
        return parties

    def _standing(self, ranks):
        parties = self._parties(ranks)
        return "; ".join(
            f"{names(some)} {verb(some, 'is', 'are')} in {self.ranks[some[0]].place}" for some in parties.values()
        )

    def __str__(self) -> str:
        rows = [HEAD, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self.sentence, self.next, "", *lines])


def ranks_under(agent: int) -> dict[int, int]:
    """``{rank: process id}`` of what the process ``agent`` started: torchrun, or what else starts ranks.

    Raises ValueError for a process that is not there, has no ranks, or has two with one number.
    """
    try:
        below = psutil.Process(agent).children(recursive=True)
    except psutil.NoSuchProcess:
        raise ValueError(f"there is no process {agent}; give the process id of torchrun, as ps shows it") from None
    found: dict[int, int] = {}
    for process in below:
        with contextlib.suppress(psutil.NoSuchProcess, GoneError):  # it has ended since
            rank = _environment(process.pid).get("RANK", "")
            if not rank.isdigit() or _environment(process.ppid()).get("RANK") == rank:  # what a rank has started
                continue
            if int(rank) in found:
                raise ValueError(f"process {agent} has started two ranks {rank}, so two jobs; name the torchrun of one")
            found[int(rank)] = process.pid
    if not found:
        raise ValueError(f"process {agent} has started no process with RANK in its environment, so no rank")
    return found


def rank_of(pid: int) -> int:
    """The rank of a process, by its environment. Raises ValueError if it has none."""
    rank = _environment(pid).get("RANK", "")
    if not rank.isdigit():
        raise ValueError(f"process {pid} has no RANK in its environment, so it is no rank of torchrun")
    return int(rank)


def look(pids: Mapping[int, int]) -> Stacks:
    """Where the ranks with these process ids stand. Raises NotAllowedError."""
    first = {rank: _stack(pid) for rank, pid in pids.items()}
    time.sleep(SETTLED_SECONDS)
    asleep = {rank: _switches(pid) for rank, pid in pids.items()}
    time.sleep(APART_SECONDS)
    woken = {rank for rank, pid in pids.items() if _switches(pid) != asleep[rank]}
    again = {rank: _stack(pid) for rank, pid in pids.items()}
    sizes = [int(_environment(pid).get("WORLD_SIZE") or 0) for pid in pids.values()]
    stand = {}
    for rank in sorted(pids):
        call, line = _place(again[rank])
        stand[rank] = Rank(pids[rank], call, line, again[rank] != first[rank] or bool(call and rank in woken))
    return Stacks(stand, max([*sizes, len(pids)]))


def dumps(pids: Mapping[int, int]) -> list[Path]:
    """The dumps that NCCL's recorders of these ranks write now, being asked; none where they have no pipe."""
    began = time.time()
    asked: list[Path] = []
    for rank, pid in pids.items():
        environment = _environment(pid)
        pipe = Path(f"{environment.get('TORCH_NCCL_DEBUG_INFO_PIPE_FILE', '')}{rank}.pipe")
        if pipe.is_fifo() and _write(pipe):
            default = "/tmp/nccl_trace_rank_"
            older = environment.get("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", default)
            asked.append(Path(f"{environment.get('TORCH_FR_DUMP_TEMP_FILE', older)}{rank}"))
    while asked and time.time() - began < DUMP_SECONDS and not all(_is_new(file, began) for file in asked):
        time.sleep(0.1)
    return [file for file in asked if _is_new(file, began)]


def _switches(pid: int) -> int:
    """How often a process's main thread has gone to sleep; 0 where that says nothing.

    One that waits for gloo sleeps until its call is over, so it came to another one in between. On a GPU it looks at
    the clock again and again.
    """
    with contextlib.suppress(OSError, psutil.Error, AttributeError):
        if "libcuda.so" not in Path(f"/proc/{pid}/maps").read_text():
            return psutil.Process(pid).num_ctx_switches().voluntary
    return 0


def _is_new(file, began):
    with contextlib.suppress(OSError):
        return file.stat().st_mtime >= began - 1 and file.stat().st_size > 0
    return False


def _write(pipe: Path) -> bool:
    """Write a byte into a pipe that somebody reads; whether that could be."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # which fails if nobody reads
    except OSError:
        return False
    try:
        return os.write(descriptor, b"1") == 1
    finally:
        os.close(descriptor)


def _environment(pid: int) -> dict[str, str]:
    try:
        return psutil.Process(pid).environ()
    except psutil.NoSuchProcess:
        raise GoneError(f"there is no process {pid}") from None
    except psutil.AccessDenied:
        raise NotAllowedError(f"process {pid} is another user's; run this as that user or as root") from None


def _stack(pid: int) -> list[dict[str, Any]]:
    """The frames of a process's main thread, innermost first, in the dumps' words."""
    beside = Path(sys.executable).with_name("py-spy")
    program = str(beside) if beside.exists() else shutil.which("py-spy")
    if program is None:
        raise NotAllowedError('stacks of running processes need py-spy: pip install "ringzero[stacks]"')
    command = [program, "dump", "--json", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PY_SPY_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotAllowedError(f"py-spy did not read process {pid} within {PY_SPY_SECONDS:g} s; try again") from None
    try:
        threads = json.loads(done.stdout)
    except ValueError:
        raise NotAllowedError(_refused(pid, done.stderr)) from None
    main = min(threads, key=lambda thread: thread["os_thread_id"] != pid)
    return [{key: frame[key] for key in ("filename", "line", "name")} for frame in main["frames"]]


def _refused(pid: int, said: str) -> str:
    if "ermission" in said:
        return (
            f"py-spy may not look into process {pid}. Run this as root; in a container, start it with "
            "--cap-add SYS_PTRACE; or allow it for your processes: sudo sysctl kernel.yama.ptrace_scope=0"
        )
    last = said.strip().splitlines()[-1:] or ["nothing"]
    return f"py-spy cannot read process {pid}; it said: {last[0]}"


def _place(frames: list[dict[str, Any]]) -> tuple[str, str]:
    """``(what it is in, the caller's line)`` of a stack."""
    call = ""
    for frame in frames:
        name = frame["name"].rpartition(".")[2]
        if IN_BACKWARD in name:
            call = call or "a backward pass"
        elif "/torch/" in frame["filename"].replace("\\", "/") and name in CALLS:
            call = CALLS[name]  # the outermost: all_gather_object calls all_gather
    line, own = entries.line_of(frames), [frame for frame in frames if sources.is_callers(frame["filename"])]
    return call, f"{line}, in {own[0]['name']}" if own else line
