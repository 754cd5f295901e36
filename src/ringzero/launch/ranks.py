"""``launch``: call a function on N ranks, from a notebook or a script, as if it were one call.

>>> ranks = launch(work, 10, world_size=4)     # doctest: +SKIP
>>> ranks.returns, ranks.output[0], ranks.seconds   # doctest: +SKIP
"""

import html
import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field

from ringzero.launch import plain, pool, sources

GRACE_SECONDS = 0.3  # after one rank failed: how long the others have to say what they saw
_lock = threading.Lock()


@dataclass(frozen=True)
class Ranks:
    """What N ranks gave back.

    ``returns[r]`` is what rank r returned, ``output[r]`` what it printed (stdout and stderr, in order),
    ``trace`` the recorded operations of all ranks when ``trace=True`` (see ``ringzero.launch.trace``),
    ``seconds`` the wall-clock time of the whole call. Shown in a notebook, it shows the output by rank.
    """

    returns: list
    output: list
    seconds: float
    trace: list = field(default_factory=list, repr=False)

    @property
    def world_size(self):
        return len(self.returns)

    def __repr__(self):
        lines = []
        for rank, (text, value) in enumerate(zip(self.output, self.returns, strict=True)):
            lines += [f"rank {rank} │ {line}" for line in text.splitlines()]
            if value is not None:
                lines.append(f"rank {rank} → {value!r}")
        return "\n".join(lines) or f"{self.world_size} ranks returned nothing and printed nothing"

    def _repr_html_(self):
        return f'<pre class="ringzero-ranks">{html.escape(repr(self))}</pre>'


class RankError(RuntimeError):
    """A rank failed. ``rank`` is the first that did, ``output`` what each rank had printed."""

    def __init__(self, message, rank, output):
        super().__init__(message)
        self.rank, self.output = rank, output

    def _render_traceback_(self):  # IPython: the student's lines, not the launcher's
        return [f"{type(self).__name__}: {self}"]


class RankTimeout(RankError):  # noqa: N818  (it is a RankError)
    """The ranks were not done within the call's time."""


def launch(fn, *args, world_size=2, device="auto", timeout=20.0, trace=False):
    """Call ``fn(*args)`` on ``world_size`` ranks and return a ``Ranks``.

    The ranks have a default process group (gloo on the CPU, NCCL with a GPU a rank). ``fn`` may be
    defined in a notebook cell: it travels by value with the globals it uses. It returns plain data
    (numbers, strings, lists, dicts, tensors); tensors come back on the CPU. The first call starts
    the ranks with ``torchrun``; later calls fork from those, so nothing is left from one call to the next.

    ``device`` is "cpu", "cuda", or "auto" (cuda when there is a GPU for each rank). On "cuda" a rank's GPU is its
    default torch device. ``timeout`` is in seconds, for the whole call once the ranks are up.
    ``trace=True`` records each send, receive and collective into ``Ranks.trace``.

    Raises ValueError or TypeError for arguments that cannot work, RankError with the first failing
    rank's traceback, RankTimeout with where each rank was. Whatever happens, no process of the call is left.
    """
    _check(fn, world_size, timeout)
    device = _resolve_device(device, world_size)
    job = _pickle(fn, args)
    with _lock:
        warm = pool.acquire(world_size)
        try:
            with warm.call_directory() as call:
                (call / "job.pkl").write_bytes(job)
                message = {
                    "call": str(call),
                    "world_size": world_size,
                    "device": device,
                    "timeout": timeout,
                    "trace": bool(trace),
                    "cwd": os.getcwd(),
                    "sys_path": sys.path,
                    "env": {},
                    "sources": sources.collect(),
                }
                return _run(warm, call, message, world_size, timeout)
        except RankError:
            raise
        except BaseException:  # an interrupt can leave a message half read
            warm.broken = True
            raise
        finally:
            if warm.broken:
                pool.stop()


def _run(warm, call, message, world_size, timeout):
    start = time.monotonic()
    running = dict.fromkeys(range(world_size))
    exits = {}
    warm.send(running, message)
    try:
        deadline, failed = start + timeout, False
        while running:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            for rank, status in warm.exits(left).items():
                running.pop(rank, None)
                exits[rank] = status
                if not failed and (status != 0 or not (call / f"{rank}.result").exists()):
                    failed, deadline = True, min(deadline, time.monotonic() + GRACE_SECONDS)
        seconds = time.monotonic() - start
        where = {} if failed or not running else _stacks(warm, call, running)
    finally:
        _kill(warm, running)
    output = [_read(call / f"{rank}.out") for rank in range(world_size)]
    if failed:
        raise _failure(call, exits, output)
    if where:
        raise _timeout(call, where, world_size, timeout, output)
    returns, records = [], []
    for rank in range(world_size):
        try:
            returns.append(plain.load(call / f"{rank}.result"))
        except ValueError as error:
            raise RankError(f"rank {rank} left a result that cannot be read: {error}", rank, output) from None
        if message["trace"]:
            records += [{"rank": rank, **record} for record in json.loads(_read(call / f"{rank}.trace"))]
    return Ranks(returns, output, seconds, records)


