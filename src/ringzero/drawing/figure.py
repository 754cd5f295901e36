"""What every figure is: a piece of HTML that a notebook puts in the page as it stands.

SVG goes inline, not as an image: only then does ``currentColor`` mean the colour of the page's text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ringzero.drawing import svg


@dataclass(frozen=True)
class Figure:
    """``html`` is shown in a notebook, ``alt`` where HTML is not."""

    html: str
    alt: str

    def _repr_html_(self):
        return self.html

    def __repr__(self):
        return f"<figure: {self.alt}>"


def standalone(figure: Figure) -> str:
    """The figure's SVG as a file of its own, for a README: there is no page to take the text's colour from."""
    start, stop = figure.html.index("<svg"), figure.html.index("</svg>")
    head, body = figure.html[start:stop].split(">", 1)
    colours = "svg{color:#1f2328;font-family:sans-serif}@media(prefers-color-scheme:dark){svg{color:#f0f6fc}}"
    return f"{head}><style>{colours}</style>{body}</svg>\n"


def frame(content: str, alt: str, caption: str | None, legend: str = "") -> Figure:
    """A Figure around an ``<svg>`` or ``<table>``: it scrolls sideways where it would become too small to read.

    The ``legend`` is HTML for a telephone, where names at the right end of a drawing are out of sight.
    """
    below = legend + (f"<figcaption>{escape(caption)}</figcaption>" if caption else "")
    scroll = f'<div class="rz-scroll" tabindex="0">{content}</div>'
    return Figure(f'<figure class="rz-figure">{scroll}{below}</figure>', alt)


def picture(
    width: float,
    height: float,
    title: str,
    description: str,
    parts: Iterable[str],
    caption: str | None = None,
    *,
    text: float = svg.SIZE,
) -> Figure:
    """A framed image of ``parts`` of SVG; its smallest letters have ``text`` pixels."""
    drawn = svg.image(width, height, title, description, [*parts], text)
    return frame(drawn, f"{title}. {description}", caption)


WORDY = 14  # letters: a row's name that is longer gets room for two words side by side, on a telephone too


def table(rows: Iterable[Sequence], head: Sequence | None = None, caption: str | None = None) -> Figure:
    """A small HTML table. ``rows`` are sequences of cells; the first cell of each heads its row.

    An empty cell heads nothing: it is no ``th``, which a screen reader would announce.
    """
    rows = list(rows)
    wordy = " rz-wordy" if any(len(str(first)) > WORDY for first, *_ in rows) else ""
    parts = [f'<table class="rz-table{wordy}">']
    if head:
        parts.append("<thead><tr>" + "".join(_heading(cell, "col") for cell in head) + "</tr></thead>")
    parts.append("<tbody>")
    for first, *rest in rows:
        cells = "".join(_cell(str(cell)) for cell in rest)
        parts.append(f"<tr>{_heading(first, 'row')}{cells}</tr>")
    parts.append("</tbody></table>")
    text = "; ".join(", ".join(str(cell) for cell in row) for row in rows)
    return frame("".join(parts), text, caption)


def _cell(said):
    words = ' class="rz-words"' if len(said) > 2 * WORDY else ""
    return f"<td{words}>{escape(said)}</td>"


def _heading(cell, scope):
    said = escape(str(cell))
    return f'<th scope="{scope}">{said}</th>' if said else "<td></td>"
