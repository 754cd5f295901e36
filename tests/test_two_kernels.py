"""Grading in two kernels: what test cells need is there, and what a student's cell does reaches no score."""

import ast
import builtins
import os
import subprocess
import sys

import pytest

from ringzero.grading import build_labs, course, execute, submission, verdict
from ringzero.processes import sandbox

LAB = "02_ring_allreduce"
PARAMETERS = {"WORLD_SIZE", "DEVICE"}
boxed = pytest.mark.skipif(sandbox.missing_ability() is not None, reason=f"no sandbox: {sandbox.missing_ability()}")


def _names(source):
    """``(defined, used)`` of a cell, with what its functions define and use."""
    defined, used = set(), set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                defined |= {(each.asname or each.name).split(".")[0] for each in names}
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                defined.add(name)
    return defined, used


@pytest.mark.parametrize("lab", build_labs.labs())
def test_the_instructors_cells_need_nothing_of_the_others(lab):
    known = {*dir(builtins), *PARAMETERS}
    for cell in build_labs.source_notebook(lab).cells:
        if cell.cell_type == "code" and execute.runs_in_the_tests_kernel(cell):
            defined, used = _names(cell.source)
            known |= defined
            assert sorted(used - known) == [], cell.metadata.nbgrader.grade_id


PATCH = """
import ringzero.lab.checks, ringzero.lab.table
ringzero.lab.checks.Check.score = lambda self: float(self.points)
ringzero.lab.checks.Check.that = lambda self, *a, **k: None
"""
TRANSFORMER = """
def full_marks(lines):
    text = "".join(lines)
    return [text.replace("check.score()", "float(check.points)")] if "check.score()" in text else lines
get_ipython().input_transformers_cleanup.append(full_marks)
"""
RANKS = """
import ringzero.lab.on_rank, ringzero.record.recorder, ringzero.processes.plain
ringzero.lab.on_rank.play = None
"""
ANSWER = """
import ringzero.lab.handle
ringzero.lab.handle.exported = lambda name: "{'code': 7}"
"""
LOOK = """
import os
seen = []
for top in os.listdir("/"):
    if top not in ("proc", "sys", "usr", "dev"):
        for folder, folders, files in os.walk(os.path.join("/", top)):
            if "site-packages" in folder or "/lib/python" in folder:
                folders.clear()
            seen += [name for name in files if name == "gradebook.db" or name.startswith("02_ring")]
            seen += [name for name in folders if name in ("solutions", "mutants", "autograded")]
others = [number for number in os.listdir("/proc") if number.isdigit()]
print("FOUND", seen, any("nbgrader" in open(f"/proc/{number}/cmdline").read() for number in others))
"""


def graded(*first, filled=False):
    """The ``Grade`` of a submission whose first solution cell begins with what a dishonest student writes there."""
    cells = {}
    if filled:
        cells = dict(submission.reference_cells(LAB))
    name = next(iter(submission.reference_cells(LAB)))
    stub = submission.submission(LAB, filled=False)
    source = next(cell.source for cell in submission.solution_cells(stub) if cell.metadata.nbgrader.grade_id == name)
    cells[name] = "\n".join([*first, cells.get(name, source)])
    return submission.submission(LAB, cells, filled=filled)


@boxed
@pytest.mark.parametrize("attack", [PATCH, TRANSFORMER, RANKS, ANSWER], ids=["patch", "transformer", "ranks", "answer"])
def test_a_students_cell_does_not_reach_its_own_score(attack):
    found = course.grade(graded(attack), LAB, sandboxed=True)
    assert found.score == 0
    assert found.verdict.kind in (verdict.OK, verdict.STUDENT), found.verdict


@boxed
def test_the_right_solution_gets_full_marks_and_finds_no_other_files():
    with course.temporary_course(LAB, build_labs.source_notebook(LAB), sandboxed=True) as made:
        made.submit("someone", LAB, graded(LOOK, filled=True))
        made.autograde(LAB)
        found = made.grade_of("someone", LAB)
        said = (made.root / "autograded" / "someone" / LAB / f"{LAB}.ipynb").read_text()
    written = sum(found.cells[name][1] for name in found.manual)  # a person grades these
    assert found.score == found.largest - written, found
    assert "FOUND [] False" in said


@boxed
def test_ranks_in_a_box_do_not_see_the_graders_environment():
    code = "import os; from ringzero import launch; print(launch(lambda: dict(os.environ), world_size=2).returns)"
    environment = {**os.environ, "A_PASSWORD": "swordfish", "RINGZERO_GRADEBOOK": "postgresql://swordfish@host"}
    seen = []
    for asked in ({}, sandbox.asking_for(sandbox.Limits())):
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, env=environment | asked, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "GLOO_SOCKET_IFNAME" in done.stdout
        seen.append("swordfish" in done.stdout)
    assert seen == [True, False]
