"""What chapters and labs say at their start is true of them, and the plans for instructors add up."""

import doctest
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.page_site import extension

BOOK = Path(__file__).resolve().parents[2] / "book"
teaching, reading_time = extension("teaching"), extension("reading_time")
UNITS = {unit.name: unit for unit in teaching.units(BOOK)}
PLANS = {"One term: 14 weeks": (14, 8), "One week": (5, 8)}  # heading: rows, and hours that no row may pass


def text_of(unit):
    return (BOOK / f"../solutions/{unit.file}.py" if unit.is_lab else BOOK / f"{unit.file}.md").read_text()


def graded_cells(lab):
    """The names of what students write there and get points for, or are asked to name."""
    return set(re.findall(r'"grade_id": "(\w+)", "solution": true', text_of(lab)))


def test_examples():
    assert doctest.testmod(teaching).failed == 0


def test_every_chapter_and_lab_stands_after_what_it_needs():
    assert len(UNITS) == len([*BOOK.glob("[0-9]*.md"), *BOOK.glob("../solutions/[0-9]*.py")])
    seen = set()
    for unit in UNITS.values():
        assert set(unit.needs) <= seen, unit
        assert unit.needs or unit.name in ("0", "2")
        seen.add(unit.name)


@pytest.mark.parametrize("name", UNITS)
def test_what_a_reader_can_do_is_shown_by_something_that_is_there(name):
    unit = UNITS[name]
    assert 1 <= len(unit.can) <= 4
    for can, shown in unit.can:
        assert len(can.split()) <= 18, can
        kind, *rest = shown.replace(",", "").split()
        if kind == "check":
            assert 1 <= int(rest[0]) <= text_of(unit).count(":class: quiz"), shown
        elif kind == "exercise":
            assert f"\n**{rest[0]}.** " in text_of(unit).partition("\n## Exercises\n")[2], shown
        else:
            lab = UNITS[f"lab {rest[0]}"] if kind == "lab" else unit
            assert shown.split("`")[1] in graded_cells(lab), shown
            assert lab is unit or name in lab.needs, f"{lab.name} does not need chapter {name}"


def test_the_lines_at_the_start_lead_to_what_shows_them():
    page = (
        "# 1 · A page\n\nAfter this page you can\n\n- see (check 2)\n- write (exercise 3)\n- run (lab 1, `f`)\n\n"
        "```{admonition} Quick check\n:class: quiz\n```\n````{admonition} Quick check\n:class: quiz\n````\n"
        "(check 2)\n\n## Exercises\n\n**3.** Why?\n"
    )
    linked = teaching.linked("01_page", page)
    assert "- see ({ref}`check 2 <check-2-of-01_page>`)\n" in linked
    assert "- write ({ref}`exercise 3 <exercise-3-of-01_page>`)\n" in linked
    assert "- run (lab 1, `f`)\n" in linked
    assert "\n````{admonition} Quick check\n:name: check-2-of-01_page\n" in linked
    assert "\n(exercise-3-of-01_page)=\n**3.** Why?" in linked
    assert "\n(check 2)\n" in linked, "only the lines at the start are links"


def test_a_line_that_nothing_shows_is_refused():
    with pytest.raises(ValueError, match="'see' does not end with what shows it"):
        teaching.chapter("01_page", "# 1 · A page\n\n*You need nothing first.*\n\nAfter this page you can\n\n- see\n")


def test_the_map_has_every_need_and_fits_beside_the_sidebars():
    html = teaching.drawn(list(UNITS.values()))
    assert int(re.search(r'viewBox="0 0 (\d+)', html)[1]) <= 756
    for unit in UNITS.values():
        assert f"{unit.name} needs {', '.join(unit.needs) or 'none'}" in html
    direct = teaching.direct(list(UNITS.values()))
    assert html.count("<path") == sum(map(len, direct.values()))
    assert direct["6c"] == ("6b",), "that 6b needs 6 is said there"


