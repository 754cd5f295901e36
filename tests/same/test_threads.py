"""Bugs from public threads get their names, and right programs of many kinds are not accused."""

import pytest

from ringzero.same import compare
from tests.in_turn import in_turn
from tests.same.kinds import KINDS, WRONG
from tests.same.programs import write
from tests.same.threads import THREADS


@pytest.mark.parametrize("thread", in_turn(THREADS, 3), ids=lambda thread: thread.where)
def test_a_bug_of_a_thread_gets_its_name(tmp_path, thread):
    verdict = compare(write(tmp_path / "train.py", thread.program), "step", ranks=thread.ranks, timeout=60)
    assert verdict.causes, str(verdict)
    assert verdict.causes[0].name == thread.cause, str(verdict)


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("kind", in_turn(KINDS, 4))
def test_a_right_program_of_any_kind_is_not_accused(tmp_path, kind, ranks):
    verdict = compare(write(tmp_path / "train.py", KINDS[kind]), "step", ranks=ranks)
    assert verdict.same, str(verdict)


@pytest.mark.parametrize("kind", in_turn(KINDS, 12))
def test_the_same_program_with_another_loss_is_seen(tmp_path, kind):
    """So the verdict above is not for want of anything to compare."""
    verdict = compare(write(tmp_path / "train.py", WRONG + KINDS[kind]), "step", steps=2)
    assert not verdict.same, str(verdict)


def test_threads_are_named_once_and_in_one_form():
    where = [thread.where for thread in THREADS]
    assert len(set(where)) == len(where) >= 30
    assert all(
        owner and name and number.isdigit()
        for owner, _, rest in (w.partition("/") for w in where)
        for name, _, number in [rest.partition("#")]
    )
