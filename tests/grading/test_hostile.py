"""Hostile submissions, `tests/hostile/`: what the grader says of each, and that none reaches anything else.

The files of a folder are one class, graded by the command that an instructor types. `tests/hostile/README.md` says what
a file holds.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from ringzero_course.authoring import submission
from ringzero_course.boxes import sandbox
from ringzero_course.boxes.fence import MARK
from ringzero_course.grading import course as courses
from ringzero_course.grading import verdict, withheld
from tests.grading.test_grading import TOP, metadata
from tests.in_turn import in_turn

pytestmark = pytest.mark.skipif(sandbox.missing_ability() is not None, reason=f"{sandbox.missing_ability()}")

CASES = Path(__file__).parents[1] / "hostile"
SECRET = "swordfish"
HAND_IN = "hand in"  # the section that is no cell
SETTLE_SECONDS = 2.0
ESCAPED = [Path(folder, "hostile-escaped") for folder in ("/tmp", "/", Path.home())]
LIMITS = {"memory": 3 * 2**29, "processes": 400, "file": 3 * 2**25, "temporary": 3 * 2**26}
CONFIG = f"""
c.ExecuteWithPapermill.limits = {LIMITS}
c.ExecuteWithPapermill.parameters = {{"WORLD_SIZE": 2, "DEVICE": "cpu"}}
"""

FUNCTION = "def {name}(x):\n    return {factor} * x"
CALLS = """from ringzero_course.lab.apart import call
points = 1.0 * (call("{name}", 1) == {factor})
### BEGIN HIDDEN TESTS
secret = "swordfish"
points += ({factor} - 1.0) * (call("{name}", 3.25) == {factor} * 3.25)
### END HIDDEN TESTS
points"""
COLLECTIVE = "def {name}(tensor):\n    dist.all_reduce(tensor)\n    return tensor"
CHECKS = """from ringzero_course.lab import Check
from ringzero_course.lab.claims import collectives
check = Check("{name}", points=2, world_size=WORLD_SIZE, device=DEVICE, built_from=("all_reduce", "send", "recv"))
check.that("every rank has the sum", check.run(numel=40), collectives.everyone_has_the_sum)
### BEGIN HIDDEN TESTS
secret = "swordfish"
check.that("every rank has the sum of 7 numbers", check.run(numel=7), collectives.everyone_has_the_sum)
### END HIDDEN TESTS
check.score()"""

# lab -> (seconds of a cell, {function: (its code, its test, points)})
LABS = {
    "alone": (
        40.0,
        {
            name: (FUNCTION.format(name=name, factor=factor), CALLS.format(name=name, factor=factor), factor)
            for name, factor in (("double", 2), ("triple", 3))
        },
    ),
    "ranks": (
        120.0,
        {name: (COLLECTIVE.format(name=name), CHECKS.format(name=name), 2) for name in ("first", "second", "third")},
    ),
}


def source(lab):
    """The instructor's notebook."""
    cells = [new_code_cell('WORLD_SIZE = 2\nDEVICE = "cpu"', metadata={"tags": ["parameters"]}, id="parameters")]
    if lab == "ranks":
        imports = "import torch\nimport torch.distributed as dist"
        cells.append(new_code_cell(imports, metadata=metadata("imports", locked=True), id="imports"))
    for name, (code, test, points) in LABS[lab][1].items():
        solution = f"### BEGIN SOLUTION\n{code}\n### END SOLUTION"
        cells.append(new_code_cell(solution, metadata=metadata(name, solution=True), id=name))
        graded = metadata(f"test_{name}", grade=True, locked=True, points=points)
        cells.append(new_code_cell(test, metadata=graded, id=f"test_{name}"))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


class Case:
    """What a file says."""

    def __init__(self, path):
        self.path, self.lab, self.name = path, path.parent.name, path.stem
        head = path.read_text().split("# %%")[0]
        self.kind = re.search(r"^# verdict: (.+)$", head, re.MULTILINE)[1]
        self.says = _said(head)
        self.hides = re.findall(r"^# hides: (.+)$", head, re.MULTILINE)
        self.sections = submission.read_replacements(path)
        self.hand_in = self.sections.pop(HAND_IN, "")

    def points(self, name):
        """What the test cell of the function ``name`` is to score."""
        if self.kind == verdict.INVALID:
            return 0
        if name not in self.sections:
            return LABS[self.lab][1][name][2]
        stated = re.search(r"^# points: (\S+)$", self.sections[name], re.MULTILINE)
        return float(stated[1]) if stated else 0


