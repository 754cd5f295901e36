"""``launch``: call a function on N ranks, from a notebook or a script, as if it were one call.

>>> ranks = launch(work, 10, world_size=4)     # doctest: +SKIP
>>> ranks.returns, ranks.output[0], ranks.seconds   # doctest: +SKIP
"""

import contextlib
import html
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

from ringzero import processes
from ringzero.explain import deadlock, queues, report
from ringzero.processes import plain
from ringzero.ranks import devices, pool, under_torchrun, warm_rank
from ringzero.record import export, sources, trace_file
from ringzero.record.operation import Operation, what_is_missing

GRACE_SECONDS = 0.3  # after one rank failed: how long the others have to report their own errors
STACK_SECONDS = 5.0  # a rank on a busy machine writes its stack within this; one that is stopped never does
KILL_SECONDS = 30.0
LONGEST_TIMEOUT = 1e9  # seconds, thirty years; torch cannot take infinity
_lock = threading.Lock()


@dataclass(frozen=True)
class Ranks:
    """What N ranks gave back.

    ``returns[r]`` is what rank r returned, ``output[r]`` what it printed (stdout and stderr, in order),
    ``trace`` the operations of all ranks, recorded when ``trace=True`` (see ``ringzero.record.Operation``): of each
    rank the first 2^20, and its last one says how many more there were (``missing``), which the repr says, too,
    ``seconds`` the wall-clock time of the whole call. Shown in a notebook, it shows the output by rank.
    With ``may_lose=True``, ``ended_by`` names the signal that ended a rank before it returned, such as
    ``{2: "SIGKILL"}``, and ``lost`` lists these ranks. A lost rank returned None; what it printed and what it recorded
    until then are there.
    """

    returns: list[Any]
    output: list[str]
    seconds: float
    trace: list[Operation] = field(default_factory=list, repr=False)
    ended_by: dict[int, str] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        return len(self.returns)

    @property
    def lost(self) -> list[int]:
        """The ranks that were lost, in order."""
        return sorted(self.ended_by)

    def save_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the trace as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open: a track for each rank, and
        one for what it computes if the function says so (``ringzero.record.computing``).
        """
        export.save_chrome_trace(self.trace, path)

    def __repr__(self) -> str:
        lines = []
        for rank, (text, value) in enumerate(zip(self.output, self.returns, strict=True)):
            lines += [f"rank {rank} │ {line}" for line in text.splitlines()]
            if rank in self.ended_by:
                lines.append(f"rank {rank} was lost ({self.ended_by[rank]})")
            elif value is not None:
                lines.append(f"rank {rank} → {value!r}")
        lines += [said] if (said := what_is_missing(self.trace)) else []
        return "\n".join(lines) or f"{self.world_size} ranks returned nothing and printed nothing"

    def _repr_html_(self) -> str:
        return f'<pre class="ringzero-ranks">{html.escape(repr(self))}</pre>'


class RankError(RuntimeError):
    """A rank failed. ``rank`` is the first that did, ``output`` what each rank had printed."""

    def __init__(self, message: str, rank: int, output: list[str]):
        super().__init__(message)
        self.rank, self.output = rank, output

    def _render_traceback_(self) -> list[str]:  # IPython shows this instead of the launcher's own lines
        return [f"{type(self).__name__}: {self}"]


class RankTimeout(RankError):  # noqa: N818  (it is a RankError)
    """The ranks were not done within the call's time, or waited for one another for ever: then ``deadlocked``."""

    def __init__(self, message: str, rank: int, output: list[str], deadlocked: bool):
        super().__init__(message, rank, output)
        self.deadlocked = deadlocked


