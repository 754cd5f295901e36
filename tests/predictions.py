"""Predicted and measured values that a built page prints, and which of them it explains.

A page prints such a pair by the library's ``table``, in one of three ways:

- a column whose head says "ratio", or "measured / predicted" in these or similar words;
- a column whose head says "predicted" or "formula" and the next that says "measured", "counted" or "recorded", or else
  the last one before it, in a table without a column of ratios;
- cells "a / b" in a table, or a column, whose head says "predicted / measured" or "formula / counted".

Printed text counts too, where a line says "predicted 3.1 …, measured 3.2", "3.2 ms, predicted 3.1" or "predicted 3.1
ms; the run took 1.03 times that". What misses is explained by an admonition of the class ``why`` that comes after it in
the same section of the page, where a section is all below one heading of the second level.
"""

import re
from html.parser import HTMLParser
from typing import NamedTuple

SAID, SEEN = r"predicted|formula|said|theory", r"measured|counted|recorded"
RATIO = re.compile(rf"\bratio\b|\b({SEEN}|predicted) / (an? |one |our |the )?\w+|\w / ({SEEN})\b", re.IGNORECASE)
BOTH = re.compile(rf"\b({SAID}) / ({SEEN})", re.IGNORECASE)
PRINTED = re.compile(rf"\b({SAID})\s+(?P<said>[\d.,]*\d)[^\n\d]*?\b({SEEN})\s+(?P<seen>[\d.,]*\d)", re.IGNORECASE)
TIMES = re.compile(rf"\b({SAID})\s+[\d.,]*\d[^\n\d]*? took (?P<times>[\d.]*\d) times that", re.IGNORECASE)
MEASURED_FIRST = re.compile(r"(?<![\w.])(?P<seen>[\d.,]*\d)[^\n\d]*?, predicted (?P<said>[\d.,]*\d)")
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Pair(NamedTuple):
    """A measured value over its prediction; ``explained`` says whether a marked paragraph follows it."""

    section: str
    what: str
    ratio: float
    explained: bool


def number(text):
    """The first number of a cell, a percentage as a part of 1; None where there is none.

    >>> number("1,024.5 ms"), number("3e-02"), number("98 %"), number("nothing")
    (1024.5, 0.03, 0.98, None)
    """
    if not (found := NUMBER.search(text)):
        return None
    value = float(found[0].replace(",", ""))
    return value / 100 if text[found.end() :].lstrip().startswith("%") else value


def ratio(said, seen):
    """Seen over said; None where one of them is no number, or both are 0."""
    if said is None or seen is None or said == seen == 0:
        return None
    return seen / said if said else float("inf")


def of_table(head, rows):
    """``(what, ratio)`` of each pair in a table."""
    ratios = [column for column, name in enumerate(head) if RATIO.search(name) and not BOTH.search(name) and column]
    found = []
    for row in rows:
        name = row[0] if row else ""
        found += [(f"{name}: {head[column]}", number(row[column])) for column in ratios if column < len(row)]
        for column in range(1, min(len(row), len(head))):
            if (BOTH.search(head[column]) or BOTH.search(head[0])) and row[column].count(" / ") == 1:
                found.append((f"{name}: {head[column]}", ratio(*map(number, row[column].split(" / ")))))
        if not ratios:
            for said in range(1, len(row)):
                if re.search(SAID, head[said], re.IGNORECASE) and not BOTH.search(head[said]):
                    others = [*range(said + 1, len(row)), *range(said - 1, 0, -1)]  # after it, else before it
                    seen = next((c for c in others if re.search(SEEN, head[c], re.IGNORECASE)), None)
                    if seen is not None:
                        found.append((f"{name}: {head[seen]}", ratio(number(row[said]), number(row[seen]))))
    return [(what, value) for what, value in found if value is not None]


class _Reading(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.open, self.found, self.why = [], [], []  # found: (place, section, what, ratio); why: (place, section)
        self.table, self.cell, self.printed = None, None, None  # table: rows of the head, and of the body
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag in VOID:
            return
        attributes = dict(attributes)
        classes = (attributes.get("class") or "").split()
        self.open.append((tag, attributes.get("id"), classes))
        if "admonition" in classes and "why" in classes:
            self.why.append((self.getpos(), self.section))
        if tag == "table" and "rz-table" in classes:
            self.table = ([], [])
        elif self.table and tag == "tr":
            self.table[not any(name == "thead" for name, _, _ in self.open)].append([])
        elif self.table and tag in ("th", "td"):
            self.cell = ""
        elif tag == "pre" and any("cell_output" in classes for _, _, classes in self.open):
            self.printed = ""

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data
        elif self.printed is not None:
            self.printed += data

    def handle_endtag(self, tag):
        if not any(tag == name for name, _, _ in self.open):
            return
        while self.open.pop()[0] != tag:
            pass
        if tag in ("th", "td") and self.cell is not None:
            (self.table[1] or self.table[0])[-1].append(self.cell.strip())
            self.cell = None
        elif tag == "table" and self.table:
            for head in self.table[0][:1]:
                found = of_table(head, self.table[1])
                self.found += [(self.getpos(), self.section, what, value) for what, value in found]
            self.table = None
        elif tag == "pre" and self.printed is not None:
            for pair in (*PRINTED.finditer(self.printed), *MEASURED_FIRST.finditer(self.printed)):
                value = ratio(number(pair["said"]), number(pair["seen"]))
                if value is not None:
                    self.found.append((self.getpos(), self.section, pair[0], value))
            for pair in TIMES.finditer(self.printed):
                self.found.append((self.getpos(), self.section, pair[0], number(pair["times"])))
            self.printed = None

    @property
    def section(self):
        """The ``id`` of the section of the second level that is open: the first one is the page's own."""
        sections = [name for tag, name, _ in self.open if tag == "section"]
        return sections[1] if len(sections) > 1 else ""


def pairs(html):
    """All ``Pair``s of a page."""
    reading = _Reading(html)
    return [
        Pair(section, what, value, any(place > at and where == section for place, where in reading.why))
        for at, section, what, value in reading.found
    ]


def unexplained(html, low=0.8, high=1.2):
    """The pairs outside of ``low`` to ``high`` that no marked paragraph follows."""
    return [pair for pair in pairs(html) if not low <= pair.ratio <= high and not pair.explained]
