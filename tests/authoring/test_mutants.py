"""``ringzero mutants``: the cell that must catch a wrong solution does, and a right one is seen to survive."""

import json
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from ringzero_course.authoring import mutants, sentences, submission
from ringzero_course.grading import course
from ringzero_course.grading.verdict import Verdict

LAB = "02_ring_allreduce"
HARMLESS = '''# ==== harmless
"""Nothing is wrong with it."""
# caught by: test_bus_bandwidth
# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    return 2 * (world_size - 1) / world_size * size / seconds
'''


def test_there_are_wrong_solutions_for_every_test_cell():
    every = submission.wrong_solutions(LAB)
    assert len(every) >= 10
    expected = json.loads((course.repository() / "tests" / "sample_class" / "expected.json").read_text())
    cells = {name for name in expected["sample_perfect"]["cells"] if name.startswith("test_")}
    assert {wrong.caught_by for wrong in every.values()} == cells


def test_a_wrong_solution_is_caught_and_a_right_one_survives(monkeypatch, tmp_path):
    """Through the grader, a wrong one and a right one; ``test_labs`` tries all wrong ones in a kernel."""
    by_cell = {wrong.caught_by: wrong for wrong in submission.wrong_solutions(LAB).values()}
    (tmp_path / "lab.py").write_text(HARMLESS)
    wrong = by_cell["test_ring_all_reduce"]
    chosen = {wrong.name: wrong, **submission.wrong_solutions(LAB, tmp_path / "lab.py")}
    monkeypatch.setattr(submission, "wrong_solutions", lambda lab: chosen)

    rows_file = tmp_path / "rows.json"
    result = CliRunner().invoke(mutants.mutants, ["--lab", LAB, "--graded", "--json", str(rows_file)])
    rows = {row["name"]: row for row in json.loads(rows_file.read_text())}
    assert set(rows) == {"reference", "untouched", *chosen}
    assert all(set(row) == {"lab", "name", "caught", "by"} and row["lab"] == LAB for row in rows.values())
    assert {name for name, row in rows.items() if not row["caught"]} == {"harmless"}, result.output
    assert rows[wrong.name]["by"] == "test_ring_all_reduce"
    assert result.exit_code == 1
    assert "1 of" in result.output
    assert "harmless" in result.output.splitlines()[-1]


def _grade(kind="ok", manual=("why",), **cells):
    return course.Grade({**cells, "why": (0.0, 3.0)}, Verdict(kind), manual)


@pytest.mark.parametrize(
    ("name", "grade", "caught"),
    [
        ("reference", _grade(test_a=(2.0, 2.0)), True),
        ("reference", _grade(test_a=(1.9, 2.0)), False),
        ("reference", _grade(kind="limit", test_a=(2.0, 2.0)), False),
        ("untouched", _grade(test_a=(0.0, 2.0)), True),
        ("untouched", _grade(test_a=(0.0, 2.0), test_b=(0.1, 1.0)), False),
        ("wrong", _grade(test_a=(1.0, 2.0), test_b=(1.0, 1.0)), True),
        ("wrong", _grade(test_a=(2.0, 2.0), test_b=(0.0, 1.0)), False),  # by another cell than the one named
        ("wrong", _grade(test_a=(2.0, 2.0), test_b=(1.0, 1.0)), False),
    ],
)
def test_what_counts_as_caught(name, grade, caught):
    row = mutants.judge("lab", name, grade, "test_a")
    assert row.caught is caught
    assert row.by == ("test_a" if caught and name != "reference" else row.by)


def test_exit_status_is_0_when_all_is_as_it_must_be(monkeypatch):
    rows = [mutants.Row(LAB, "reference", True, None, _grade()), mutants.Row(LAB, "wrong", True, "test_a", _grade())]
    monkeypatch.setattr(mutants, "run", lambda lab, jobs, secret: iter(rows))
    result = CliRunner().invoke(mutants.mutants, ["--lab", LAB, "--graded"])
    assert result.exit_code == 0
    assert "caught by test_a" in result.output


def test_an_unknown_lab_is_named_with_those_there_are():
    result = CliRunner().invoke(mutants.mutants, ["--lab", "99_nothing"])
    assert result.exit_code == 2
    assert "99_nothing" in result.output
    assert LAB in result.output


def test_every_typical_mistake_is_a_wrong_solution():
    """44 of them, in all labs."""
    typical = sentences.typical()
    assert len(typical) >= 44
    assert {lab for lab, _ in typical} == {*mutants.labs()}
    for lab, name in typical:
        assert submission.wrong_solutions(lab)[name].says, f"{lab} {name} does not say what is said"


@pytest.mark.parametrize(
    "sentence",
    [
        "rank 0 waits in check_headers",
        "raised IndexError: no · /venv/lib/python3.11/site-packages/torch/nn/x.py, line 3",
        "raised RuntimeError: [pair.cc:537] Connection closed by peer",
        "rank 0 was in wait (run.py, line 169)",
    ],
)
def test_a_librarys_line_is_seen_in_a_sentence(sentence):
    assert sentences.library_line(sentence)


def test_what_a_student_wrote_is_no_librarys_line():
    for sentence in (
        "rank 0 raised NameError: name 'chunk' is not defined · cell [12], line 9: return chunk[rank]",
        "torch.nn.parallel.DistributedDataParallel is not to be used: write it yourself",
        "a cycle: rank 0 waits to send to rank 1, cell 3 line 7",
    ):
        assert sentences.library_line(sentence) is None


def test_the_command_shows_the_sentence_and_the_seconds(monkeypatch, tmp_path):
    name = "busbw_of_a_reduce_scatter"
    monkeypatch.setattr(sentences, "typical", lambda: {(LAB, name): "a factor forgotten"})
    rows_file = tmp_path / "rows.json"
    options = ["--lab", LAB, "--typical", "--times", "2", "--json", str(rows_file)]
    result = CliRunner().invoke(mutants.mutants, options)
    assert result.exit_code == 0, result.output
    (row,) = json.loads(rows_file.read_text())
    assert (row["lab"], row["name"]) == (LAB, name)
    assert 0 < row["seconds"] < 60
    assert "the factor of half the work" in row["mistake"]
    assert row["sentence"] in result.output
    assert "expected" in row["sentence"]


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("rank 0 was in wait (run.py, line 169)", "1 of 1 name a library's line: wrong"),
        (sentences.EVERY_POINT, "1 of 1 got every point: wrong"),
    ],
)
def test_the_command_ends_with_an_error_where_a_wrong_solution_is_told_nothing(monkeypatch, sentence, says):
    said = sentences.Said(LAB, "wrong", "a mistake", sentence, 1.0)
    monkeypatch.setattr(sentences, "said", lambda lab, wrong, times, secret: iter([said]))
    result = CliRunner().invoke(mutants.mutants, ["--lab", LAB])
    assert result.exit_code == 1
    assert says in result.output


def test_sentences_come_with_another_secret_where_one_is_asked_for(monkeypatch):
    notebooks = []

    @contextmanager
    def kernel_of(notebook):
        notebooks.append(notebook)
        yield

    monkeypatch.setattr(sentences.live_notebook, "kernel_of", kernel_of)
    wrong = submission.wrong_solutions(LAB)["busbw_of_a_reduce_scatter"]
    for secret in (0, 2):
        with pytest.raises(AttributeError, match="run_all"):  # that kernel runs nothing
            next(sentences.said(LAB, [wrong], secret=secret))
    own, other = ("\n".join(cell.source for cell in notebook.cells) for notebook in notebooks)
    assert own.count("numbers 2") == 0 < other.count("numbers 2")