def launch(
    fn: Callable[..., Any],
    *args: Any,
    world_size: int = 2,
    device: str = "auto",
    timeout: float = 20.0,
    trace: bool = False,
    warm: bool = True,
    may_lose: bool = False,
) -> Ranks:
    """Call ``fn(*args)`` on ``world_size`` ranks and return a ``Ranks``.

    The ranks have a default process group (gloo on the CPU, NCCL with a GPU a rank). ``fn`` may be
    defined in a notebook cell: it travels by value with the globals it uses. It returns plain data
    (numbers, strings, lists, dicts, tensors); tensors come back on the CPU. The first call starts
    the ranks with ``torchrun``; later calls fork from those, so nothing is left from one call to the next.

    ``device`` is "cpu", "cuda" (NCCL, a GPU for each rank), "auto" (cuda when there are enough GPUs, else cpu),
    "cuda:0" (all ranks share that GPU and talk through gloo), or "strict": on the CPU, where communication has NCCL's
    rules and what breaks them is an error (``ringzero.strict``); "strict:7" tries other delays than "strict:8". A
    rank's GPU is its default torch device.
    ``timeout`` is in seconds, for the whole call once the ranks are up. A deadlock, ranks that wait for one another so
    that none can ever return, is ended about a second after it began.
    ``trace=True`` records each send, receive and collective into ``Ranks.trace``, and what the function says that it
    computes (``ringzero.record.computing``). ``warm=False`` starts fresh ranks for this call alone, which takes seconds
    (some of them count towards ``timeout``): for code that must not be forked.
    ``may_lose=True``: a rank that a signal ends (``os.kill``, the out-of-memory killer) is lost, and the others go on;
    see ``Ranks.lost``. Over gloo, whoever exchanges messages with a lost rank gets a RuntimeError, which ``fn`` must
    catch; the ranks that do not exchange with it wait until a rank that does leaves the group. Over NCCL nobody gets
    an error, the survivors' collectives hang: there ``fn`` must talk through groups of gloo, and "strict" is refused.
    A rank that raises still ends the call.
    In a script that ``torchrun`` started, on one node or many, the function runs on torchrun's ranks, however many they
    are; every rank gets the results of all, and the trace by rank 0's clock. Where the script has a process group of
    its own, the function has that one, and ``trace=True`` and "strict" are refused. Temporary files go with the call.

    Raises ValueError or TypeError for arguments that cannot work, RankError with the first failing
    rank's traceback or because all ranks were lost, RankTimeout with where each rank was. Whatever happens, no process
    of the call is left.
    """
    job = prepare(fn, args, world_size, timeout)
    if under_torchrun.is_rank_of_torchrun():
        if may_lose:
            raise ValueError(
                "may_lose=True does not work under torchrun, which ends all ranks when one dies; start the script with "
                "python, and launch starts the ranks"
            )
        returns, seconds, recorded = under_torchrun.run(fn, args, device, timeout, trace)
        return Ranks(returns, [""] * len(returns), seconds, _said_if_cut(recorded))
    device = devices.resolve(device, world_size)
    if trace and not devices.can_record(device):
        raise ValueError(f'trace=True does not record ranks that share one GPU; use device="cpu", not {device!r}')
    if may_lose and devices.is_strict(device):
        raise ValueError(
            f'may_lose=True does not work with device="{device}": by NCCL\'s rules the survivors of a lost rank hang '
            'for good; use device="cpu"'
        )
    if warm:
        return on_warm_ranks(job, world_size, device, timeout, trace, may_lose)
    with _lock, contextlib.closing(pool.Pool(world_size, warm=False)) as cold:
        return _call(cold, job, world_size, device, timeout, trace, may_lose)


def on_warm_ranks(
    job: bytes,
    world_size: int,
    device: str,
    timeout: float,
    trace: bool,
    may_lose: bool,
    nodes: tuple[int, ...] = (),
) -> Ranks:
    """Run the pickled ``job``, as ``launch`` says, on this process's warm ranks.

    ``nodes`` are the process ids of those that hold the nodes of an emulated cluster; each has equally many ranks.
    """
    with _lock:
        ranks = pool.acquire(world_size, job)
        try:
            return _call(ranks, job, world_size, device, timeout, trace, may_lose, nodes)
        finally:
            if ranks.broken:
                pool.stop()


