"""The specification of a function of plain values: one claim, and the arguments of each row's cases.

@on_paper(gives("the area", lambda a, b: a * b))
def area():
    draw = yield {"a square": [(2, 2)], "no width": [(0, 3), (0, 0)]}  # what students see
    yield {"other rectangles": [(draw.random(), draw.random()) for _ in range(8)]}  # what is hidden
"""

import random
from collections.abc import Callable, Generator

from ringzero_course.lab.claims.answers import is_whole_number, plain_number
from ringzero_course.lab.harness import paper
from ringzero_course.lab.runs import Claim
from ringzero_course.lab.specification import Rows, of

Cases = dict[str, list[tuple]]  # of each row, by its text


def whole_number(says: Callable[..., str | None]) -> Claim:
    """A claim: a whole number from 1 was returned. ``says``, called with it and the arguments, says what is wrong."""

    def claim(run):
        got = plain_number(run.returned[0])
        if not is_whole_number(got, least=1):
            return f"returned {got!r}, not a whole number from 1"
        return says(got, *run.case.args)

    return claim


def on_paper(claim: Claim) -> Callable[[Callable[[], Generator[Cases, random.Random, None]]], Callable[..., Rows]]:
    """Have a generator of cases, those that students see and hidden ones, be a specification."""

    def decorated(cases):
        @of(**paper.PLAIN)
        def specification(check):
            rows = cases()
            _declare(check, next(rows), claim)
            _declare(check, rows.send((yield)), claim)

        return specification

    return decorated


def _declare(check, cases, claim):
    for text, arguments in cases.items():
        check.that(text, [check.run(*each) for each in arguments], claim)