@pytest.fixture(scope="module")
def plans():
    """``{heading: its rows}`` of the page as it is built; a row is its cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BOOK / "_ext")
        pages = extension("site_pages")
        env = SimpleNamespace(note_dependency=lambda path: None, found_docs=[path.stem for path in BOOK.glob("*.md")])
        source, app = [(BOOK / "teaching.md").read_text()], SimpleNamespace(srcdir=str(BOOK), env=env)
        pages.with_minutes(app, "teaching", source)
        pages.with_teaching(app, "teaching", source)
    assert not re.search(r"\{[a-z ]+\}", source[0]), "a token is left"
    sections = re.split(r"^## ", source[0], flags=re.MULTILINE)
    return {
        section.split("\n")[0]: [
            [cell.strip() for cell in line.strip("|").split(" |")]
            for line in section.split("\n")
            if line.startswith("| ")
        ][1:]
        for section in sections
    }


@pytest.mark.parametrize("heading", PLANS)
def test_the_hours_of_a_plan_are_those_of_its_pages_and_labs(plans, heading):
    *rows, total = plans[heading]
    count, most = PLANS[heading]
    assert [row[0] for row in rows] == [str(n + 1) for n in range(count)]
    hours = []
    for _, read, shown, together, labs, said in rows:
        minutes = [reading_time.rounded((BOOK / page).read_text()) for page in re.findall(r"\((\S+\.md)\)", read)]
        minutes += [teaching.lab_minutes(text_of(UNITS[f"lab {lab}"])) for lab in re.findall(r"(\d+), \d+ min", labs)]
        minutes += [int(taken) for taken in re.findall(r"(\d+) min", f"{shown}; {together}")]
        hours.append(sum(minutes) / 60)
        assert said == f"{hours[-1]:.1f}"
        assert hours[-1] <= most
    assert total[-1] == f"{sum(hours):.1f}"


def taught(row):
    """The names of the chapters and labs of a row, in its order."""
    chapters = [teaching.number(page) for page in re.findall(r"\((\d\w+)\.md\)", row[1])]
    return chapters + [f"lab {lab}" for lab in re.findall(r"(\d+), \d+ min", row[4])]


def in_order(rows):
    """What the rows teach, each once and after what it needs."""
    done = set()
    for name in [name for row in rows for name in taught(row)]:
        assert name not in done, f"{name} comes twice"
        assert set(UNITS[name].needs) <= done, f"{name} comes before what it needs"
        done.add(name)
    return done


def test_the_term_teaches_everything_and_what_it_needs_first(plans):
    assert in_order(plans["One term: 14 weeks"][:-1]) == UNITS.keys()


def test_the_week_says_what_it_leaves_out(plans):
    left_out = re.search(r"leaves out chapters (.*?), and labs (.*?)\.", (BOOK / "teaching.md").read_text())
    chapters, labs = (re.findall(r"\d+\w?", said) for said in left_out.groups())
    assert {*chapters, *(f"lab {lab}" for lab in labs)} == UNITS.keys() - in_order(plans["One week"][:-1])


def test_weeks_can_be_left_out_in_the_order_that_is_said(plans):
    rows = {row[0]: row for row in plans["One term: 14 weeks"][:-1]}
    weeks = re.search(r"Take weeks (.*?) away first", (BOOK / "teaching.md").read_text())[1]
    for week in re.findall(r"\d+", weeks):
        del rows[week]
        in_order(rows.values())


@pytest.mark.parametrize("heading", PLANS)
def test_the_figures_and_exercises_of_a_plan_are_there(plans, heading):
    for row in plans[heading][:-1]:
        for title, page in re.findall(r"\[\*(.+?)\*\]\((\S+\.md)\)", row[2]):
            section = re.search(
                rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", (BOOK / page).read_text(), re.DOTALL | re.MULTILINE
            )
            assert section, f"{page} has no section {title!r}"
            assert "caption=" in section[1], f"there is no figure in {title!r}"
            assert page in row[1], "it is read in the same week"
        for chapter, numbers in re.findall(r"(\d+\w?): ((?:\d+(?:, )?)+);", row[3] + ";"):
            text = text_of(UNITS[chapter]).partition("\n## Exercises\n")[2]
            for number in numbers.split(", "):
                assert f"\n**{number}.** " in text, f"chapter {chapter} has no exercise {number}"


def test_the_seminar_takes_90_minutes(plans):
    ends = [0]
    for minutes, _, length in plans["A seminar of 90 minutes"]:
        start, end = map(int, minutes.split(" to "))
        assert (start, end - start) == (ends[-1], int(length))
        ends.append(end)
    assert ends[-1] == 90


def test_the_first_page_says_how_long_labs_take():
    taken = [teaching.lab_minutes(text_of(unit)) for unit in UNITS.values() if unit.is_lab]
    assert f"each of {min(taken)} to {max(taken)} minutes" in (BOOK / "intro.md").read_text()
