"""Item statistics: a made class whose numbers are known."""

import pytest

from ringzero_course.grading import course as courses
from ringzero_course.grading import items, report, withheld
from ringzero_course.grading.verdict import GRADER, INVALID, OK, Verdict


def grade(*points, kind=OK, manual=()):
    """Of a lab with the parts a (2 points), b (4) and c (2)."""
    cells = {name: (float(score), most) for name, score, most in zip("abc", points, (2.0, 4.0, 2.0), strict=True)}
    return courses.Grade(cells, Verdict(kind), manual)


def table(**claims):
    """A check's table; a claim whose name begins with an underscore is hidden."""
    rows = tuple(
        withheld.Row(name.strip("_"), holds, "", 1.0 * holds, 1.0, name.startswith("_"))
        for name, holds in claims.items()
    )
    return withheld.Table("f", rows, 0.0, 2.0, False, "", (), ())


CLASS = {
    "ada": grade(2, 4, 2),
    "bob": grade(2, 2, 0),
    "cyd": grade(0, 0, 2),
    "dan": grade(0, 2, 2, manual=("c",)),
    "eve": grade(0, 0, 0, kind=INVALID),
    "fay": grade(0, 0, 0, kind=GRADER),
}
TABLES = {
    "ada": {"b": [table(sum=True, _bytes=True)]},
    "bob": {"b": [table(sum=True, _bytes=False)]},
    "cyd": {"b": [table(sum=False, _bytes=False)]},
    "eve": {"b": [table(sum=False, _bytes=False)]},
}


def test_the_numbers_of_a_made_class():
    a, b, c = items.parts(CLASS, TABLES)
    assert (a.possible, a.students, a.mean, a.full) == (2.0, 4, 1.0, 0.5)
    assert (b.possible, b.students, b.mean, b.full) == (4.0, 4, 2.0, 0.25)
    assert (c.students, c.mean, c.full) == (3, pytest.approx(4 / 3), pytest.approx(2 / 3))  # dan's waits
    # a: 2, 2, 0, 0 beside 6, 2, 2, 2 (dan's c waits); b: 4, 2, 0, 2 beside 4, 2, 2, 0; c: 2, 0, 2 beside 6, 4, 0
    assert a.with_the_rest == pytest.approx(4 / 48**0.5)
    assert b.with_the_rest == pytest.approx(4 / 8)
    assert c.with_the_rest == pytest.approx(-1 / 28**0.5)
    assert [(claim.text, claim.failed, claim.students) for claim in b.claims] == [
        ("sum", 1, 3),
        ("bytes (hidden)", 2, 3),
    ]
    assert a.claims == ()


def test_no_correlation_where_there_is_none_to_see():
    assert items.correlation([1, 2], [1, 2]) is None
    assert items.correlation([1, 1, 1], [1, 2, 3]) is None
    assert items.correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert items.correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert items.parts({}, {}) == []
    assert items.as_text([]) == items.as_html([])[3:-4] == "Nobody has a score yet."


def test_as_text_and_on_the_page():
    some = items.parts(CLASS, TABLES)
    text = items.as_text(some)
    assert "b          4   2.00   25%           0.50\n    1 of 3 fail: sum\n    2 of 3 fail: bytes (hidden)\n" in text
    evil = [items.Part("<b>", 1.0, 1, 1.0, 1.0, None, (items.Claim("<script>", 1, 1),))]
    page = report.page("lab", CLASS, set(CLASS), evil)
    assert "<h2>Parts</h2>" in page
    assert "1 of 1 fail: &lt;script&gt;" in page
    assert "<script>" not in page
