"""The grader: what it says of each kind of submission, and that none of them reaches the next student."""

import contextlib
import copy
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest
import zmq
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.utils import compute_checksum

from ringzero_course.authoring import sample_class
from ringzero_course.boxes import sandbox
from ringzero_course.boxes.fence import Fence
from ringzero_course.grading import course as courses
from ringzero_course.grading import verdict
from ringzero_course.grading.provisioner import BoxedKernelManager

LAB = "tiny"
CELL_SECONDS = 10.0
TOP = Path(__file__).resolve().parents[2]


BOXED = sandbox.missing_ability() is None  # else the class is graded in one kernel; some verdicts differ

# A lab that needs no ranks: two functions, two test cells, one written answer.

TEST_DOUBLE = """import sys
from ringzero_course.lab.apart import call
print("noise of a library", file=sys.stderr)
points = 1.0 * (call("double", 2) == 4)
### BEGIN HIDDEN TESTS
secret_argument = 3.25
points += 1.0 * (call("double", secret_argument) == 2 * secret_argument)
### END HIDDEN TESTS
points"""
TEST_TRIPLE = """from ringzero_course.lab.apart import call
points = 1.0 * (call("triple", 1) == 3) + (WORLD_SIZE == 4)
### BEGIN HIDDEN TESTS
assert call("triple", "ab") == "ababab", "a sentence for the student"
### END HIDDEN TESTS
points + 1.0"""
GOOD = {"double": "def double(x):\n    return 2 * x", "triple": "def triple(x):\n    return 3 * x"}
FULL = {"test_double": 2, "test_triple": 3}
NOTHING = {"test_double": 0, "test_triple": 0}


def metadata(grade_id, **more):
    flags = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3}
    return {"nbgrader": {**flags, "grade_id": grade_id, **more}}


def source():
    cells = [
        new_code_cell('WORLD_SIZE = 2\nDEVICE = "cpu"', metadata={"tags": ["parameters"]}, id="parameters"),
        new_markdown_cell("Double it.", id="text"),
    ]
    for name, test, points in (("double", TEST_DOUBLE, 2), ("triple", TEST_TRIPLE, 3)):
        solution = f"### BEGIN SOLUTION\n{GOOD[name]}\n### END SOLUTION"
        cells.append(new_code_cell(solution, metadata=metadata(name, solution=True), id=name))
        graded = metadata(f"test_{name}", grade=True, locked=True, points=points)
        cells.append(new_code_cell(test, metadata=graded, id=f"test_{name}"))
    written = "### BEGIN SOLUTION\nBecause.\n### END SOLUTION"
    cells.append(new_markdown_cell(written, metadata=metadata("why", grade=True, solution=True, points=1), id="why"))
    return new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
    )


class Handed:
    """Submissions made from the released notebook."""

    def __init__(self, release):
        self.release = release

    def filled(self, **cells):
        notebook = copy.deepcopy(self.release)
        for cell in notebook.cells:
            replaced = {**GOOD, **cells}.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if replaced is not None:
                cell.source = replaced
        return notebook

    def changed(self, change, **cells):
        notebook = self.filled(**cells)
        change(notebook)
        return notebook


def _first_cell(source):
    def change(notebook):
        notebook.cells.insert(0, new_code_cell(source, id="first"))

    return change


SHOWS_NOTHING = "get_ipython().display_formatter.format = lambda *a: ({}, {})"
READS_THE_TEST = """import inspect
def double(x):
    frame = inspect.currentframe().f_back
    print(get_ipython().history_manager.input_hist_raw[-1])
    return 2 * x"""

