"""Labs are what their solutions give, byte for byte, and hold nothing a student must not see."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbgrader")

from ringzero_course.authoring import submission
from ringzero_course.grading import build_labs

TOP = Path(__file__).resolve().parents[2]
LABS = sorted(path.stem for path in (TOP / "solutions").glob("*.py"))


def test_committed_labs_are_up_to_date(capsys):
    assert build_labs.main(["--check", "--root", str(TOP)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("lab", LABS)
def test_same_bytes_every_time(lab):
    first = nbformat.writes(build_labs.release_notebook(lab))
    build_labs._released.cache_clear()
    assert nbformat.writes(build_labs.release_notebook(lab)) == first


@pytest.mark.parametrize("lab", LABS)
def test_released_lab_gives_nothing_away(lab):
    text = (TOP / "labs" / f"{lab}.ipynb").read_text()
    assert "BEGIN SOLUTION" not in text
    assert "HIDDEN TESTS" not in text
    notebook = json.loads(text)
    assert "jupytext" not in notebook["metadata"]
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    kept, taken = set(), set()
    for cell in build_labs.source_notebook(lab).cells:
        into = kept
        for line in cell.source.splitlines():
            into = taken if "### BEGIN" in line else kept if "### END" in line else into
            into.add(line.strip())
    released = {line.strip() for cell in notebook["cells"] for line in "".join(cell["source"]).splitlines()}
    assert taken - kept
    assert not (taken - kept) & released


@pytest.mark.parametrize("lab", LABS)
def test_cells_are_named_after_their_grade_id(lab):
    notebook = build_labs.release_notebook(lab)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    for cell in notebook.cells:
        assert cell.id == cell.metadata.get("nbgrader", {}).get("grade_id", cell.id)
    assert [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]


@pytest.fixture
def course(tmp_path):
    shutil.copytree(TOP / "solutions", tmp_path / "solutions")
    return tmp_path


def test_check_shows_which_lab_differs(course, capsys):
    assert build_labs.main(["--root", str(course)]) == 0
    assert build_labs.main(["--root", str(course), "--check"]) == 0
    lab = course / "labs" / f"{LABS[0]}.ipynb"
    lab.write_text(lab.read_text().replace("WORLD_SIZE = 4", "WORLD_SIZE = 8", 1))
    capsys.readouterr()
    assert build_labs.main(["--root", str(course), "--check"]) == 1
    shown = capsys.readouterr().out
    assert f"labs/{LABS[0]}.ipynb is not what" in shown
    assert "WORLD_SIZE = 8" in shown


def test_check_finds_a_lab_without_a_solution(course, capsys):
    build_labs.main(["--root", str(course)])
    shutil.copy(course / "labs" / f"{LABS[0]}.ipynb", course / "labs" / "99_more.ipynb")
    assert build_labs.main(["--root", str(course), "--check"]) == 1
    assert "labs/99_more.ipynb has no solutions/99_more.py" in capsys.readouterr().out


def test_no_solutions_here(tmp_path, capsys):
    assert build_labs.main(["--root", str(tmp_path)]) == 2
    assert "no solutions/*.py" in capsys.readouterr().err


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    build_labs._released.cache_clear()
    build_labs.release_notebook(LABS[0])
    assert list(tmp_path.iterdir()) == []


def test_two_cells_of_one_grade_id(course):
    path = course / "solutions" / "02_ring_allreduce.py"
    path.write_text(path.read_text().replace('"grade_id": "ring_all_gather"', '"grade_id": "ring_all_reduce"'))
    with pytest.raises(ValueError, match="both have the grade_id ring_all_reduce"):
        build_labs.source_notebook("02_ring_allreduce", course)


def test_unknown_lab():
    with pytest.raises(FileNotFoundError, match="no lab 77_none.*there is .*02_ring_allreduce"):
        build_labs.source_notebook("77_none")


# Submissions.


def test_submission_is_the_release_with_answers():
    lab = "02_ring_allreduce"
    handed_in = submission.submission(lab, {"ring_all_reduce": "def ring_all_reduce(tensor): pass"})
    released, source = build_labs.release_notebook(lab), build_labs.source_notebook(lab)
    assert [cell.id for cell in handed_in.cells] == [cell.id for cell in released.cells]
    for mine, blank, full in zip(handed_in.cells, released.cells, source.cells, strict=True):
        if mine.id == "ring_all_reduce":
            assert mine.source == "def ring_all_reduce(tensor): pass"
        elif blank.metadata.get("nbgrader", {}).get("solution"):
            assert mine.source != blank.source
            kept = [line for line in full.source.splitlines() if "### " not in line]
            assert mine.source.splitlines() == kept
        else:
            assert mine == blank


def test_submission_of_one_cell():
    lab = "02_ring_allreduce"
    handed_in = submission.submission(lab, {"bus_bandwidth": "x = 1"}, filled=False)
    for mine, blank in zip(handed_in.cells, build_labs.release_notebook(lab).cells, strict=True):
        assert mine.source == ("x = 1" if mine.id == "bus_bandwidth" else blank.source)


def test_submission_of_an_unknown_cell():
    with pytest.raises(ValueError, match="no solution cell ring_sum; it has pipelined_broadcast"):
        submission.submission("02_ring_allreduce", {"ring_sum": ""})


def test_reading_wrong_solutions(tmp_path):
    path = tmp_path / "lab.py"
    path.write_text(
        '"""Of a lab."""\n# ==== first\n"""Wrong."""\n# caught by: test_a\n'
        "# %% a\ndef a():\n    pass\n\n\n# %% b\nb = 1\n"
        '\n# ==== second\n"""Also wrong."""\n# caught by: test_b\n# says: too large\n# %% b\nb = 2\n'
    )
    first, second = submission.wrong_solutions("lab", path).values()
    assert (first.name, first.reason, first.caught_by, first.says) == ("first", "Wrong.", "test_a", "")
    assert first.replacements == {"a": "def a():\n    pass", "b": "b = 1"}
    assert (second.name, second.says, second.replacements) == ("second", "too large", {"b": "b = 2"})


@pytest.mark.parametrize("text", ["# caught by: a\n# %% a\nx\n", '"""D."""\n# %% a\nx\n', '"""D."""\n# caught by: a\n'])
def test_a_wrong_solution_must_say_what_and_where(tmp_path, text):
    path = tmp_path / "lab.py"
    path.write_text(f"# ==== mine\n{text}")
    with pytest.raises(ValueError, match="mine in .*lab.py needs a docstring"):
        submission.wrong_solutions("lab", path)


def test_two_wrong_solutions_of_one_name(tmp_path):
    path = tmp_path / "lab.py"
    path.write_text('# ==== mine\n"""D."""\n# caught by: a\n# %% a\nx\n' * 2)
    with pytest.raises(ValueError, match="mine in .*there are two"):
        submission.wrong_solutions("lab", path)


def test_two_sections_of_one_cell(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text('"""D."""\n# caught by: a\n# %% a\nx\n# %% a\ny\n')
    with pytest.raises(ValueError, match="two sections a"):
        submission.read_replacements(path)
