"""Random programs with one known fault each: the right rank is named, and its line; and no correct program is accused.

The programs and what must be said of each come from ``tests.fuzz.faults``; ``python -m tests.fuzz.diagnosis`` runs
more.
"""

import re

import pytest

from ringzero.record.trace_file import KINDS
from tests.fuzz import diagnosis
from tests.in_turn import in_turn

JOBS = 2
FAULTS = [
    fault
    for fault in diagnosis.FAULTS
    if fault != "group_of_some" or "new_group" in KINDS  # else nothing tells who of those outside belongs to the group
]


NUMBERS = in_turn(range(6), 3)
CASES = [(fault, number) for number in NUMBERS for fault in FAULTS]
CASES += [("correct", number) for number in in_turn(range(24), 3)]


@pytest.fixture(scope="module")
def verdicts():
    """``{case: (verdict, text)}``, all run at once: most programs only wait."""
    return dict(zip(CASES, diagnosis.judge_all(CASES, JOBS), strict=True))


def wrong(verdicts, kinds):
    return [
        f"{kind} {number}: {verdict}: {text}"
        for (kind, number), (verdict, text) in verdicts.items()
        if kind in kinds and verdict != "right"
    ]


def test_the_right_rank_and_line_are_named(verdicts):
    """At least 95 in 100; a record cannot always tell who of two is at fault."""
    failed, count = wrong(verdicts, FAULTS), len(NUMBERS) * len(FAULTS)
    assert count >= 30
    assert len(failed) <= 0.05 * count, "\n\n".join(failed)


def test_no_correct_program_is_accused(verdicts):
    assert not wrong(verdicts, ["correct"])


def test_another_rank_or_another_line_would_not_be_right(verdicts):
    """The judge is strict: the same sentence about the next rank, or about a line further down, is wrong."""
    for (kind, number), (verdict, text) in verdicts.items():
        if kind == "correct" or verdict != "right":
            continue
        program, fault = diagnosis.faulty(kind, number)
        assert diagnosis.is_right(text, program, fault)
        elsewhere = re.sub(r"line (\d+)", lambda line: f"line {int(line[1]) + 1000}", text)
        assert not diagnosis.is_right(elsewhere, program, fault), (kind, number)
        if not fault.mutual:
            assert not diagnosis.is_right(_about_the_next(text, program.world_size), program, fault), (kind, number)


def _about_the_next(text, world_size):
    def renamed(names):
        return re.sub(r"\d+", lambda rank: str((int(rank[0]) + 1) % world_size), names[0])

    return re.sub(r"\branks? \d+(, \d+)*", renamed, text)
