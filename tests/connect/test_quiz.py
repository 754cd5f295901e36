"""The quick checks as quizzes: read back as Canvas and Moodle read them, and the same as on the page."""

import doctest
import json
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ringzero import cli
from ringzero_course.connect import quiz
from ringzero_course.grading import build_labs

BOOK = Path(__file__).resolve().parents[2] / "book"
BUILT = BOOK.parent / "_build/jupyter_execute"
ASKED = "Is $a < b$, and is `{x: 1}` = *one* #1? Why?"
PAGE = f"""# 1 · A page: its name

````{{admonition}} Quick check
:name: check-1-of-01_page
:class: quiz
{ASKED}

```{{dropdown}} Answer
About {{glue:text}}`answer:.1f` ~ $\\nu\\frac{{1}}{{n}}$, see [chapter 2](02_page.md).

Or {{glue:text}}`word`.
```
````
"""
GLUED = {"answer": {"data": {"text/plain": "2.04"}}, "word": {"data": {"text/plain": "'none'"}}}
# Of the elements that are written: what may stand in them, and in which order. From the DTD of QTI 1.2.
MODELS = {
    "questestinterop": "(objectbank|assessment|(section|item)+)",
    "assessment": "qticomment?duration?qtimetadata*(sectionref|section)+",
    "section": "qticomment?duration?qtimetadata*(itemref|item|sectionref|section)*",
    "item": "qticomment?duration?itemmetadata?(itemrubric|rubric)*presentation?resprocessing*itemfeedback*",
    "itemmetadata": "qtimetadata*",
    "qtimetadata": "vocabulary?qtimetadatafield+",
    "qtimetadatafield": "fieldlabel fieldentry",
    "presentation": "qticomment?(flow|(material|response_lid|response_str|response_num)+)",
    "material": "qticomment?mattext+",
    "response_str": "(material|material_ref)?(render_choice|render_fib)(material|material_ref)?",
    "render_fib": "(material|material_ref|response_label|flow_label)*",
    "resprocessing": "qticomment?outcomes(respcondition|itemproc_extension)+",
    "outcomes": "qticomment?(decvar interpretvar*)+",
    "respcondition": "qticomment?conditionvar setvar*displayfeedback*",
    "conditionvar": "(not|and|or|unanswered|other|varequal)+",
    "itemfeedback": "((flow_mat|material)|solution|hint)+",
    "flow_mat": "qticomment?(flow_mat|material|material_ref)+",
    **dict.fromkeys(
        ("fieldlabel", "fieldentry", "mattext", "response_label", "decvar", "other", "displayfeedback"), ""
    ),
}
REQUIRED = {
    "assessment": {"ident"}, "section": {"ident"}, "item": {"ident"}, "response_str": {"ident"},
    "response_label": {"ident"}, "displayfeedback": {"linkrefid"}, "itemfeedback": {"ident"},
}  # fmt: skip


@pytest.fixture
def site(tmp_path):
    """A book of one page, built."""
    (tmp_path / "book").mkdir()
    (tmp_path / "solutions").mkdir()
    (tmp_path / "book/01_page.md").write_text(PAGE)
    built = tmp_path / "_build/jupyter_execute"
    built.mkdir(parents=True)
    cells = [new_code_cell("1"), new_markdown_cell(PAGE)]
    nbformat.write(new_notebook(cells=cells), built / "01_page.ipynb")
    (built / "01_page.glue.json").write_text(json.dumps(GLUED))
    return tmp_path


@pytest.fixture
def written(site, monkeypatch):
    """The folder that the command wrote."""
    monkeypatch.setattr(build_labs, "repository", lambda: site)
    done = CliRunner().invoke(cli.main, ["quiz", "--into", str(site / "quiz")])
    assert done.exit_code == 0, done.output
    assert "1 questions of 1 chapters" in done.output
    return site / "quiz"


def as_moodle_reads(text):
    """``[(category, name, question, feedback)]``: the steps of Moodle's importer, for essays."""
    found, category = [], None
    for block in re.split(r"\n\s*\n", text.strip()):
        held = block.replace("\\\\", "&&092;")
        for sign in ":#={}~":
            held = held.replace(f"\\{sign}", f"&&{ord(sign):03};")
        held = held.replace("\\n", "&&010").replace("&&092;", "\\")
        if held.startswith("$CATEGORY:"):
            category = held[10:].strip()
            continue
        name, held = held.removeprefix("::").split("::", 1)
        start, stop = held.index("{"), held.index("}")
        answer = held[start + 1 : stop]
        assert held[stop + 1 :].strip() == "", "text behind the answer would make it a gap to fill"
        between, _, feedback = answer.rpartition("####")
        assert between.strip() == "", "with anything before the feedback it is no essay"
        parts = [re.sub(r"&&(\d{3});", lambda sign: chr(int(sign[1])), part) for part in (name, held[:start], feedback)]
        assert all(part.startswith("[html]") for part in parts[1:])
        assert "&&" not in "".join(parts)
        found.append((category, parts[0], *(part.removeprefix("[html]") for part in parts[1:])))
    return found


