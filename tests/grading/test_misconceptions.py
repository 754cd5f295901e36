"""Each wrong solution names its mistake, and tables are matched to mistakes that are mostly the right ones."""

import pytest

from ringzero.grading import feedback, misconceptions, mutants, signatures, withheld
from tests.grading.test_feedback import TABLE, cell_with

EVERY = {(lab, name): path for lab in mutants.labs() for name, path in mutants.files(lab).items()}


def test_every_wrong_solution_names_a_mistake_of_the_table():
    labels = {key: signatures.label(path) for key, path in EVERY.items()}
    known = {*misconceptions.kinds(), misconceptions.ONE_OF_A_KIND}
    assert {key: label for key, label in labels.items() if label not in known} == {}
    assert set(misconceptions.kinds()) <= set(labels.values())


def test_every_wrong_solution_has_a_signature_with_its_mistake():
    stored = {key: mistake for key, (mistake, _) in misconceptions.signatures().items()}
    stale = {key for key, path in EVERY.items() if stored.get(key) != signatures.label(path)} | stored.keys() - EVERY
    assert not stale, f"run: ringzero mutants --signatures, for {sorted(stale)}"


def test_what_is_named_is_mostly_right():
    """Each is left out in turn. The threshold was chosen on these same files, so others may fare a little worse."""
    total, named, right = misconceptions.leave_one_out()
    assert right >= 0.7 * named
    assert named >= 0.5 * total


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (["never_waits"] * 4, "never_waits"),
        (["never_waits", "never_waits", "never_waits", "no_end"], "waits"),  # of one kind
        (["never_waits", "units", "zeros", "no_overlap"], None),
        ([misconceptions.ONE_OF_A_KIND] * 4, None),
    ],
)
def test_a_mistake_where_the_nearest_agree_else_its_kind(monkeypatch, known, expected):
    cell = cell_with(TABLE)
    cell.metadata["feedback"] = {"place": "cell-1", "tables": [], "test": True}
    own = signatures.of_cell(cell)
    every = {("lab", place): (mistake, own) for place, mistake in enumerate(known)}
    monkeypatch.setattr(misconceptions, "signatures", lambda: every)
    misconceptions._weighed.cache_clear()
    try:
        assert misconceptions.mistake(own) == expected
        assert misconceptions.mistake(frozenset({"word", "nobody", "says"})) is None
        secret = withheld.of([cell])
        cell.metadata["feedback"]["tables"] = [secret.table(table) for table in withheld.read_tables(cell)]
        part = feedback._part(cell, "A part", False, False)
        assert part.looks_like == misconceptions.sentences().get(expected, "")
    finally:
        misconceptions._weighed.cache_clear()
