"""Run a student's function on ranks, on fresh inputs, and bring back what it returned and what it sent.

Several cases travel in one launch. Each rank leaves a file for each case it finished, so a case that raises or hangs
loses only itself: the cases after it run in a launch of their own.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ringzero
from ringzero.processes import box
from ringzero.ranks import RankError, RankTimeout, plain_data
from ringzero.record.operation import Operation
from ringzero_course.lab import budget, failure, fault
from ringzero_course.lab.handle import Handle
from ringzero_course.lab.on_rank import GO_ON, entered, play
from ringzero_course.lab.parameters import GraderFault
from ringzero_course.lab.runs import Run

MOST_ENDED = 4  # cases of a check that end a process; new ones take seconds, and what is left is not run
LARGEST_REPORT = 2**28  # bytes of what one rank leaves of one case; the process that reads them has no limit of its own
HUNG_SHARE = 0.85  # of a call's time: a case that had less of it gets another call


def execute(
    runs: list[Run], students: list[Handle], harness: Callable | None, device: str, ended: list[str] | None = None
) -> None:
    """Fill ``runs`` (all with the same number of ranks) with what came of their cases.

    Each calls the first of ``students``; with a ``harness``, the harness with all students as its first arguments.
    ``ended`` grows by what is said of each case that ends a process, as a message does that is larger than its room.

    Raises GraderFault where the ranks cannot start, or fail also without the student's code.
    """
    ended = [] if ended is None else ended
    problem = next((student.problem for student in students if student.problem), None)
    problem = problem or budget.why_not_again(*students)
    if problem is not None:
        _fail(runs, problem)
        return
    todo = list(runs)
    while todo and len(ended) < MOST_ENDED:
        todo = _launch(todo, students, harness, device, ended)
    if todo:
        _fail(todo, f"not run: {ended[-1]}")


def _launch(runs, students, harness, device, ended):
    """One launch of all ``runs``. Returns those that must be run again, in a launch of their own."""
    student, ranks = students[0], runs[0].world_size
    seconds = budget.call_seconds(ranks) * runs[0].patience
    with tempfile.TemporaryDirectory(prefix="ringzero-lab-") as directory:
        if (asked := box.asked_for()) is not None:
            asked.give(Path(directory))
        began, error, printed = time.time(), None, []
        try:
            done = ringzero.launch(
                play, [student.code for student in students], harness, [run.case for run in runs], directory,
                world_size=ranks, device=device, timeout=seconds, trace=True,
            )  # fmt: skip
            printed = done.output
        except RankError as caught:
            error, printed = caught, caught.output
        except (TypeError, ValueError) as caught:
            return _fail(runs, failure.one_line(caught))
        except (RuntimeError, OSError) as caught:
            raise GraderFault(f"the ranks could not run ({failure.one_line(caught)})") from caught
        for index, run in enumerate(runs):
            reports, rest = [_report(directory, index, rank) for rank in range(ranks)], runs[index:]
            run.printed = printed
            if all(report is not None and "returned" in report for report in reports):
                _fill(run, reports)
                if not failure.is_clean(run):  # a message left over would be received in the next case
                    return rest[1:]
            elif all(reports) and _went_on(directory, index):
                failed = [rank for rank in range(ranks) if "error" in reports[rank]]
                first = min(failed, key=lambda rank, reports=reports: reports[rank]["time"])
                run.problem = failure.raised(first, reports[first], student)
                if _is_tried_again(run, run.problem, True, device):
                    return rest
            elif error is None and index and not any(reports):
                return rest  # the ranks left before this case
            elif isinstance(error, RankTimeout):  # an error left now is an echo of how the call was ended
                had = min(seconds, time.time() - began)
                if index and had < HUNG_SHARE * seconds and not error.deadlocked:
                    return rest
                return _after_no_end(rest, error, reports, had, student)
            else:
                # Others may have been on their way to the student's code when the first rank failed there.
                is_entered = entered(directory, 0 if error is None else error.rank).exists()
                return _after_an_end(rest, error, reports, is_entered, student, device, ended)
            began = max(report["time"] for report in reports)
    return []


def _after_no_end(rest, error, reports, had, student):
    """What must be run again where the first of the ``rest`` had not ended after so many seconds."""
    run, *after = rest
    if not error.deadlocked and run.patience == 1.0 and (more := budget.patience()) is not None:
        run.patience = more
        return rest
    if run.case.strict:
        run.problem = failure.why_stuck(error) + failure.called_in(error, student)
    else:
        run.problem = failure.no_end(error, had, reports, student)
    return _hung(run, after, student)


def _after_an_end(rest, error, reports, is_entered, student, device, ended):
    """What must be run again where a rank failed or ended in the first of the ``rest``, and the others left."""
    run, *after = rest
    run.problem = _what_failed(error, reports, student)
    said = run.problem if error is None else f"{run.problem} {error} {' '.join(run.printed)}"
    if _is_tried_again(run, said, is_entered, device):
        return rest
    if any(report is not None and report.get("endless") for report in reports):
        return _hung(run, after, student)
    if error is not None and (error.rank >= len(reports) or reports[error.rank] is None):
        ended.append(f"{student.name} ended a process with {run.case}: {run.problem}")
    if failure.same_everywhere(reports) == NotImplementedError.__name__:
        return _fail(rest, failure.not_written(student.name))
    return after


def _is_tried_again(run, said, is_entered, device):
    """Whether a failed run is made again, because the machine may have caused what is ``said`` of it.

    ``is_entered``: whether the rank that failed had come to the student's code. Raises GraderFault if the machine is
    the cause again.
    """
    if is_entered and not fault.may_be_ours(said):
        return False
    if not run.tried_again:
        run.tried_again = True
        return True
    if (why := fault.why_machine_fails(run.world_size, device)) is not None:
        raise GraderFault(f"the ranks failed, also without the student's code ({why})")
    if not is_entered:
        raise GraderFault(f"the ranks failed before they came to the student's code ({run.problem})")
    return False


def _hung(run, after, student):
    """Remember that the student's function came to no end in ``run``; those ``after`` it are not made."""
    what = f"{student.name} hung with {run.case}"
    budget.hung(student, f"{what}: {run.problem}")
    return _fail(after, f"not run: {what}")


def _went_on(directory, index):
    """Whether the ranks played the next case in the same launch."""
    decision = Path(directory) / f"{index}-next"
    return decision.is_symlink() and os.readlink(decision) == GO_ON


def _what_failed(error, reports, student):
    """What the first rank that failed raised, or how it ended."""
    first = error.rank if error is not None else 0
    report = reports[first] if first < len(reports) else None
    if report is not None and "error" in report:
        return failure.raised(first, report, student)
    return failure.ended(error, first, student) if error is not None else f"rank {first} left no result"


def _fail(runs, problem):
    for run in runs:
        run.problem = problem
    return []


def _fill(run, reports):
    run.problem = None
    run.returned, run.after = ([report[what] for report in reports] for what in ("returned", "after"))
    run.views = [report.get("view") for report in reports]
    run.moved = [report.get("moved", False) for report in reports]
    run.operations = [[Operation(*op) for op in report["operations"]] for report in reports]
    run.device = reports[0]["device"]


def _report(directory, index, rank):
    path = Path(directory) / f"{index}-{rank}"
    try:
        if path.lstat().st_size > LARGEST_REPORT:
            return None
        return plain_data.load(path)
    except (FileNotFoundError, OSError, ValueError):
        return None
