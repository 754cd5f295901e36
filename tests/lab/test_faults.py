"""What the student's code did not cause is no reason in a table and no score: the machine's faults, and the check's."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch.distributed as dist

from ringzero.ranks import pool
from ringzero_course.boxes import fence, sandbox, watches
from ringzero_course.grading import run_notebook as grading
from ringzero_course.grading import verdict
from ringzero_course.lab import Check, budget, execute, fault
from ringzero_course.lab.parameters import GraderFault
from tests.grading import test_grading


@pytest.fixture(autouse=True)
def fresh_budget(monkeypatch):
    monkeypatch.setattr(budget, "_hangs", {})


def right(path):
    dist.barrier()


def killed_once(path):
    """As if ended from outside."""
    first = Path(path)
    if dist.get_rank() == 1 and not first.exists():
        first.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def loses_its_worker_once(path):
    first = Path(path)
    if dist.get_rank() == 1 and not first.exists():
        first.touch()
        os.kill(os.getppid(), signal.SIGKILL)
    dist.barrier()


def kills_itself(path):
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def has_no_room(path):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def has_no_room_once(path):
    first = Path(path)
    if not first.exists() and dist.get_rank() == 0:
        first.touch()
        has_no_room(path)
    dist.barrier()


def nothing_works():
    has_no_room("")


def check_of(function, path):
    check = Check(function, 2, 2, "cpu", ("barrier",), harness=called)
    check.that("it returns", check.run(str(path)), lambda run: None)
    return check


def called(function, path):
    function(path)


@pytest.mark.parametrize("function", [right, killed_once, loses_its_worker_once, has_no_room_once])
def test_what_happens_once_costs_nothing(function, tmp_path):
    assert check_of(function, tmp_path / "first").score() == 2


@pytest.mark.parametrize(("function", "says"), [(kills_itself, "SIGKILL"), (has_no_room, "No space left on device")])
def test_what_the_students_code_does_each_time_is_its_own(function, says, tmp_path):
    check = check_of(function, tmp_path / "first")
    assert check.score() == 0
    assert says in check.verdicts[0].why


def test_what_also_fails_without_the_students_code_has_no_score(monkeypatch, tmp_path):
    monkeypatch.setattr(fault, "_use_the_machine", nothing_works)
    with pytest.raises(GraderFault, match="also without the student's code .*No space left on device"):
        check_of(has_no_room, tmp_path / "first").score()


def test_ranks_that_cannot_start_are_no_score(monkeypatch, tmp_path):
    said = "import sys; sys.exit('[Errno 28] No space left on device')"
    pool.stop()
    monkeypatch.setattr(pool, "torchrun_command", lambda *_: [sys.executable, "-c", said])
    with pytest.raises(GraderFault, match="could not start ranks.*No space left on device"):
        check_of(right, tmp_path / "first").score()


def test_ranks_that_do_not_come_to_the_students_code_are_no_score(monkeypatch, tmp_path):
    monkeypatch.setattr(execute, "play", nothing_works_there)
    with pytest.raises(GraderFault, match="before they came to the student's code .*no threads"):
        check_of(right, tmp_path / "first").score()


def nothing_works_there(*_):
    raise RuntimeError("no threads")


def test_a_check_that_fails_itself_is_no_score(monkeypatch, tmp_path):
    def fails(*_):
        raise KeyError("ours")

    monkeypatch.setattr(execute, "execute", fails)
    with pytest.raises(GraderFault, match="the check itself failed .KeyError: 'ours'.; report this"):
        check_of(right, tmp_path / "first").score()


@pytest.mark.parametrize(
    ("notes", "runs"),
    [
        ([(verdict.STUDENT, "KERNEL DIED in cell [4] (SIGKILL)")], 2),
        ([(verdict.STUDENT, "KERNEL DIED in cell [4] (SIGSEGV)")], 1),
        ([(verdict.LIMIT, "MEMORY LIMIT"), (verdict.STUDENT, "KERNEL DIED in cell [4] (SIGKILL)")], 1),
        ([], 1),
    ],
)
def test_a_notebook_whose_kernel_was_killed_runs_again(monkeypatch, notes, runs):
    ran = []
    monkeypatch.setattr(grading, "_run", lambda nb, settings: ran.append(nb) or ([], notes, 1.0))
    grading.run(None, None)
    assert len(ran) == runs


def test_a_grader_without_room_for_files_gives_no_score(monkeypatch, tmp_path):
    monkeypatch.setattr(grading, "_run", lambda nb, settings: ([], [], 1.0))
    monkeypatch.setattr(fence, "short_temporary_folder", lambda below: tmp_path / "no such folder")
    with pytest.raises(GraderFault, match="no room for its files"):
        grading.run(None, None)


def test_one_students_threads_are_not_counted_against_another(monkeypatch):
    """Where boxes share a user, the kernel's limit is far above a box's, and the grader counts each submission's."""
    many = "import threading, time; [threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(40)]"
    command = [sys.executable, "-c", f"{many}; print(flush=True)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as mine, subprocess.Popen(["sleep", "60"]) as other:
        mine.stdout.readline()
        monkeypatch.setattr(os, "getuid", lambda: 1000)
        monkeypatch.setattr(watches, "_started", lambda: ([psutil.Process(mine.pid)] * (mine.poll() is None), []))
        said = []
        limits = sandbox.Limits(processes=30)
        assert f"--nproc={30 * sandbox.OF_ONE_USER}" in sandbox.enclosed(["true"], [], limits)
        with watches.MemoryWatch(limits, said.append):
            assert mine.wait(30) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
    assert said[0].startswith("PROCESS LIMIT")


def test_a_fault_in_a_test_cell_is_graded_again(monkeypatch, tmp_path):
    """As a full disk is: no score, the exit status says so, and the next run ends with all points."""
    broken = tmp_path / "broken"
    fails = f"import os\nfrom ringzero_course.lab.parameters import GraderFault\nif os.path.exists({str(broken)!r}):\n"
    fails += '    raise GraderFault("no space is left")\n'
    monkeypatch.setattr(test_grading, "TEST_DOUBLE", fails + test_grading.TEST_DOUBLE)
    (tmp_path / "top").mkdir()
    course, handed = test_grading.make_course(tmp_path / "top")
    course.submit("ada", test_grading.LAB, handed.filled())
    broken.touch()
    done = test_grading.command("nbgrader", "autograde", test_grading.LAB, top=course.top)
    assert done.returncode == 1
    assert "no space is left" in done.stderr + done.stdout
    found = verdict.read(course.root / "autograded" / "ada" / test_grading.LAB)
    assert found.kind == verdict.GRADER
    broken.unlink()
    done = test_grading.command("nbgrader", "autograde", test_grading.LAB, top=course.top)
    grade = course.grades(test_grading.LAB)["ada"]
    assert test_grading.scores(grade, test_grading.FULL) == test_grading.FULL
    assert grade.verdict.kind == verdict.OK
