"""The page that a student gets back: what it says on top, and that nothing of hidden tests is on it."""

import linecache
from dataclasses import asdict

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from ringzero_course.grading import feedback, harmless, withheld
from ringzero_course.lab.checks import Check
from ringzero_course.lab.table import METADATA, Row, Table
from tests.conftest import needs_browser

CELL = """check = Check("f", points=2, world_size=4)
shown = check.run(numel=12)
check.that("the sum", shown, None)
### BEGIN HIDDEN TESTS
again = check.run(numel=12)
few = [check.run(numel=size) for size in (17,
                                          19)]
check.that("few elements", few, None)
check.on_nccl(shown, None)
### END HIDDEN TESTS
check.that("the rest", shown, None)
"""
ARGUMENTS = "3 ranks, 17 float32 numbers"
TABLE = Table(
    "f",
    (
        Row("the sum", False, "with 3 ranks, 17 float32 numbers, 5: one is wrong", 0.0, 1.0),
        Row("at all", True, "", 1.0, 1.0),
        Row(
            "a secret claim",
            False,
            f"with {ARGUMENTS}: rank 0 raised E17: 17 of 3 · cell [2], line 9: f17()",
            0.0,
            1.0,
            True,
        ),
        Row("another secret", False, "as for “a secret claim”", 0.0, 1.0, True),
        Row("a third", False, f"not run: f hung with {ARGUMENTS}", 0.0, 1.0, True),
    ),
    1.0,
    5.0,
    ("rank 0 │ 17",),
    "3 ranks: gloo, CPU",
    "",
    ("3 ranks, 17 float32 numbers, 5",),
    (ARGUMENTS,),
)


def test_a_check_marks_what_is_declared_in_hidden_tests(monkeypatch):
    monkeypatch.setitem(linecache.cache, "<a cell>", (len(CELL), None, CELL.splitlines(True), "<a cell>"))
    names = {"Check": Check, "__name__": "__main__"}
    exec(compile(CELL, "<a cell>", "exec"), names)
    check = names["check"]
    hidden = {text: is_hidden for text, _, _, _, is_hidden in check._claims}
    assert hidden == {
        "the sum": False,
        "few elements": True,
        "the same by the rules of NCCL": True,
        "the rest": False,
    }
    assert check._cases == {  # the same call in both is no secret
        "4 ranks, 12 float32 numbers": False,
        "4 ranks, 17 float32 numbers": True,
        "4 ranks, 19 float32 numbers": True,
    }


def cell_with(table, source="f()\n### BEGIN HIDDEN TESTS\nf(secret_argument)\n### END HIDDEN TESTS\ncheck.score()"):
    shown = {"text/plain": repr(table), "text/html": table._repr_html_()}
    outputs = [
        new_output("stream", name="stdout", text="printed by f: 17"),
        new_output("display_data", data=shown, metadata={METADATA: table.as_data()}),
        new_output("execute_result", data={"text/plain": "1.0"}),
    ]
    entry = {"grade": True, "grade_id": "test_f", "locked": True, "solution": False, "schema_version": 3}
    entry |= {"points": 5, "score": 1.0, "cell_type": "code", "task": False}
    return new_code_cell(source, outputs=outputs, metadata={"nbgrader": entry}, id="test_f")


def test_an_error_is_said_in_its_first_line():
    deadlock = "2 ranks were stuck for good.\nrank 0 was at\n  File 3, line 5 in f"
    cell = new_code_cell(outputs=[new_output("error", ename="RankTimeout", evalue=deadlock, traceback=[])])
    assert feedback._error(cell) == "RankTimeout: 2 ranks were stuck for good."
    assert feedback._error(new_code_cell()) == ""


def test_a_table_comes_back_without_what_is_hidden():
    cell = cell_with(TABLE)
    (table,) = withheld.read_tables(cell)
    assert [asdict(row) for row in table.rows] == [asdict(row) for row in TABLE.rows]
    rows = withheld.of([cell]).table(table).rows
    assert [(row.claim, row.reason) for row in rows] == [
        ("the sum", TABLE.rows[0].reason),
        ("at all", ""),
        ("hidden check 1", "in a hidden case: rank 0 raised an error · cell [2], line 9"),
        ("hidden check 2", "as for hidden check 1"),
        ("hidden check 3", "not run: f hung in a hidden case"),
    ]


@pytest.mark.parametrize("data", [None, 7, {}, {"rows": 3}, TABLE.as_data() | {"rows": [{}]}])
def test_what_a_student_wrote_there_is_no_table(data):
    output = new_output("display_data", data={}, metadata={METADATA: data})
    assert withheld.read_table(output) is None


def part(name, state, score=0.0, possible=3.0):
    return feedback.Part("cell-1", "1. A part", name, score, possible, state, "")