# More hostile ones are in tests/hostile.
# name -> (what is handed in, its scores, the kind of verdict, words of the reason or the notes)
CLASS = {
    "a_good": (lambda h: h.filled(), FULL, "ok", ""),
    "b_untouched": (lambda h: h.release, NOTHING, "student fault", "NotImplementedError"),
    "c_kernel_exits": (lambda h: h.filled(triple="import os\nos._exit(0)"), {"test_double": 2, "test_triple": 0},
                       "student fault", "KERNEL DIED in cell [4] (exit status 0)"),
    "d_loop": (lambda h: h.filled(double="def double(x):\n    while True: pass"), {"test_double": 0, "test_triple": 3},
               "limit", "TIME LIMIT in cell [3]"),
    "g_no_score": (lambda h: h.changed(_first_cell(SHOWS_NOTHING)),
                   NOTHING, "student fault", "LabError" if BOXED else "did not end in a number"),
    "g_infinite_score": (lambda h: h.filled(double="class N(float):\n    def __rmul__(self, x): return float('nan')\n"
                                            "    def __eq__(self, x): return N(1)\ndouble = N"), {"test_double": 0},
                         "ok", ""),
    "g_two_scores": (lambda h: h.filled(double="import sys\ndef double(x):\n    sys.displayhook(2.0)\n    return x"),
                     {"test_double": 0}, *(("ok", "") if BOXED else ("student fault", "did not end in a number"))),
    "h_reads_the_test": (lambda h: h.filled(double=READS_THE_TEST),
                         *(({"test_double": 0}, "student fault", "LabError") if BOXED else (FULL, "ok", ""))),
    "h_fails_hidden": (lambda h: h.filled(triple="def triple(x):\n    return x + x + x if x == 1 else None"),
                       {"test_double": 2, "test_triple": 0}, "student fault", "AssertionError"),
    "i_truncated": (lambda h: nbformat.writes(h.release)[:700].encode(), NOTHING,
                    "invalid submission", "not valid JSON"),
    "z_good": (lambda h: h.filled(), FULL, "ok", ""),
}  # fmt: skip


def make_course(top, extra=""):
    shutil.copy(TOP / courses.CONFIG, top)
    with open(top / courses.CONFIG, "a") as config:
        config.write(f"\nc.ExecuteWithPapermill.cell_seconds = {CELL_SECONDS}\n")
        config.write(f"c.ExecuteWithPapermill.sandbox = {BOXED}\n{extra}")
    course = courses.Course(top)
    course.hand_out(LAB, source())
    release = nbformat.read(course.root / "release" / LAB / f"{LAB}.ipynb", as_version=4)
    return course, Handed(release)


