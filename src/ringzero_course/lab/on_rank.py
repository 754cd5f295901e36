"""On the ranks: play one case after another, and leave a file for each of what came of it."""

import contextlib
import functools
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from numbers import Number
from pathlib import Path

import torch

from ringzero.collectives.run import forget_scratch
from ringzero.ranks import plain_data
from ringzero.record import recorder, sources
from ringzero.record.operation import COMMUNICATION, Operation
from ringzero.strict import watching
from ringzero_course.lab import failure
from ringzero_course.lab.payloads import no_other_way
from ringzero_course.lab.runs import Case, Run

PATIENCE_SECONDS = 1.0  # how long a rank that has played a case waits for the others before it leaves the call
PATIENCE_AFTER_AN_ERROR_SECONDS = 0.3
LONGEST_ENTRY_SECONDS = 10.0
# A loop is endless that computes for so many seconds of CPU time and sends nothing, or computes for so long and sends
# so often. The labs' right solutions compute for half a second, and one that is slow on purpose for two; a crowded
# machine may take twice as long for the same, and a right solution is not to be refused for that.
ENDLESS_SECONDS = 6.0
STRICT_TAKES = 5  # times as long, where a loop goes over elements one by one: each is looked at
MANY_OPERATIONS = 2_000
LOOK_SECONDS = 0.1  # of CPU time, between two looks at what a rank does
GO_ON, STOP = "go on", "stop"  # what comes after a case


class EndlessLoop(BaseException):
    """A rank computed for so long that a loop must be endless. No ``except Exception`` of a student catches it."""


def play(students: list[bytes], harness: Callable | None, cases: list[Case], directory: str) -> None:
    """Play every case on this rank and leave a report of each as the file ``<case>-<rank>``.

    ``students`` are pickled functions of a student. A case calls the first, or ``harness`` with all of them first.
    """
    import cloudpickle

    _all_enter(directory, cases[0].ranks)
    loaded = [cloudpickle.loads(code) for code in students]
    player = Player(loaded[0] if harness is None else functools.partial(harness, *loaded), cases[0].watched)
    path = Path(directory)
    for index, case in enumerate(cases):
        try:
            report = player.play(case)
            if (
                report["device"] == "cpu"
                and not case.strict
                and any(Operation(*op).end is None for op in report["operations"])
            ):
                _decide(path, index, STOP)  # what was not waited for could disturb the next case
            _leave(report, path, index)
        except (Exception, SystemExit, KeyboardInterrupt, EndlessLoop) as error:
            (path / f"{index}-failed").touch()
            _leave(player.error_report(error), path, index)
            if isinstance(error, EndlessLoop):
                raise RuntimeError(str(error)) from None
            if not _all_go_on(path, index, case, PATIENCE_AFTER_AN_ERROR_SECONDS):
                raise
        else:
            if not _all_go_on(path, index, case, PATIENCE_SECONDS):
                return


def entered(directory: str, rank: int) -> Path:
    """The file that says that this rank came to the student's code."""
    return Path(directory) / f"entered-{rank}"


def _all_enter(directory, ranks):
    """Wait until all ranks are here: a student's code that ends its process ends none on its way to the group."""
    entered(directory, torch.distributed.get_rank()).touch()
    deadline = time.monotonic() + LONGEST_ENTRY_SECONDS
    while not all(entered(directory, rank).exists() for rank in range(ranks)) and time.monotonic() < deadline:
        time.sleep(0.0005)


def _all_go_on(directory, index, case, patience):
    """Whether all ranks play the next case together, or all leave: where one takes long, those that wait must return.

    Only then can ``launch`` tell that the others wait for ranks that will not come. If they were just slow, the cases
    left are played in another launch. No message is sent for this: the traffic is the student's.
    """
    deadline = time.monotonic() + patience
    while not all((directory / f"{index}-{rank}").exists() for rank in range(case.ranks)):
        if time.monotonic() > deadline:
            return _decide(directory, index, STOP) == GO_ON
        time.sleep(0.0005)
    failed = (directory / f"{index}-failed").exists()
    return _decide(directory, index, STOP if failed and _is_spoilt(directory, index, case) else GO_ON) == GO_ON


def _is_spoilt(directory, index, case):
    """Whether a case in which some rank raised leaves messages behind that the next case would receive.

    A function that is not written yet raises in every case, so there the cases left are not worth playing.
    """
    reports = [plain_data.load(directory / f"{index}-{rank}") for rank in range(case.ranks)]
    operations = [[Operation(*op) for op in report["operations"]] for report in reports]
    unwritten = any(report.get("error") == NotImplementedError.__name__ for report in reports)
    return unwritten or not failure.is_clean(Run(case, problem=None, operations=operations))


