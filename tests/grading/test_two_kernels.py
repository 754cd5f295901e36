"""Grading in two kernels: what test cells need is there, and a right solution has its points. Hostile ones are in
`tests/hostile`."""

import ast
import builtins
import contextlib
import os
import signal
import stat
import subprocess
import sys

import pytest

from ringzero import launch
from ringzero.ranks import pool
from ringzero_course.authoring import submission
from ringzero_course.boxes import sandbox
from ringzero_course.grading import build_labs, course, kernels

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
        if cell.cell_type == "code" and kernels.runs_in_the_tests_kernel(cell):
            defined, used = _names(cell.source)
            known |= defined
            assert sorted(used - known) == [], cell.metadata.nbgrader.grade_id


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


@boxed
def test_the_right_solution_gets_full_marks_and_finds_no_other_files():
    with course.temporary_course(LAB, build_labs.source_notebook(LAB), sandboxed=True) as made:
        name, source = next(iter(submission.reference_cells(LAB).items()))
        made.submit("someone", LAB, submission.submission(LAB, {name: LOOK + source}))
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


@boxed
def test_ranks_in_a_box_begin_as_others_do(monkeypatch):
    def beginning():  # in a box there is no module of tests
        there = [number for number in range(100) if os.path.exists(f"/proc/self/fd/{number}")]
        sockets = sum(stat.S_ISSOCK(os.fstat(number).st_mode) for number in there)
        ways = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)]
        return hash("ring"), sockets, str(ways)

    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    others = launch(beginning, world_size=4).returns
    monkeypatch.setenv(*next(iter(sandbox.asking_for(sandbox.Limits()).items())))
    pool.stop()
    try:
        ranks = launch(beginning, world_size=4).returns
    finally:
        pool.stop()
    assert [rank[1:] for rank in ranks] == [rank[1:] for rank in others]
    even, odd, *same = [rank[0] for rank in ranks]
    assert (same, even == odd) == ([even, odd], False)  # two orders of a set's elements


@boxed
@pytest.mark.parametrize("in_a_box", [False, True])
def test_torchrun_ends_when_its_ranks_have_ended(monkeypatch, in_a_box):
    if in_a_box:
        monkeypatch.setenv(*next(iter(sandbox.asking_for(sandbox.Limits()).items())))
    with contextlib.closing(pool.Pool(2)) as ranks:
        for connection in ranks.workers:
            connection.close()
        ranks.agent.wait(300)
