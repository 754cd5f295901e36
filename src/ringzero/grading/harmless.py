"""A graded notebook as the formgrader may show it: its page is one of the Jupyter server, and scripts on it could do
whatever the instructor can. What a student's cells show is HTML and scripts as the student likes.
"""

import html

import bleach
from nbconvert.filters import markdown2html
from nbconvert.preprocessors import Preprocessor

from ringzero.grading import readable, withheld

PLAIN = ("text/plain", "image/png", "image/jpeg")
LEFT_OUT = "(this output has no form that is safe to show here; open the notebook to see it)"

TAGS = {
    *("a", "b", "blockquote", "br", "code", "del", "div", "em", "hr", "i", "li", "ol", "p", "pre", "span", "strong"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}


def rendered(source: str) -> str:
    """A filter ``markdown2html``: what Markdown becomes, without images, and with links to the web only."""
    attributes = {"*": ["class"], "a": ["href", "title"]}
    return bleach.clean(markdown2html(source), tags=TAGS, attributes=attributes, protocols={"http", "https", "mailto"})


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
            if "data" in output:
                kept = {kind: text for kind, text in output.data.items() if kind in PLAIN}
                output.data = type(output.data)(kept or {"text/plain": LEFT_OUT})
        return cell, resources