def _said(text):
    return re.findall(r"^# says: (.+)$", text, re.MULTILINE)


EVERY = [
    Case(path)
    for path in in_turn(sorted(CASES.glob("*/*.py")), 30)
    if path.stem in os.environ.get("HOSTILE_ONLY", path.stem).split(",")
]
OF_LAB = {lab: [case for case in EVERY if case.lab == lab] for lab in LABS}
RIGHT = ("a_right", "z_right")  # the first and the last in each class


def hand_in_all(course, lab, port, elsewhere):
    release = nbformat.read(course.root / "release" / lab / f"{lab}.ipynb", as_version=4)
    for case in (None, *OF_LAB[lab]):
        notebook = nbformat.from_dict(release)
        for name, (code, *_) in LABS[lab][1].items():
            cell = next(cell for cell in notebook.cells if cell.id == name)
            cell.source = case.sections.get(name, code) if case else f"{code}  # {SECRET}"
            cell.source = cell.source.replace("HOST_PORT", str(port)).replace("HOST_FOLDER", str(elsewhere))
        for name in RIGHT if case is None else (case.name,):
            course.submit(name, lab, notebook)
    for case in OF_LAB[lab]:
        path = course.root / "submitted" / case.name / lab / f"{lab}.ipynb"
        exec(case.hand_in, {"path": path, "course": course})


@pytest.fixture(scope="module", params=LABS)
def graded(request, tmp_path_factory):
    """A class of all files of a folder, graded; what was left 2 s later, and what the world outside looks like."""
    lab, top = request.param, tmp_path_factory.mktemp(request.param)
    shutil.copy(TOP / courses.CONFIG, top)
    with open(top / courses.CONFIG, "a") as config:
        config.write(f"{CONFIG}c.ExecuteWithPapermill.cell_seconds = {LABS[lab][0]}\n")
    course = courses.Course(top, sandboxed=True)
    course.hand_out(lab, source(lab))
    (course.root / "secret").write_text(SECRET)  # also the seal
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with (
        tempfile.TemporaryDirectory(prefix="rz-", dir="/tmp") as temporary,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        hand_in_all(course, lab, server.getsockname()[1], elsewhere)
        before = _held(course)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "TMPDIR": temporary, "A_PASSWORD": SECRET}
        words = [sys.executable, "-m", "nbgrader", "autograde", lab]
        with open(top / "said", "w") as said:
            grader = subprocess.Popen(words, cwd=top, env=environment, stdout=said, stderr=said)
            status = grader.wait()
        time.sleep(SETTLE_SECONDS)
        left = _left(grader.pid, temporary)
        server.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            left.append(f"a connection from {server.accept()[1]}")
    for each in [*elsewhere.iterdir()]:
        left.append(str(each))
    course.feedback(lab)
    left += map(str, [*course.root.glob("autograded/**/data.txt"), *course.root.glob("feedback/**/data.txt")])
    return SimpleNamespace(
        lab=lab, course=course, grades=course.grades(lab), status=status, left=left, before=before,
        after=_held(course), said=(top / "said").read_text(), elsewhere=elsewhere.stat(),
    )  # fmt: skip


def _held(course):
    """The files of the course that grading must not change."""
    files = [file for step in ("source", "release", "submitted") for file in (course.root / step).rglob("*")]
    return {
        file: file.read_bytes()
        for file in files
        if file.is_file() and not file.is_symlink() and file.stat().st_nlink == 1
    }


def _left(pid, temporary):
    """What is left of the grader with this process id: processes, files and shared memory."""
    found = [*Path(temporary).iterdir(), *Path("/tmp").glob(f"rz-grade-{pid}-*"), *filter(Path.exists, ESCAPED)]
    found += [*Path("/dev/shm").glob("hostile*"), *Path("/tmp").glob("left-by-a-student-*")]
    found = [*map(str, found)]
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            line = " ".join(process.cmdline())
            marked = process.environ().get(MARK, "").startswith(f"{pid}/") and process.status() != psutil.STATUS_ZOMBIE
            if marked or "sleep 314" in line or "hostile-loop" in line or "time.sleep(3144)" in line:
                found.append(f"{process.pid}: {line[:200]}")
    return found