def command(*words, top):
    """A command as one types it, in the folder ``top``; finds the environment's scripts, and these tests' modules."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "src")])}
    return subprocess.run(words, cwd=top, env=environment, capture_output=True, text=True, check=False)


def running(text):
    """Processes with ``text`` in their command line."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if text in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def scores(grade, like):
    return {name: grade.cells[name][0] for name in like}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The class above, graded with the command an instructor types."""
    course, handed = make_course(tmp_path_factory.mktemp("class"))
    for name, (make, *_) in CLASS.items():
        course.submit(name, LAB, make(handed))
    before = set(_temporary_folders())
    done = command("nbgrader", "autograde", LAB, top=course.top)
    left = set(_temporary_folders()) - before
    assert command("nbgrader", "generate_feedback", LAB, top=course.top).returncode == 0
    return SimpleNamespace(root=course.root, top=course.top, grades=course.grades, done=done, left=left)


@pytest.fixture(scope="module")
def grades(graded):
    return graded.grades(LAB)


def _temporary_folders():
    ended = [path for path in Path("/tmp").glob("rz-grade-*") if not psutil.pid_exists(int(path.name.split("-")[2]))]
    return [*ended, *Path("/tmp").glob("left-by-a-student-*")]  # the others are those of tests beside this one


@pytest.mark.parametrize("name", CLASS)
def test_each_submission_gets_its_scores_and_verdict(grades, name):
    _, expected, kind, words = CLASS[name]
    grade = grades[name]
    assert scores(grade, expected) == expected
    assert grade.verdict.kind == kind
    assert words in "\n".join([grade.verdict.reason, *grade.verdict.notes])


def test_exit_status_and_log_name_who_needs_a_person(graded):
    assert graded.done.returncode == 1
    told = graded.done.stderr.split("A person must look")[1]
    assert {name for name in CLASS if f"{name}:" in told} == {name for name in CLASS if name.startswith("i_")}


def test_each_line_of_the_log_says_whose_it_is(graded):
    lines = [line for line in graded.done.stderr.splitlines() if line.startswith("[AutogradeApp")]
    assert lines
    of_the_machine = "A person must look", "Grading has its files in"
    assert not [line for line in lines if not any(text in line for text in (*of_the_machine, *CLASS))]


def test_nothing_is_left_running_or_lying_about(graded):
    assert graded.left == set()


def test_a_written_answer_waits_for_a_person(grades):
    assert grades["a_good"].cells["why"] == (0, 1)
    assert grades["b_untouched"].cells["why"] == (0, 1)


def test_the_injected_cell_does_not_stay(graded):
    path = graded.root / "autograded" / "a_good" / LAB / f"{LAB}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert [cell.id for cell in notebook.cells] == [cell.id for cell in source().cells]
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == [1, 2, 3, 4, 5]
    assert "papermill" not in path.read_text()


WORDS = {verdict.LIMIT: "Something took too long", verdict.INVALID: "Could not be graded"}


@pytest.mark.parametrize("name", CLASS)
def test_feedback_says_why_and_shows_nothing_hidden(graded, grades, name):
    page = (graded.root / "feedback" / name / LAB / f"{LAB}.html").read_text()
    assert WORDS.get(grades[name].verdict.kind, 'class="headline"') in page
    for hidden in ("secret_argument", "HIDDEN TESTS", "ababab"):
        assert hidden not in page
    assert not (graded.root / "feedback" / name / LAB / verdict.FILENAME).exists()


def test_feedback_shows_the_students_error(graded):
    page = (graded.root / "feedback" / "h_fails_hidden" / LAB / f"{LAB}.html").read_text()
    assert "AssertionError" in page
    assert "a sentence for the student" in page


def test_a_second_run_skips_what_is_done_and_still_says_who_needs_a_person(graded):
    def written():
        return {path: path.stat().st_mtime_ns for path in (graded.root / "autograded").rglob("*.*")}

    before, files = graded.grades(LAB), written()
    done = command("nbgrader", "autograde", LAB, top=graded.top)
    assert done.returncode == 1
    assert graded.grades(LAB) == before
    assert written() == files


def test_the_same_submission_gets_the_same_verdict_again(graded, grades):
    for name in ("c_kernel_exits", "i_truncated", "z_good"):
        command("nbgrader", "autograde", LAB, "--student", name, "--force", top=graded.top)
        again = graded.grades(LAB)[name]
        assert again.cells == grades[name].cells
        assert (again.verdict.kind, again.verdict.reason) == (grades[name].verdict.kind, grades[name].verdict.reason)


def test_validate_works_on_a_notebook(graded):
    shutil.copy(graded.root / "submitted" / "z_good" / LAB / f"{LAB}.ipynb", graded.top / "mine.ipynb")
    done = command("nbgrader", "validate", "mine.ipynb", top=graded.top)
    assert done.returncode == 0, done.stderr
    assert "VALIDATION FAILED" in done.stdout  # the answer in words is not written


def test_validate_shows_the_table_of_a_check_that_fails(graded):
    rows = 'Row("doubles", False, "it triples", 0.0, 2.0), Row("at all", True, "", 1.0, 1.0)'
    shows = f'from ringzero_course.lab.table import Row, Table\nTable("double", ({rows}), 1.0, 3.0).show()\n1.0'
    cell = new_code_cell(shows, metadata=metadata("test_double", grade=True, locked=True, points=3, cell_type="code"))
    cell.metadata.nbgrader.checksum = compute_checksum(cell)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=[cell], metadata=kernel), graded.top / "wrong.ipynb")
    done = command("nbgrader", "validate", "wrong.ipynb", top=graded.top)
    assert "double: 1 of 3 points\n  FAIL  0.00/2.00  doubles\n                   it triples\n" in done.stdout, done
    assert "show()" not in done.stdout  # no source


WAITS = """
import pathlib as _pathlib
import time as _time
import ringzero_course.grading.kernels as _kernels
_ran = _kernels.GradingClient._run_where_it_belongs
def _and_wait(client, cell, index):
    _ran(client, cell, index)
    while "# waits" in cell.source and not _pathlib.Path({go!r}).exists():
        _time.sleep(0.05)