def _kill(warm, running):
    """End the calls still running. A pool with a rank that does not die is not used again."""
    if not running:
        return
    warm.send(running, {"kill": True})
    deadline = time.monotonic() + 5.0
    left = set(running)
    while left and time.monotonic() < deadline:
        left -= warm.exits(0.1).keys()
    warm.broken = warm.broken or bool(left)


def _failure(call, exits, output):
    """The RankError for the rank that failed first; others usually fail as an echo of it."""
    reports = []
    for rank, status in exits.items():
        if status == 0 and (call / f"{rank}.result").exists():
            continue
        if (call / f"{rank}.error").exists():
            error = json.loads((call / f"{rank}.error").read_text())
            echo = _is_echo(error["message"])
            reports.append((echo, error["time"], rank, f"rank {rank} failed:\n{error['traceback']}"))
        else:
            reports.append((False, 0.0, rank, f"rank {rank} {_how_it_ended(status)}{_last_stack(call, rank)}"))
    _, _, rank, text = min(reports)
    others = sorted(set(range(len(output))) - {rank})
    tail = (
        f"\n\nThe other ranks ({', '.join(map(str, others))}) were stopped because rank {rank} failed."
        if others
        else ""
    )
    printed = _read(call / f"{rank}.out").strip()
    if printed:
        tail = f"\n\nrank {rank} had printed:\n{printed[-2000:]}" + tail
    return RankError(text + tail, rank, output)


def _is_echo(message):
    return any(
        words in message
        for words in ("closed by peer", "reset by peer", "Broken pipe", "Connection refused", "NCCL", "remote process")
    )


def _how_it_ended(status):
    if status is None:
        return "was killed together with the process that watched over it"
    if status < 0:
        return f"was ended by the signal {signal.Signals(-status).name} before it returned"
    return f"ended with exit status {status} before its function returned (os._exit or sys.exit inside it?)"


def _stacks(warm, call, running):
    """``{rank: where it is}`` for the ranks still running."""
    warm.send(running, {"stack": True})
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        time.sleep(0.02)
        if all(_read(call / f"{rank}.stack").count("\n") > 1 for rank in running):
            break
    return {
        rank: "had returned" if (call / f"{rank}.result").exists() else f"was at{_last_stack(call, rank)}"
        for rank in running
    }


def _last_stack(call, rank):
    """The caller's own frames of the last stack that faulthandler wrote for ``rank``, innermost first."""
    labels = {name: label for name, (label, _) in sources.collect().items()}
    lines = []
    for line in _read(call / f"{rank}.stack").splitlines():
        filename = line.split('"')[1] if line.startswith("  File ") else ""
        if filename and not sources.is_plumbing(filename):
            lines.append(line.replace(f'"{filename}"', labels.get(filename, f'"{filename}"')))
    return "".join(f"\n{line}" for line in lines[:8]) or " an unknown place"


def _timeout(call, where, world_size, timeout, output):
    lines = [f"{world_size} ranks were not done after {timeout:g} s."]
    for rank in range(world_size):
        lines.append(f"rank {rank} {where.get(rank, 'had returned')}")
    lines.append(
        "A collective or a receive that some rank never enters waits for ever; so does one entered in another order."
    )
    stuck = [rank for rank in where if where[rank] != "had returned"]
    return RankTimeout("\n".join(lines), stuck[0] if stuck else 0, output)


def _read(path):
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _check(fn, world_size, timeout):
    if not callable(fn):
        raise TypeError(
            f"launch takes a function to run on each rank, not {fn!r}; write launch(fn, arg), not launch(fn(arg))"
        )
    if isinstance(world_size, bool) or not isinstance(world_size, int):
        raise TypeError(f"world_size is {world_size!r}; it is the number of ranks, a whole number from 1")
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}; give at least 1 rank")
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout!r}; give a positive number of seconds")


def _resolve_device(device, world_size):
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f'device is {device!r}; it is "auto", "cpu" or "cuda"')
    if device == "cpu":
        return "cpu"
    import torch

    gpus = torch.cuda.device_count()
    if device == "cuda" and gpus < world_size:
        raise ValueError(
            f'device="cuda" with world_size={world_size} needs {world_size} GPUs and this machine has {gpus}; '
            f'use device="cpu", or world_size={gpus}'
            if gpus
            else f'device="cuda" needs {world_size} GPUs and this machine has none; use device="cpu"'
        )
    return "cuda" if gpus >= world_size else "cpu"


def _pickle(fn, args):
    import cloudpickle

    try:
        return cloudpickle.dumps((fn, args))
    except Exception as error:
        name = getattr(fn, "__name__", repr(fn))
        raise TypeError(
            f"cannot send {name} to the ranks: {_culprit(fn, args) or error}. Create it inside the function instead."
        ) from error


def _culprit(fn, args):
    """The name of the first argument, global or captured variable that cannot be pickled."""
    import cloudpickle

    code = getattr(fn, "__code__", None)
    candidates = [(f"argument {i}", value) for i, value in enumerate(args)]
    if code is not None:
        candidates += [
            (f"its global {name!r}", fn.__globals__[name]) for name in code.co_names if name in fn.__globals__
        ]
        for name, cell in zip(code.co_freevars, fn.__closure__ or (), strict=True):
            candidates.append((f"its captured variable {name!r}", cell.cell_contents))
    for name, value in candidates:
        try:
            cloudpickle.dumps(value)
        except Exception as error:
            return f"{name} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be pickled ({error})"
    return None
