"""``launch``: call a function on N ranks, from a notebook or a script, as if it were one call.

>>> ranks = launch(work, 10, world_size=4)     # doctest: +SKIP
>>> ranks.returns, ranks.output[0], ranks.seconds   # doctest: +SKIP
"""

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

from ringzero.ranks import devices, pool, running, under_torchrun
from ringzero.ranks.job import Job
from ringzero.ranks.results import Ranks, warn_if_cut

LONGEST_TIMEOUT = 1e9  # seconds, thirty years; torch cannot take infinity
_lock = threading.Lock()


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
    pickled = prepare(fn, args, world_size, timeout)
    if under_torchrun.is_rank_of_torchrun():
        if may_lose:
            raise ValueError(
                "may_lose=True does not work under torchrun, which ends all ranks when one dies; start the script with "
                "python, and launch starts the ranks"
            )
        returns, seconds, recorded = under_torchrun.run(fn, args, device, timeout, trace)
        return Ranks(returns, [""] * len(returns), seconds, warn_if_cut(recorded))
    device = devices.resolve(device, world_size)
    if trace and not devices.can_record(device):
        raise ValueError(f'trace=True does not record ranks that share one GPU; use device="cpu", not {device!r}')
    if may_lose and devices.is_strict(device):
        raise ValueError(
            f'may_lose=True does not work with device="{device}": by NCCL\'s rules the survivors of a lost rank hang '
            'for good; use device="cpu"'
        )
    return on_ranks(pickled, Job(world_size, device, timeout, bool(trace), bool(may_lose)), warm)


def on_ranks(pickled: bytes, job: Job, warm: bool = True) -> Ranks:
    """Do the ``job``, its function and arguments ``pickled``, on this process's warm ranks, or on fresh ones."""
    if "OMP_NUM_THREADS" not in os.environ:
        job = replace(job, threads=max(1, (os.cpu_count() or 1) // job.world_size))
    with _lock:
        if warm:
            ranks = pool.acquire(job.world_size, pool.may_optimize(pickled))
            try:
                return running.run(ranks, pickled, job)
            finally:
                if ranks.broken:
                    pool.stop()
        with contextlib.closing(pool.Pool(job.world_size, warm=False)) as cold:
            return running.run(cold, pickled, job)


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