def _decide(directory, index, what):
    """What comes after case ``index``: ``what``, unless another rank was first to decide."""
    with contextlib.suppress(FileExistsError):
        os.symlink(what, directory / f"{index}-next")  # comes into being with its content, for one rank only
    return os.readlink(directory / f"{index}-next")


def _leave(report, directory, index):
    path = directory / f"{index}-{torch.distributed.get_rank()}"
    unfinished = path.with_name(path.name + ".unfinished")
    plain_data.dump(report, unfinished)
    unfinished.rename(path)


@contextlib.contextmanager
def _endless_loops_end(seconds: float) -> Iterator[None]:
    """Inside, EndlessLoop is raised where this rank computes for longer than so many seconds.

    Where it sends little, only the main thread's time counts, and only since it last communicated or imported
    something. So a machine that is busy, where everything takes more CPU time too, does not make a program endless. Not
    on a GPU, where a rank that waits computes.
    """
    if threading.current_thread() is not threading.main_thread() or torch.get_default_device().type != "cpu":
        yield
        return

    first, start = recorder.count(), time.process_time()
    done, since = (first, len(sys.modules)), time.thread_time()

    def look(*_):
        nonlocal done, since
        now = recorder.count(), len(sys.modules)
        if now != done:
            done, since = now, time.thread_time()
        sends_on = now[0] - first > MANY_OPERATIONS and time.process_time() - start > seconds
        if sends_on or time.thread_time() - since > seconds:
            did = f"sent and received {now[0] - first:,} times" if sends_on else f"computed for {seconds:.2g} s"
            raise EndlessLoop(f"{did} and came to no end: is this loop endless?")

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, LOOK_SECONDS, LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _view(value, tensor):
    """At which element of the tensor that a function was given the one that it returned begins; None if elsewhere."""
    if tensor is None or not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    same = value.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
    return value.storage_offset() if same else None


def _as_floats(value):
    """Fractions and other exact numbers as floats, also in tuples, lists and dicts."""
    if type(value) is dict:
        return {key: _as_floats(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return (list if isinstance(value, list) else tuple)(map(_as_floats, value))
    exact = isinstance(value, Number) and not isinstance(value, int | float | complex)
    return float(value) if exact else value


class Player:
    """Calls ``function`` on this rank for one case after another, and says what came of each as plain data."""

    def __init__(self, function, watched):
        self._function, self._rank = function, torch.distributed.get_rank()
        self._watched = watched  # whether the first element of each message is to be kept
        self._kept = []  # tensors of the cases played: a message nobody waited for may still land in one
        self._before = 0  # how many operations this rank had recorded when the case began

    def play(self, case: Case) -> dict:
        args, tensor, caller = list(case.args), None, None
        if case.numel is not None:
            tensor = case.input(self._rank).to(torch.get_default_device())
            caller = tensor.detach()  # another name for its memory
            args.insert(0, tensor)
            self._kept.append(caller)
        self._before = len(recorder.recorded())
        forget_scratch()  # of the case before: a check may count every byte that is held
        with contextlib.ExitStack() as stack:
            if self._watched:
                stack.enter_context(recorder.noting_heads())
            stack.enter_context(no_other_way())
            stack.enter_context(_endless_loops_end(ENDLESS_SECONDS * (STRICT_TAKES if case.strict else 1)))
            value = self._function(*args, **case.options)
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        if case.strict:
            watching.finish()
        return {
            "returned": _as_floats(value),
            "after": caller,
            "moved": tensor is not None and caller is not None and not tensor.is_set_to(caller),
            "view": _view(value, caller),
            "operations": self._operations(),
            "time": time.time(),
            "device": (torch.get_default_device() if tensor is None else tensor.device).type,
        }

    def error_report(self, error: BaseException) -> dict:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if sources.is_callers(frame.filename) and frame.filename != "<string>"  # which a dataclass has made
        ]
        return {
            "error": type(error).__name__,
            "endless": isinstance(error, EndlessLoop),
            "message": str(error),
            "frames": [[sources.label(each.filename), each.lineno, each.name, each.line or ""] for each in frames],
            "operations": [] if isinstance(error, EndlessLoop) else self._operations(),  # there may be very many
            "time": time.time(),
        }

    def _operations(self):
        """What this rank communicated in the case."""
        return [tuple(op) for op in recorder.recorded()[self._before :] if op.stream == COMMUNICATION]
