"""The quick checks of the book as quizzes: QTI 1.2, which Canvas imports, and GIFT, which Moodle imports.

A quick check is an open question, so each becomes an essay that nobody grades by machine, and its answer is what a
student reads after handing in. Text and numbers are those of the site that was built last.
"""

import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

import nbformat

CHECK = re.compile(
    r"^````\{admonition\} Quick check\n(?::[^\n]*\n)*(?P<asked>.*?)"
    r"^```\{dropdown\} Answer\n(?P<answer>.*?)^```\n````$",
    re.DOTALL | re.MULTILINE,
)
PIECE = re.compile(
    r"\$(?P<math>[^$]+)\$|\{glue:text\}`(?P<number>\w+)(?::(?P<form>[^`]+))?`|(?<!\})`(?P<code>[^`]+)`"
    r"|\*(?P<stress>[^*]+)\*|\[(?P<link>[^]]+)\]\([^)]*\)"
)
QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
CANVAS, MOODLE = "canvas.zip", "moodle.gift"
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"


@dataclass(frozen=True)
class Question:
    """``asked`` and ``answer`` are HTML, with formulas between ``\\(`` and ``\\)``, which both systems show."""

    name: str
    title: str
    asked: str
    answer: str


class NotBuiltError(Exception):
    """The message says which page of the site is not there."""


def write(book: Path, built: Path, into: Path) -> dict[str, list[Question]]:
    """Both files into a folder."""
    chapters = quizzes(book, built)
    into.mkdir(parents=True, exist_ok=True)
    write_qti(chapters, into / CANVAS)
    (into / MOODLE).write_text(gift(chapters), encoding="utf-8")
    return chapters


def quizzes(book: Path, built: Path) -> dict[str, list[Question]]:
    """``{title of a chapter: its quick checks}``. ``built`` is where the build leaves the pages that ran."""
    found = {}
    for page in sorted(path.stem for path in book.glob("[0-9]*.md")):
        if not (built / f"{page}.ipynb").is_file():
            raise NotBuiltError(
                f"{page} has not been built in {built}, and questions have numbers of its run: make book"
            )
        cells = nbformat.read(built / f"{page}.ipynb", 4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        title = re.sub(r"^# (\w+) · (.*)$", r"\1 \2", re.search(r"^# .*$", text, re.MULTILINE)[0])  # type: ignore[index]
        glued = built / f"{page}.glue.json"
        numbers = _numbers(json.loads(glued.read_text())) if glued.is_file() else {}
        found[title] = [
            Question(
                f"check-{i}-of-{page}",
                f"{title.split()[0]}, quick check {i}",
                html(check["asked"], numbers),
                html(check["answer"], numbers),
            )
            for i, check in enumerate(CHECK.finditer(text), 1)
        ]
    return found


def _numbers(glued: Mapping) -> dict[str, str]:
    return {name: value["data"]["text/plain"].strip("'") for name, value in glued.items()}


def html(text: str, numbers: Mapping[str, str]) -> str:
    r"""A paragraph or more of a page, with what its cells glued into it.

    >>> html("$N < 8$ takes *about* {glue:text}`t:.1f` s on `a`.", {"t": "2.04"})
    '<p>\\(N &lt; 8\\) takes <em>about</em> 2.0 s on <code>a</code>.</p>'

    Raises ValueError for what it does not know, such as a citation.
    """

    def shown(piece: re.Match) -> str:
        if piece["math"]:
            return rf"\({piece['math']}\)"
        if piece["number"]:
            value = numbers[piece["number"]]
            return format(float(value), piece["form"]) if piece["form"] else value
        if piece["code"]:
            return f"<code>{piece['code']}</code>"
        return f"<em>{piece['stress']}</em>" if piece["stress"] else piece["link"]

    if unknown := re.search(r"\{[\w:]+\}`[^`]*`", PIECE.sub("", text)):
        raise ValueError(f"{unknown[0]} in a quick check cannot be said in a quiz; say it in words")
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "".join(f"<p>{PIECE.sub(shown, escape(part, quote=False))}</p>".replace("\n", " ") for part in paragraphs)


# ---- GIFT, for Moodle


def gift(chapters: Mapping[str, Iterable[Question]]) -> str:
    """All questions, a category for each chapter. Without answers between its braces a question is an essay."""
    parts = []
    for title, questions in chapters.items():
        parts.append(f"$CATEGORY: ringzero/{title}")
        for each in questions:
            said = [_for_gift(words) for words in (each.title, each.asked, each.answer)]
            parts.append("::{}::[html]{}{{####[html]{}}}".format(*said))
    return "\n\n".join(parts) + "\n"


def _for_gift(words):
    return re.sub(r"[\\~=#{}:]", r"\\\g<0>", words)


# ---- QTI 1.2, for Canvas


def write_qti(chapters: Mapping[str, Iterable[Question]], file: Path) -> None:
    """A zip file with a quiz for each chapter."""
    manifest = ET.Element("manifest", identifier="ringzero", xmlns=PACKAGE)
    metadata = _in(manifest, "metadata")
    _in(metadata, "schema", "IMS Content")
    _in(metadata, "schemaversion", "1.1.3")
    _in(manifest, "organizations")
    resources = _in(manifest, "resources")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for title, questions in chapters.items():
            name = f"chapter-{title.split()[0]}"
            resource = _in(resources, "resource", identifier=name, type="imsqti_xmlv1p2", href=f"{name}.xml")
            _in(resource, "file", href=f"{name}.xml")
            archive.writestr(zipfile.ZipInfo(f"{name}.xml"), _xml(quiz(name, title, questions)))
        archive.writestr(zipfile.ZipInfo("imsmanifest.xml"), _xml(manifest))


def quiz(name: str, title: str, questions: Iterable[Question]) -> ET.Element:
    """One chapter's, as the root of its XML."""
    root = ET.Element("questestinterop", xmlns=QTI)
    section = _in(_in(root, "assessment", ident=name, title=title), "section", ident=f"{name}-section")
    for each in questions:
        item = _in(section, "item", ident=each.name, title=each.title)
        fields = _in(_in(item, "itemmetadata"), "qtimetadata")
        for label, entry in (("question_type", "essay_question"), ("points_possible", "1")):
            field = _in(fields, "qtimetadatafield")
            _in(field, "fieldlabel", label)
            _in(field, "fieldentry", entry)
        presentation = _in(item, "presentation")
        _in(_in(presentation, "material"), "mattext", each.asked, texttype="text/html")
        response = _in(presentation, "response_str", ident="response1", rcardinality="Single")
        _in(_in(response, "render_fib"), "response_label", ident="answer1", rshuffle="No")
        judging = _in(item, "resprocessing")
        _in(_in(judging, "outcomes"), "decvar", varname="SCORE", vartype="Decimal", minvalue="0", maxvalue="100")
        condition = _in(judging, "respcondition", **{"continue": "Yes"})
        _in(_in(condition, "conditionvar"), "other")
        _in(condition, "displayfeedback", feedbacktype="Response", linkrefid="general_fb")
        feedback = _in(_in(item, "itemfeedback", ident="general_fb"), "flow_mat")
        _in(_in(feedback, "material"), "mattext", each.answer, texttype="text/html")
    return root


def _in(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    child = ET.SubElement(parent, tag, attributes)
    child.text = text
    return child


def _xml(root: ET.Element) -> bytes:
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)
