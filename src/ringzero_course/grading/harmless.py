"""A graded notebook as a page may show it. What a student's cells show is HTML and scripts as the student likes.

On the formgrader's page, one of the Jupyter server, a script could do whatever the instructor can; on a feedback page
no script runs, but a line of HTML could lead whoever opens it to another site. So both pages show what is on a list.
"""

import html
from typing import Any

import nh3
from nbconvert.filters import markdown2html
from nbconvert.preprocessors import Preprocessor

from ringzero_course.grading import readable, withheld

PLAIN = ("text/plain", "image/png", "image/jpeg")
DRAWN = ("text/html", "image/svg+xml")  # shown as ``clean`` leaves it
LEFT_OUT = "(this output has no form that is safe to show here; open the notebook to see it)"

TAGS = {
    *("a", "b", "blockquote", "br", "code", "del", "div", "em", "hr", "i", "li", "ol", "p", "pre", "span", "strong"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
FIGURE = {
    *("figure", "figcaption", "svg", "g", "path", "line", "polyline", "polygon", "rect", "circle", "ellipse", "text"),
    *("tspan", "title", "desc", "details", "summary"),
}
SHAPE = {
    *("viewBox", "width", "height", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "d", "dx", "dy"),
    *("points", "transform", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap"),
    *("opacity", "font-size", "font-weight", "font-family", "text-anchor", "dominant-baseline", "role", "aria-label"),
}
LINKS = {"http", "https", "mailto"}


def rendered(source: str) -> str:
    """A filter ``markdown2html``: what Markdown becomes, without images, and with links to the web only."""
    attributes = {"*": {"class"}, "a": {"href", "title"}}
    return nh3.clean(markdown2html(source), tags=TAGS, attributes=attributes, url_schemes=LINKS)


def clean(source: str) -> str:
    """HTML with tables, text and drawings, and nothing that loads, leads away, runs or covers the page."""
    attributes = {"*": {"class"}} | dict.fromkeys(FIGURE, SHAPE)
    return nh3.clean(source, tags=TAGS | FIGURE, attributes=attributes, url_schemes=set())


def keep_what_is_safe(output: Any, drawn: bool) -> None:
    """Of an output that a student's cell shows: text and images, and if ``drawn`` HTML and SVG that are clean."""
    if "data" in output:
        kept = {kind: text for kind, text in output.data.items() if kind in PLAIN}
        if drawn:
            kept |= {kind: clean("".join(output.data[kind])) for kind in DRAWN if kind in output.data}
        output.data = type(output.data)(kept or {"text/plain": LEFT_OUT})


class Harmless(Preprocessor):
    """For ``HTMLExporter.preprocessors``: keeps the tables of checks, and of other outputs only text and images."""

    def preprocess_cell(self, cell, resources, index):
        cell.source = readable.for_a_page(cell)
        if cell.cell_type == "raw":  # it would become part of the page as it is
            cell.source = html.escape(cell.source)
        if withheld.is_test(cell):  # by the instructor's kernel, and tables escape what they are given
            return cell, resources
        cell.attachments = {}
        for output in cell.get("outputs", []):
            keep_what_is_safe(output, drawn=False)
        return cell, resources