_kernels.GradingClient._run_where_it_belongs = _and_wait
"""


def test_a_grader_that_is_killed_is_run_again_and_ends_the_same(tmp_path):
    go = tmp_path / "go"  # until it is there, the second submission's grading does not end
    course, handed = make_course(tmp_path, WAITS.format(go=str(go)))
    daemon = "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '3151'])\n"
    for name in ("a", "b", "c"):
        course.submit(name, LAB, handed.filled(double=daemon + "# waits\n" * (name == "b") + GOOD["double"]))
    words = [sys.executable, "-m", "nbgrader", "autograde", LAB]
    grader = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while not ((course.root / "autograded" / "b").exists() and running("sleep 3151")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        grader.send_signal(signal.SIGKILL)
        grader.wait()
    assert set(course.grades(LAB)) == {"a"}
    go.touch()
    assert command("nbgrader", "autograde", LAB, top=tmp_path).returncode == 0
    grades = course.grades(LAB)
    assert {name: scores(grade, FULL) for name, grade in grades.items()} == dict.fromkeys("abc", FULL)
    assert running("sleep 3151") == []
    assert [path for path in _temporary_folders() if f"-{grader.pid}-" in path.name] == []


BROKEN = """
import sys
import ringzero_course.grading.run_notebook as _run_notebook
_run = _run_notebook.run
def _broken(nb, *rest):
    if any("disk full" in cell.source for cell in nb.cells):
        raise OSError(28, "No space left on device")
    return _run(nb, *rest)
if sys.argv[0].endswith("nbgrader"):  # and not in the tests' own process, which reads this file too
    _run_notebook.run = _broken
"""


def test_a_fault_of_the_grader_is_not_a_score(tmp_path):
    course, handed = make_course(tmp_path, BROKEN)
    course.submit("a", LAB, handed.filled(double="# disk full\n" + GOOD["double"]))
    course.submit("b", LAB, handed.filled())
    done = command("nbgrader", "autograde", LAB, top=tmp_path)
    assert done.returncode == 1
    assert "a: grader fault: OSError: [Errno 28] No space left on device" in done.stderr
    grades = course.grades(LAB)
    assert set(grades) == {"b"}  # a has no row that would read as 0
    assert scores(grades["b"], FULL) == FULL
    assert verdict.read(course.root / "autograded" / "a" / LAB).kind == verdict.GRADER

    config = tmp_path / courses.CONFIG
    config.write_text(config.read_text().replace(BROKEN, ""))
    assert command("nbgrader", "autograde", LAB, top=tmp_path).returncode == 0
    assert scores(course.grades(LAB)["a"], FULL) == FULL


def test_a_notebook_has_a_wall_clock_of_its_own(tmp_path):
    limits = ("cell_seconds = 300.0", "notebook_seconds = 8.0")  # a cell alone may take longer than the notebook
    course, handed = make_course(tmp_path, "".join(f"c.ExecuteWithPapermill.{limit}\n" for limit in limits))
    course.submit("a", LAB, handed.filled(triple="import time\ntime.sleep(3000)"))
    course.submit("b", LAB, handed.filled())
    course.autograde(LAB)
    grades = course.grades(LAB)
    assert scores(grades["a"], FULL) == {"test_double": 2, "test_triple": 0}
    assert grades["a"].verdict.kind == "limit"
    assert "at most 8 s" in grades["a"].verdict.reason
    assert scores(grades["b"], FULL) == FULL


FLOOD = """
import hmac, signal, time
kernel = get_ipython().kernel
asked, socket = kernel._parent_ident["shell"], kernel.shell_stream.socket
def flood():
    number = 0
    while True:
        number += 1
        header = b'{"msg_id": "%d", "msg_type": "execute_reply", "date": "2026-01-01T00:00:00Z", "version": "5.3"}'
        parts = [header % number, b"{}", b"{}", b"{}"]
        signed = hmac.digest(kernel.session.key, b"".join(parts), "sha256").hex().encode()
        socket.send_multipart([*asked, b"<IDS|MSG>", signed, *parts])