def _call(
    ranks: pool.Pool,
    job: bytes,
    world_size: int,
    device: str,
    timeout: float,
    trace: bool,
    may_lose: bool,
    nodes: tuple[int, ...] = (),
) -> Ranks:
    """Run the pickled ``job`` on the first ``world_size`` ranks of a pool."""
    try:
        with ranks.call_directory() as directory:
            (directory / "job.pkl").write_bytes(job)
            if devices.is_strict(device):
                (directory / report.QUEUES).touch()
            message = {
                "call": str(directory),
                "world_size": world_size,
                "nodes": nodes,
                "device": device,
                "timeout": timeout,
                "trace": bool(trace),
                "may_lose": bool(may_lose),
                "threads": None if "OMP_NUM_THREADS" in os.environ else max(1, (os.cpu_count() or 1) // world_size),
                "cwd": os.getcwd(),
                "sys_path": sys.path,
                "sources": sources.collect(),
            }
            try:
                return _run(ranks, directory, message, world_size, timeout)
            finally:
                pool.wished.update(warm_rank.wishes(directory, 0))
    except RankError:
        raise
    except BaseException:  # an interrupt can leave a message half read
        ranks.broken = True
        raise


def _run(warm: pool.Pool, call: Path, message: dict[str, Any], world_size: int, timeout: float) -> Ranks:
    start = time.monotonic()
    running = set(range(world_size))
    exits: dict[int, int | None] = {}
    lost: dict[int, str] = {}
    ended: set[int] = set()  # by themselves, while the others wrote their stacks
    warm.send(running, message)
    try:
        deadline, failed, deadlocked = start + timeout, False, False
        watched = deadlock.Watch(call, world_size)
        while running and not deadlocked:
            left = deadline - time.monotonic()
            if left <= 0 and (failed or left < -processes.END_SECONDS or not _all_returned(call, running)):
                break
            deadlocked = not failed and watched.deadlocked(running)
            for rank, status in warm.exits(min(max(left, 0.01), deadlock.LOOK_SECONDS)).items():
                if rank not in running:  # of a pool larger than the call
                    continue
                running.remove(rank)
                if message["may_lose"] and (status is None or status < 0):
                    _mark_as_gone(call, rank)  # also with a result: the others wait until it is done, or gone
                    if not (call / f"{rank}.result").exists():
                        lost[rank] = report.ended_by(status)
                    continue
                exits[rank] = status
                if not failed and (status != 0 or not (call / f"{rank}.result").exists()):
                    failed, deadline = True, min(deadline, time.monotonic() + GRACE_SECONDS)
        seconds = time.monotonic() - start
        out_of_time = bool(running) and not failed
        if running:
            _ask_for_stacks(warm, call, running, ended)
    finally:
        _kill(warm, running - ended)
    output = [report.read(call / f"{rank}.out") for rank in range(world_size)]
    for rank in exits:
        if not (call / f"{rank}.result").exists():
            _mark_as_gone(call, rank)
    if failed:
        rank, text = report.failure(call, exits, world_size, lost)
        raise RankError(text, rank, output)
    if len(lost) == world_size:
        ends = ", ".join(f"rank {rank} ({how})" for rank, how in lost.items())
        raise RankError(f"all ranks were lost, so none is left to return anything: {ends}", next(iter(lost)), output)
    if out_of_time:
        rank, text = report.timeout(call, running, world_size, seconds if deadlocked else timeout, deadlocked)
        raise RankTimeout(text, rank, output, deadlocked)
    returns, trace, strict = [], [], devices.is_strict(message["device"])
    for rank in range(world_size):
        try:
            returns.append(None if rank in lost else plain.load(call / f"{rank}.result"))
        except ValueError as error:
            raise RankError(f"rank {rank} left a result that cannot be read: {error}", rank, output) from None
        if message["trace"] or strict:
            trace += trace_file.read(call / f"{rank}.trace", rank)
    is_whole = not any(op.missing for op in trace)
    if (
        strict
        and is_whole
        and not lost
        and (why := queues.another_order([[op for op in trace if op.rank == rank] for rank in range(world_size)]))
    ):
        raise RankError(why, 0, output)
    return Ranks(returns, output, seconds, _said_if_cut(trace) if message["trace"] else [], lost)


def _said_if_cut(trace: list[Operation]) -> list[Operation]:
    """The trace; a warning if it is not all of it."""
    if said := what_is_missing(trace):
        warnings.warn(f"{said}; sums over it are too small: record fewer steps in one call", stacklevel=2)
    return trace


def _mark_as_gone(call: Path, rank: int) -> None:
    """Note that ``rank`` ended and did not return: for the survivors, and for who explains what happened."""
    with contextlib.suppress(OSError):  # a rank may have removed the directory, or put links here that lead elsewhere
        folder = os.open(call, os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.close(os.open(f"{rank}.gone", os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=folder))
        finally:
            os.close(folder)


def _all_returned(call: Path, running: Collection[int]) -> bool:
    """Whether these ranks all have written their results: their workers only end what their code has left."""
    return all((call / f"{rank}.result").exists() for rank in running)


def _ask_for_stacks(warm: pool.Pool, call: Path, running: Collection[int], ended: set[int]) -> None:
    """Have the ranks still running write their stacks, and wait until all have, for at most ``STACK_SECONDS``.

    A rank that ends just now writes none: it is added to ``ended``.
    """
    warm.send(running, {"stack": True})
    deadline = time.monotonic() + STACK_SECONDS
    while time.monotonic() < deadline:
        if all(rank in ended or report.read(call / f"{rank}.stack").count("\n") > 1 for rank in running):
            break
        ended.update(rank for rank in warm.exits(0.01) if rank in running)


def _kill(warm: pool.Pool, running: Collection[int]) -> None:
    """End the calls still running. A pool with a rank that does not die within ``KILL_SECONDS`` is not used again."""
    if not running:
        return
    warm.send(running, {"kill": True})
    deadline = time.monotonic() + KILL_SECONDS
    left = set(running)
    while left and time.monotonic() < deadline:
        left -= warm.exits(0.1).keys()
    warm.broken = warm.broken or bool(left)


def prepare(fn: Callable[..., Any], args: tuple[Any, ...], world_size: int, timeout: float) -> bytes:
    """The call as bytes, checked: TypeError or ValueError for what cannot work, naming it."""
    if not callable(fn):
        raise TypeError(
            f"launch takes a function to run on each rank, not {fn!r}; write launch(fn, arg), not launch(fn(arg))"
        )
    if isinstance(world_size, bool) or not isinstance(world_size, int):
        raise TypeError(f"world_size is {world_size!r}; it is the number of ranks, a whole number from 1")
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}; give at least 1 rank")
    if not is_number(timeout) or not 0 < timeout <= LONGEST_TIMEOUT:
        raise ValueError(f"timeout is {timeout!r}; give a positive number of seconds, {LONGEST_TIMEOUT:g} at most")
    return _pickle(fn, args)


def is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _pickle(fn: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    from ringzero.ranks import by_value  # not above: the notebook need not wait for cloudpickle

    try:
        return by_value.dumps((fn, args))
    except Exception as error:
        name = getattr(fn, "__name__", repr(fn))
        raise TypeError(
            f"cannot send {name} to the ranks: {_culprit(fn, args) or error}. Create it inside the function instead."
        ) from error


def _culprit(fn: Callable[..., Any], args: tuple[Any, ...]) -> str | None:
    """The name of the first argument, global or captured variable that cannot be pickled."""
    from ringzero.ranks import by_value

    code = getattr(fn, "__code__", None)
    candidates = [(f"argument {i}", value) for i, value in enumerate(args)]
    if code is not None:
        candidates += [
            (f"its global {name!r}", fn.__globals__[name]) for name in code.co_names if name in fn.__globals__
        ]
        for name, cell in zip(code.co_freevars, fn.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # it has no value yet
                candidates.append((f"its captured variable {name!r}", cell.cell_contents))
    for name, value in candidates:
        try:
            by_value.dumps(value)
        except Exception as error:
            return f"{name} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be pickled ({error})"
    return None
