"""Every lab as its students and its grader meet it: the reference, the notebook nobody touched, and wrong solutions.

What is particular to a lab is in ``test_lab_NN.py``. The tests of a lab share one live kernel (``reference``), in which
only the cells concerned are run again.
"""

import builtins
import contextlib
import re
import symtable
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade, is_locked, is_solution

from ringzero_course.authoring import sentences, submission
from ringzero_course.grading import build_labs
from tests.live_notebook import assert_all_points, errors, grades, is_test, kernel_of, text_of

HERE = Path(__file__).parents[1]
LABS = sorted(path.stem for path in (HERE.parent / "solutions").glob("*.py"))
WRONG = {lab: submission.wrong_solutions(lab) for lab in LABS}
every_lab = pytest.mark.parametrize("lab", LABS)


def test_reference_gets_every_point_and_shows_no_error(reference):
    assert list(grades(reference.cells.values())) == reference.tests
    assert_all_points(reference.cells.values())
    for cell in reference.cells.values():
        assert not errors(cell), text_of(cell)
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], text_of(cell)
        assert "Warning" not in text_of(cell)


def test_same_points_the_second_time(reference):
    """Of every third cell: no clock and no chance decides over points."""
    for name in reference.tests[::3]:
        assert text_of(reference.run(name)) == text_of(reference.cells[name])


@pytest.mark.parametrize(("world_size", "device"), [(1, "cpu"), (2, "strict"), (3, "cpu")])
def test_other_numbers_of_ranks(reference, world_size, device):
    """All cells on 2 by the rules of NCCL, as on a node with two GPUs; on 1 and 3 those that give points."""
    with reference.with_ranks(world_size, device):
        cells = [
            reference.run(name)
            for name, cell in reference.cells.items()
            if "WORLD_SIZE" in cell.source
            and "parameters" not in cell.metadata.get("tags", [])
            and (world_size == 2 or is_test(cell))
        ]
    assert list(grades(cells)) == reference.tests
    assert_all_points(cells)
    for cell in cells:
        assert not errors(cell), text_of(cell)


@every_lab
def test_untouched_notebook_gets_nothing(lab):
    with kernel_of(build_labs.release_notebook(lab)) as kernel:
        cells = kernel.run_all()
    found = grades(cells.values())
    assert list(found) == kernel.tests
    assert all(score == 0 for score, _ in found.values()), found
    for name, cell in cells.items():
        assert not errors(cell), text_of(cell)  # papermill and nbgrader validate get to the end
        if name in found:
            assert f"{name.removeprefix('test_')} is not written yet" in text_of(cell)


@pytest.mark.parametrize(
    ("reference", "wrong"),
    [pytest.param(lab, wrong, id=f"{lab}-{wrong.name}") for lab in LABS for wrong in WRONG[lab].values()],
    indirect=["reference"],
    scope="session",  # of the kernel; without it each test would start one
)
def test_wrong_solution_loses_points(reference, wrong):
    with reference.changed(wrong.replacements, wrong.fails):
        cell = reference.run(wrong.caught_by)
    score, largest = determine_grade(cell)
    assert score < largest, text_of(cell)
    assert not errors(cell)
    assert "the check itself failed" not in text_of(cell)
    assert "cannot be checked" not in text_of(cell)
    said = sentences.reasons(text_of(cell))
    assert wrong.says in said[0]
    assert [why for why in said if sentences.library_line(why)] == []  # a student has written none of it


of_every_secret = pytest.mark.parametrize("secret", [1, 2, 3], ids="secret{}".format)


@contextlib.contextmanager
def other_numbers(kernel, secret):
    """A function that runs a test cell with the numbers of ``secret``; at the end the lab's own are back."""
    try:
        yield lambda name: kernel.run(name, build_labs.with_secret(kernel.texts[name], secret))
    finally:
        kernel.run(kernel.tests[0], build_labs.with_secret("", 0))


@of_every_secret
def test_reference_gets_every_point_with_other_numbers(reference, secret):
    with other_numbers(reference, secret) as run:
        assert_all_points([run(name) for name in reference.tests])


@of_every_secret
@pytest.mark.parametrize(
    ("reference", "wrong"),
    [pytest.param(lab, wrong, id=f"{lab}-{wrong.name}") for lab in LABS for wrong in WRONG[lab].values()],
    indirect=["reference"],
    scope="session",
)
def test_wrong_solution_loses_points_with_other_numbers(reference, wrong, secret):
    """No check is strict by its own numbers alone."""
    with reference.changed(wrong.replacements, wrong.fails), other_numbers(reference, secret) as run:
        cell = run(wrong.caught_by)
    score, largest = determine_grade(cell)
    assert score < largest, text_of(cell)
    assert not errors(cell)


# What the text says, without a kernel.


@every_lab
def test_every_test_cell_has_wrong_solutions(lab):
    named = [wrong.caught_by for wrong in WRONG[lab].values()]
    tests = [cell.id for cell in build_labs.source_notebook(lab).cells if is_test(cell)]
    assert set(named) == set(tests)
    assert min(named.count(name) for name in tests) >= 2


@every_lab
def test_points_in_the_text_are_those_of_the_cell(lab):
    for cell in filter(is_test, build_labs.source_notebook(lab).cells):
        stated = re.findall(r"\bpoints=(\d+)", cell.source)
        assert sum(map(int, stated)) == cell.metadata.nbgrader.points
        assert cell.source.rstrip().endswith("check.score()")


@every_lab
def test_a_test_cell_reaches_students_code_by_name_alone(lab):
    """It names a student's function in a string, for a handle. What else it uses is its own, or in a locked cell."""
    notebook = build_labs.source_notebook(lab)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    students, locked = set(), {"WORLD_SIZE", "DEVICE"}
    for cell in code:
        if is_solution(cell):
            students |= defined(cell.source)
        elif is_locked(cell) and not is_test(cell):
            locked |= defined(cell.source)
    assert students
    for cell in filter(is_test, code):
        used, own = used_globals(cell.source), defined(cell.source)
        assert not students & (used | own), f"{cell.id} touches {students & (used | own)}"
        assert used <= own | locked | vars(builtins).keys(), f"{cell.id} depends on {used - own - locked}"


def defined(source):
    """The names that running ``source`` defines."""
    table = symtable.symtable(source, "cell", "exec")
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}


def used_globals(source):
    """The global names that ``source`` reads, at its top or in a function."""

    def of(table):
        at_top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (at_top or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from of(child)

    return set(of(symtable.symtable(source, "cell", "exec")))


def test_reaching_students_code_is_noticed():
    assert "Bucket" in used_globals("def fill():\n    return Bucket([])")
    assert "Bucket" in used_globals("class Mine(Bucket):\n    pass")
    assert "Bucket" not in used_globals("def fill(Bucket):\n    return Bucket([])\ncheck = Check('Bucket')")
    assert defined("import a.b\nfrom c import d as e\nfor f in ():\n    g = f") == {"a", "e", "f", "g"}