@pytest.mark.parametrize(
    ("states", "kind", "says"),
    [
        (["not started", "not started"], "ok", "Not started"),
        (["not started", "waits"], "ok", "Not started"),
        (["full", "full", "waits"], "ok", "Every check passed"),
        (["full", "some"], "ok", "Some checks did not pass"),
        (["none", "not started"], "student fault", "No check passed yet"),
        (["none"], "grader fault", "Not graded yet"),
        (["none"], "invalid submission", "Could not be graded"),
    ],
)
def test_the_verdict_is_by_score(states, kind, says):
    parts = [
        part(f"f{i}", state, 3.0 if state == "full" else 1.0 * (state == "some")) for i, state in enumerate(states)
    ]
    assert feedback.headline(parts, kind) == says


def test_what_waits_is_not_counted_as_lost():
    said = list(feedback.sentences([part("f", "full", 3.0), part("g", "none"), part("why", "waits")], {}))
    assert said == [
        "3 of 6 points from the parts that are graded so far.",
        "Look at g.",
        "Your instructor still grades why, for up to 3 more points.",
    ]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with a failed check, a long line and a picture from elsewhere."""
    long = new_code_cell("x = '" + "y" * 400 + "'", outputs=[new_output("stream", text="z" * 400)])
    picture = new_markdown_cell("# The lab\n\n![](https://example.org/a.png)\n\n## A part")
    nb = new_notebook(cells=[picture, long, cell_with(TABLE)])
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feedback, "_by_hand", lambda of: (set(), set()))
        exporter = feedback.FeedbackPage()
        exporter.register_preprocessor(feedback.ForTheStudent(), enabled=True)
        of = {"nbgrader": {"assignment": "lab"}, "metadata": {"path": str(folder)}}
        text, _ = exporter.from_notebook_node(nb, resources=of)
    (folder / "lab.html").write_text(text)
    return folder / "lab.html"


def test_nothing_hidden_is_on_the_page(page):
    text = page.read_text()
    for hidden in ("secret", "a third", "HIDDEN", "printed by f", f"{ARGUMENTS}:", f"{ARGUMENTS}<", "17 of 3", "gloo"):
        assert hidden not in text
    assert "with 3 ranks, 17 float32 numbers, 5: one is wrong" in text


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_the_page_is_read_without_a_network_and_without_scrolling_sideways(page, browser, scheme, width):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    try:
        shown, asked = context.new_page(), []
        shown.on("response", lambda response: asked.append(response.url))
        shown.goto(page.as_uri())
        assert [url for url in asked if not url.startswith("file:")] == []
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.locator("h1").first.inner_text() == "The lab"
        assert shown.locator(".check .fails").first.is_visible()
        assert shown.locator("section.test .highlight").is_hidden()  # folded
        shown.locator(".parts a").first.click()
        assert shown.evaluate("location.hash") == "#cell-2"
        red = r"Number(getComputedStyle(document.body).{}.match(/\d+/)[0])"
        text, ground = (shown.evaluate(red.format(of)) for of in ("color", "backgroundColor"))
        assert (text < ground) == (scheme == "light"), (text, ground)
    finally:
        context.close()


LEADS_AWAY = (
    '<meta http-equiv="refresh" content="0;url=http://elsewhere"><base href="http://elsewhere">'
    '<style>header{display:none}</style><iframe src="http://elsewhere"></iframe><form action="http://elsewhere">'
    '<p onclick="f()" style="position:fixed">kept text</p>'
    '<svg viewBox="0 0 9 9"><path d="M0 0L9 9" stroke="red"/></svg>'
    '<a href="http://elsewhere">a link</a><img src="http://elsewhere/x.png">'
)


def test_what_a_cell_shows_cannot_lead_away_from_the_page():
    cell = new_code_cell("f()", outputs=[
        new_output("display_data", data={"text/html": LEADS_AWAY, "text/plain": "f"}),
        new_output("display_data", data={"application/javascript": "f()"}),
        new_output("display_data", data={"image/svg+xml": LEADS_AWAY}),
    ])  # fmt: skip
    feedback._take_out(cell, withheld.of([]), is_test=False)
    html, script, svg = (output.data for output in cell.outputs)
    for shown in (html["text/html"], svg["image/svg+xml"]):
        assert "elsewhere" not in shown
        assert "kept text" in shown
        assert '<path d="M0 0L9 9" stroke="red"></path>' in shown
        for word in ("meta", "base", "<style", "iframe", "form", "onclick", "position"):
            assert word not in shown
    assert script == {"text/plain": harmless.LEFT_OUT}
    assert "http-equiv" not in harmless.rendered(f"Text {LEADS_AWAY}")
