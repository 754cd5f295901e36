"""Random programs with one known fault each, dumped by gloo's own recorder: the right rank, or nobody, is named.

``python -m tests.fuzz.dumps`` runs more of them, and torch's own analysis beside.
"""

import pytest

from tests.fuzz import dumps
from tests.in_turn import in_turn

JOBS = 2
FAULTY = in_turn(dumps.cases(dumps.SEEN, 4 * len(dumps.SEEN)), 8)
CORRECT = in_turn(dumps.cases(["correct"], 24), 8)


@pytest.fixture(scope="module")
def verdicts():
    """``{case: Verdict}``, all run at once: most programs only wait."""
    some = FAULTY + CORRECT
    return dict(zip(some, dumps.judge_all(some, JOBS), strict=True))


def those(verdicts, some, *words):
    return [f"{case}: {verdicts[case].ours}: {verdicts[case].said}" for case in some if verdicts[case].ours in words]


def test_the_right_rank_is_named(verdicts):
    """At least 95 in 100 of those whose dumps hold a trace of the fault; of a few, all but two."""
    wrong, right = (those(verdicts, FAULTY, word) for word in ("wrong", "right"))
    assert len(right) >= len(FAULTY) / 2
    assert len(wrong) <= max(2, 0.05 * len(FAULTY)), "\n\n".join(wrong)


def test_no_correct_program_is_accused(verdicts):
    assert not those(verdicts, CORRECT, "accused")


def test_another_rank_would_not_be_right():
    """The judge is strict."""
    for kind, number in FAULTY:
        program, fault = dumps.program_of(kind, number)
        others = set(range(program.world_size)) - fault.culprits
        assert dumps.blames(sorted(fault.culprits), fault)
        assert not dumps.blames([], fault)
        assert not any(dumps.blames([rank], fault) for rank in others)
        assert fault.mutual or not others or not dumps.blames([*fault.culprits, *others], fault)