def as_canvas_reads(file):
    """``{title of the quiz: [(title, question, feedback)]}``, each file held to the models above."""
    found = {}
    with zipfile.ZipFile(file) as archive:
        manifest = ET.fromstring(archive.read("imsmanifest.xml"))
        resources = manifest.findall(f"{{{quiz.PACKAGE}}}resources/{{{quiz.PACKAGE}}}resource")
        assert {each.get("type") for each in resources} == {"imsqti_xmlv1p2"}
        assert sorted(archive.namelist()) == sorted(["imsmanifest.xml", *(each.get("href") for each in resources)])
        for each in resources:
            root = ET.fromstring(archive.read(each.get("href")))
            follows(root)
            idents = [item.get("ident") for item in root.iter() if item.tag.endswith("}item")]
            assert len(idents) == len(set(idents))
            (assessment,) = root
            found[assessment.get("title")] = [
                (item.get("title"), *(text.text for text in item.iter(f"{{{quiz.QTI}}}mattext")))
                for item in root.iter(f"{{{quiz.QTI}}}item")
            ]
            for item in root.iter(f"{{{quiz.QTI}}}item"):
                shown = {node.get("linkrefid") for node in item.iter(f"{{{quiz.QTI}}}displayfeedback")}
                assert shown == {node.get("ident") for node in item.iter(f"{{{quiz.QTI}}}itemfeedback")}
    return found


def follows(node):
    tag = node.tag.removeprefix(f"{{{quiz.QTI}}}")
    inside = "".join(f"<{child.tag.removeprefix(f'{{{quiz.QTI}}}')}>" for child in node)
    model = re.sub(r"\w+", r"(<\g<0>>)", MODELS[tag]).replace(" ", "")
    assert re.fullmatch(model, inside), f"{tag} holds {inside}"
    assert REQUIRED.get(tag, set()) <= set(node.keys()), tag
    for child in node:
        follows(child)


def test_examples():
    assert doctest.testmod(quiz).failed == 0


def test_both_files_say_what_the_page_says(written):
    asked = "<p>Is \\(a &lt; b\\), and is <code>{x: 1}</code> = <em>one</em> #1? Why?</p>"
    answer = "<p>About 2.0 ~ \\(\\nu\\frac{1}{n}\\), see chapter 2.</p><p>Or none.</p>"
    name = "1, quick check 1"
    title = "1 A page: its name"
    assert as_moodle_reads((written / "moodle.gift").read_text()) == [(f"ringzero/{title}", name, asked, answer)]
    assert as_canvas_reads(written / "canvas.zip") == {title: [(name, asked, answer)]}


def test_the_same_pages_give_the_same_bytes(written, site):
    first = (written / "canvas.zip").read_bytes()
    quiz.write(site / "book", site / "_build/jupyter_execute", site / "again")
    assert (site / "again/canvas.zip").read_bytes() == first


def test_what_a_quiz_cannot_say_is_refused_by_name():
    with pytest.raises(ValueError, match=r"\{cite\}`who2020` in a quick check"):
        quiz.html("So it is {cite}`who2020`.", {})


def test_without_the_site_there_is_no_quiz(site, monkeypatch):
    (site / "_build/jupyter_execute/01_page.ipynb").unlink()
    monkeypatch.setattr(build_labs, "repository", lambda: site)
    done = CliRunner().invoke(cli.main, ["quiz", "--into", str(site / "quiz")])
    assert done.exit_code == 2
    assert "01_page has not been built" in done.output
    assert not (site / "quiz").exists()


@pytest.mark.parametrize("page", [path.stem for path in sorted(BOOK.glob("[0-9]*.md"))])
def test_each_quick_check_of_the_book_can_be_a_quiz(page):
    """From the text of the page: its numbers, which a run makes, are all 1 here."""
    text = (BOOK / f"{page}.md").read_text()
    checks = list(quiz.CHECK.finditer(text))
    assert len(checks) == text.count(":class: quiz")
    numbers = dict.fromkeys(re.findall(r"\{glue:text\}`(\w+)", text), "1")
    for check in checks:
        for part in ("asked", "answer"):
            said = quiz.html(check[part], numbers)
            assert not re.search(r"[$`]|\{\w+\}`|:class:", said), said


def test_the_book_that_was_built_last_gives_both_files(tmp_path):
    if not all((BUILT / f"{path.stem}.ipynb").is_file() for path in BOOK.glob("[0-9]*.md")):
        pytest.skip("needs the site, which is not built here (make book)")
    chapters = quiz.write(BOOK, BUILT, tmp_path)
    count = sum(path.read_text().count(":class: quiz") for path in BOOK.glob("[0-9]*.md"))
    read = as_moodle_reads((tmp_path / "moodle.gift").read_text())
    assert len(read) == sum(map(len, as_canvas_reads(tmp_path / "canvas.zip").values())) == count
    assert [row[2:] for row in read] == [(each.asked, each.answer) for some in chapters.values() for each in some]