signal.signal(signal.SIGINT, signal.SIG_IGN)
kernel.shell_channel_thread.io_loop.add_callback(flood)  # the thread that may use the socket
time.sleep(1000)
"""
CHATTER = """
import threading, time
kernel, send = get_ipython().kernel, get_ipython().kernel.session.send
kernel.session.send = lambda stream, kind, *a, **k: None if kind == "status" else send(stream, kind, *a, **k)
def chatter():
    while True:
        send(kernel.iopub_socket, "stream", {"name": "stdout", "text": "x"}, ident=b"x")
        time.sleep(0.05)
threading.Thread(target=chatter, daemon=True).start()
"""


@pytest.mark.skipif(not BOXED, reason="no sandboxes here")
def test_a_kernel_that_talks_without_end_is_ended(tmp_path):
    """Its reader always finds a message, and does not look at the clock."""
    more = "c.ExecuteWithPapermill.notebook_seconds = 8.0\n"
    more += "import ringzero_course.grading.kernels\nringzero_course.grading.kernels.LAST_RESORT_SECONDS = 3\n"
    course, handed = make_course(tmp_path, more)
    for student, cell in (("answers", FLOOD), ("outputs", CHATTER)):
        course.submit(student, LAB, handed.filled(triple=cell))
    courses.Course(tmp_path, sandboxed=True).autograde(LAB)
    for student, grade in course.grades(LAB).items():
        assert scores(grade, FULL)["test_triple"] == 0
        assert grade.verdict.kind == "limit", student
        assert any("the notebook's kernel was ended" in note for note in grade.verdict.notes), student


@pytest.mark.skipif(not BOXED, reason="no sandboxes here")
def test_a_kernel_that_takes_no_message_has_ended(tmp_path):
    """zmq ends a connection for good after a message over its limit; what is sent on it then would wait for ever."""
    client = BoxedKernelManager().client()
    with client.context.socket(zmq.DEALER) as nobody_there:
        assert 0 < nobody_there.getsockopt(zmq.SNDTIMEO) <= 60_000
    more = (
        "import zmq\nfrom ringzero_course.grading import kernels\n"
        "_run = kernels.GradingClient._run_in_the_students_kernel\n"
        "def _nobody_there(self, cell, index, **options):\n"
        "    if 'def triple' in cell.source:\n"
        "        raise zmq.Again\n"
        "    _run(self, cell, index, **options)\n"
        "kernels.GradingClient._run_in_the_students_kernel = _nobody_there\n"
    )
    course, handed = make_course(tmp_path, more)
    course.submit("ada", LAB, handed.filled())
    courses.Course(tmp_path, sandboxed=True).autograde(LAB)
    grade = course.grade_of("ada", LAB)
    assert scores(grade, FULL)["test_triple"] == 0
    assert grade.verdict.kind == "student fault"
    assert any("KERNEL DIED" in note for note in grade.verdict.notes)


def test_what_is_not_marked_is_not_swept():
    other = subprocess.Popen(["sleep", "3161"], start_new_session=True)
    try:
        with Fence() as fence:
            mine = subprocess.Popen(["sleep", "3162"], env=fence.environment, start_new_session=True)
            assert fence.folder.is_dir()
        assert running("sleep 3162") == []
        mine.wait()
        assert other.poll() is None
        assert not fence.folder.exists()
    finally:
        other.kill()
        other.wait()


# The sample class, on ranks.


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    top = tmp_path_factory.mktemp("sample")
    course = courses.Course(top)
    course.submit("someone_else", "02_ring_allreduce", b"not yet looked at")
    done = command(
        sys.executable, "-m", "ringzero_course.authoring.sample_class", "--into", str(top), top=TOP
    )  # as `make course`
    return SimpleNamespace(root=course.root, done=done, left=running(str(top)))


def test_the_sample_class_gets_the_committed_grades(sample):
    assert sample.done.returncode == 0, sample.done.stdout + sample.done.stderr
    assert "As in tests/sample_class/expected.json" in sample.done.stdout
    assert sample.left == []


def test_others_submissions_are_left_alone(sample):
    folder = sample.root / "submitted" / "someone_else" / "02_ring_allreduce"
    assert (folder / "02_ring_allreduce.ipynb").read_bytes() == b"not yet looked at"
    assert "someone_else" not in sample.done.stdout
    assert not (sample.root / "autograded" / "someone_else").exists()


def test_the_expected_grades_are_those_of_a_sane_class():
    expected = json.loads((TOP / "tests" / "sample_class" / "expected.json").read_text())
    by_hand = {name: cell for name, cell in expected["sample_perfect"]["cells"].items() if not name.startswith("test_")}
    most = expected["sample_perfect"]["max"] - sum(largest for _, largest in by_hand.values())
    assert len(expected) >= 9
    assert expected["sample_perfect"]["score"] == expected["sample_slow_but_right"]["score"] == most
    assert expected["sample_untouched"]["score"] == 0
    assert 0 < expected["sample_partly_right"]["score"] < most
    assert expected["sample_wrong"]["score"] < most / 2
    assert 0 < expected["sample_kernel_killed"]["score"] < most
    verdicts = {name.removeprefix("sample_"): grade["verdict"] for name, grade in expected.items()}
    assert verdicts["hangs"] == "limit"
    assert verdicts["raises_in_one_rank"] == verdicts["kernel_killed"] == "student fault"
    assert verdicts["malformed"] == verdicts["other_name"] == "invalid submission"


def test_the_submission_that_hangs_costs_its_budget_and_says_who_waits(sample):
    found = verdict.read(sample.root / "autograded" / "sample_hangs" / "02_ring_allreduce")
    assert re.search(r"no end after \d+ s: .*rank 1 had returned", found.reason)
    page = (sample.root / "feedback" / "sample_hangs" / "02_ring_allreduce" / "02_ring_allreduce.html").read_text()
    assert "Something took too long" in page
    assert re.search(r"rank 1 had\s+returned", page)
    assert "HIDDEN TESTS" not in page


def test_feedback_shows_the_checks_table_and_the_failing_line(sample):
    name = "sample_raises_in_one_rank"
    page = (sample.root / "feedback" / name / "02_ring_allreduce" / "02_ring_allreduce.html").read_text()
    assert "rank 3 raised IndexError" in page
    assert "neighbour = list(range(n))[rank + 1]" in page


def test_a_difference_from_the_expected_grades_is_named():
    grade = courses.Grade({"test_a": (1.0, 2.0)}, verdict.Verdict("ok"))
    expected = {"s": {"cells": {"test_a": [2.0, 2.0]}, "score": 2.0, "max": 2.0, "verdict": "ok"}, "t": {}}
    assert sample_class.differences(expected, {"s": grade}) == [
        "s, test_a: expected [2.0, 2.0], got [1.0, 2.0]",
        "s, score: expected 2.0, got 1.0",
        "t: expected, not graded",
    ]


def test_the_sample_class_needs_a_checkout(monkeypatch, tmp_path):
    monkeypatch.setattr(courses, "__file__", str(tmp_path / "a" / "b" / "c" / "course.py"))
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert sample_class.main([]) == 2
    assert "checkout of the repository" in said.getvalue()