def _notebook(graded, student):
    return nbformat.read(graded.course.root / "autograded" / student / graded.lab / f"{graded.lab}.ipynb", as_version=4)


def _shown(cells):
    """All that these cells show, as text."""
    return "\n".join(str(output) for cell in cells for output in cell.get("outputs", []))


@pytest.mark.parametrize("graded", LABS, indirect=True)
def test_each_case_has_its_verdict_and_each_cell_its_points(graded):
    wrong = []
    for case in OF_LAB[graded.lab]:
        grade = graded.grades.get(case.name)
        if grade is None:
            wrong.append(f"{case.name}: no grade")
            continue
        expected = {f"test_{name}": case.points(name) for name in LABS[graded.lab][1]}
        scores = {name: grade.cells[name][0] for name in expected}
        if (grade.verdict.kind, scores) != (case.kind, expected):
            wrong.append(f"{case.name}: {grade.verdict}, {scores}; expected {case.kind}, {expected}")
        texts = [("the verdict", case.says, "\n".join([grade.verdict.reason, *grade.verdict.notes]))]
        cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in _notebook(graded, case.name).cells}
        for name, code in case.sections.items():
            texts.append((f"test_{name}", _said(code), _shown([cells[f"test_{name}"]])))
        for where, words, text in texts:
            wrong += [f"{case.name}: {where} says no {each!r} but {text[:600]!r}" for each in words if each not in text]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("graded", LABS, indirect=True)
def test_the_other_students_have_their_points(graded):
    for student in RIGHT:
        assert graded.grades[student].score == graded.grades[student].largest
        assert graded.grades[student].verdict.kind == verdict.OK


@pytest.mark.parametrize("graded", LABS, indirect=True)
def test_nothing_is_left_and_nothing_else_is_changed(graded):
    assert graded.left == []
    assert graded.after == graded.before
    assert graded.elsewhere.st_uid == os.getuid()


@pytest.mark.parametrize("graded", LABS, indirect=True)
def test_the_exit_status_says_whether_a_person_must_look(graded):
    look = {case.name for case in OF_LAB[graded.lab] if case.kind in verdict.NEEDS_A_PERSON}
    assert graded.status == bool(look)
    told = graded.said.partition("A person must look")[2]
    assert {case.name for case in OF_LAB[graded.lab] if re.search(rf"^ +{case.name}: ", told, re.MULTILINE)} == look


@pytest.mark.parametrize("graded", LABS, indirect=True)
def test_nothing_secret_is_shown(graded):
    for student in graded.grades:
        page = (graded.course.root / "feedback" / student / graded.lab / f"{graded.lab}.html").read_text()
        cells = [cell for cell in _notebook(graded, student).cells if not withheld.is_test(cell)]
        assert SECRET not in _shown(cells), student
        assert student in RIGHT or SECRET not in page, student  # they wrote it themselves
        assert SECRET not in str(graded.grades[student].verdict)
        assert not (graded.course.root / "feedback" / student / graded.lab / verdict.FILENAME).exists()
        hides = next((case.hides for case in OF_LAB[graded.lab] if case.name == student), [])
        assert not [words for words in hides if words in page]


@pytest.mark.parametrize("graded", LABS, indirect=True)
def test_no_command_to_a_terminal_is_printed(graded):
    assert "\x1b" not in graded.said + graded.course.summary(graded.lab)


@pytest.mark.parametrize("graded", LABS, indirect=True)
def test_no_script_runs_where_a_page_is_opened(graded, monkeypatch):
    """Neither in the student's feedback nor in the instructor's formgrader, which is a page of the Jupyter server."""
    monkeypatch.chdir(graded.course.top)
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader(courses.CONFIG, path=str(graded.course.top)).load_config()
    for student in graded.grades:
        page = (graded.course.root / "feedback" / student / graded.lab / f"{graded.lab}.html").read_text()
        head = page.partition("</head>")[0]
        assert "default-src 'none'" in head
        assert "evil" not in head
        # Its template is nbgrader's; what it shows of a notebook is the basic one's.
        shown, _ = HTMLExporter(config=config, template_name="basic").from_notebook_node(_notebook(graded, student))
        for way in ("<script>evil", "<img src=x", "<iframe", "<svg", 'href="javascript'):
            assert way not in shown, (student, way)
