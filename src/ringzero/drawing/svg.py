"""What all figures are made of, as text of SVG: boxes, lines, arrows, words, and the image around them.

Places are in pixels, y downward. ``look`` are further attributes of SVG, with ``_`` for ``-``: ``stroke_width=2``; one
that is None is left out. ``kind`` is the class of an element.

Pages run this module in MicroPython, so it imports only ``math`` and the palette (see ``ringzero.costs``).
"""

from math import sqrt

from ringzero.drawing import palette

TYPE_CHECKING = False  # MicroPython has no ``typing``
if TYPE_CHECKING:
    from typing import Any

READABLE = 10  # pixels: no text of a figure becomes smaller, on a telephone neither
SIZE, LETTER = 12, 6.6  # pixels: the height of text, the width of its letters on average
HEAD = 9  # pixels: the length of an arrow's head
HALO = "paint-order:stroke;stroke:var(--pst-color-background,Canvas);stroke-width:4px"  # of letters over a line
INK = "currentColor"  # that of the page's text


def image(width: float, height: float, title: str, description: str, parts: list, text: float = SIZE) -> str:
    """An ``<svg>`` of ``parts``, ``width`` by ``height`` pixels, that shrinks with its column.

    Its smallest letters have ``text`` pixels. It stops shrinking where they would fall below ``READABLE``; from there
    on its frame scrolls.
    """
    title, description = escape(title), escape(description)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" role="img" '
        f'aria-label="{title.rstrip(".")}. {description}" '
        f'style="width:100%;--w:{number(width)}px;max-width:{number(width)}px;'
        f'min-width:{width * READABLE / text:.0f}px"><title>{title}</title><desc>{description}</desc>'
        f"{group(parts, fill=INK, font_size=SIZE)}</svg>"
    )


def group(parts: list, **look: "Any") -> str:
    return element("g", "".join(parts), **look)


def text(
    x: float, y: float, words: str, anchor: str = "start", size: float | None = None, bold: bool = False,
    halo: bool = False, **look: "Any",
) -> str:  # fmt: skip
    """One line of words, ``y`` in the middle of their height. ``anchor``: which end of them ``x`` is, or "middle"."""
    look["text_anchor"] = None if anchor == "start" else anchor
    look["font_weight"], look["style"] = "bold" if bold else None, HALO if halo else None
    return element("text", escape(words), x=x, y=y + 4, font_size=size, **look)


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = INK, **look: "Any") -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, **look)


def path(d: str, fill: str = "none", stroke: str | None = INK, title: str = "", **look: "Any") -> str:
    return element("path", _titled(title), d=d, fill=fill, stroke=stroke, **look)


def rect(
    x: float, y: float, width: float, height: float, fill: str = "none", stroke: str = INK, title: str = "",
    **look: "Any",
) -> str:  # fmt: skip
    return element("rect", _titled(title), x=x, y=y, width=width, height=height, fill=fill, stroke=stroke, **look)


def box(
    x: float, y: float, width: float, height: float, fill: str, label: str = "", title: str = "",
    stroke_width: float = 0.5, size: float | None = None, **look: "Any",
) -> str:  # fmt: skip
    """A box filled with a colour of the palette, and on it its label where there is room."""
    drawn = rect(x, y, width, height, fill, title=title, stroke_width=stroke_width, **look)
    return drawn + (on_colour(x + width / 2, y + height / 2, label, fill, size) if fits(label, width) else "")


def disc(
    place: tuple, radius: float, fill: str, label: str = "", title: str = "", stroke: str | None = INK,
    **look: "Any",
) -> str:  # fmt: skip
    """A circle filled with a colour of the palette, and on it its label."""
    x, y = place
    drawn = element("circle", _titled(title), cx=x, cy=y, r=radius, fill=fill, stroke=stroke, **look)
    return drawn + (on_colour(x, y, label, fill) if label else "")


def on_colour(x: float, y: float, words: str, fill: str, size: float | None = None) -> str:
    """Words in black or white, in the middle of something that is filled with ``fill``."""
    return text(x, y, words, "middle", size, kind="chunk", fill=palette.ink(fill))


def fits(label: str, width: float) -> bool:
    return label != "" and LETTER * len(label) + 4 <= width


def arrow(
    start: tuple, end: tuple, stroke: str = INK, width: float = 1.5, heads: int = 1, control: tuple | None = None,
    **look: "Any",
) -> str:  # fmt: skip
    """A line from ``start`` to ``end`` with a head there, with two ``heads`` one at each end, with 0 none.

    It bends towards ``control``, where that is given.
    """
    via = control or ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    tips = (end, start)[:heads]
    first, last = [towards(tip, via, HEAD) if tip in tips else tip for tip in (start, end)]
    curve = f"M{_joined(first)}Q{_joined(via)} {_joined(last)}"
    drawn = [path(curve, stroke=stroke, stroke_width=width)]
    for tip in tips:
        x, y = towards(tip, via, HEAD)
        half = (0.4 * HEAD + width / 2) / HEAD
        aside = (y - tip[1]) * half, (tip[0] - x) * half
        corners = tip, (x + aside[0], y + aside[1]), (x - aside[0], y - aside[1])
        drawn.append(element("polygon", points=" ".join([_joined(corner, ",") for corner in corners]), fill=stroke))
    return group(drawn, **look)


def towards(start: tuple, end: tuple, distance: float) -> tuple:
    """The point so far from ``start`` on the way to ``end``."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    part = distance / sqrt(dx * dx + dy * dy)
    return start[0] + dx * part, start[1] + dy * part


def element(tag: str, inside: str = "", kind: str | None = None, **look: "Any") -> str:
    """Any element; its attributes in the order of the alphabet, because MicroPython's dictionaries keep no order."""
    said = f' class="{kind}"' if kind else ""
    for key in sorted(look):
        value = look[key]
        if value is not None:
            said += f' {key.replace("_", "-")}="{value if isinstance(value, str) else number(value)}"'
    return f"<{tag}{said}>{inside}</{tag}>" if inside else f"<{tag}{said}/>"


def number(value: float) -> str:
    """With two decimals at most: "12", "12.5", "0.13"."""
    said = f"{value:.2f}"
    return said.rstrip("0").rstrip(".")


def escape(words: str) -> str:
    """Text for HTML."""
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        words = words.replace(letter, entity)
    return words


def _titled(title):
    return f"<title>{escape(title)}</title>" if title else ""


def _joined(point, by=" "):
    return f"{number(point[0])}{by}{number(point[1])}"
