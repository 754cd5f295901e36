"""Zoom: something cut into parts, a part of it cut again, and so on down. Each row shows the coloured part of the last.

zoom([("buffer", ["half 0", "half 1"], 1), ("a half", ["loop 0", "loop 1"], 1)], title="A buffer")
"""

from collections.abc import Sequence

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

ROW, GAP, TOP, BAR = 30, 30, 4, 560  # pixels: a row's height, between rows, above, and a row's width

Row = tuple[str, Sequence[str], int]  # its name, the names of its equal parts, how many of the first are coloured


def zoom(rows: Sequence[Row], *, title: str, caption: str | None = None) -> Figure:
    """Draw ``rows``, each as wide as the others; dashed lines lead from the coloured parts of one to the next row.

    The last row shows where the coloured part of the row above it lies: the lines lead to what is coloured there.

    Raises ValueError when there are no rows, or a row has not as many parts as it colours.
    """
    if not rows or any(not 1 <= chosen <= len(parts) for _, parts, chosen in rows):
        raise ValueError("give rows of (name, parts, how many of the first are coloured), at least one part each")
    left = 12 + svg.LETTER * max(len(name) for name, _, _ in rows)
    drawn = []
    for number, (name, parts, chosen) in enumerate(rows):
        y, wide = TOP + number * (ROW + GAP), BAR / len(parts)
        drawn.append(svg.text(2, y + ROW / 2, name, kind="row"))
        for place, part in enumerate(parts):
            x = left + place * wide
            if place < chosen:
                drawn.append(svg.box(x, y, wide, ROW, palette.fill(number), part, kind="chosen"))
            else:
                drawn.append(svg.rect(x, y, wide, ROW, kind="rest", stroke_width=0.5))
                drawn.append(svg.text(x + wide / 2, y + ROW / 2, part, "middle") if svg.fits(part, wide) else "")
        if number + 1 < len(rows):
            _, next_parts, next_chosen = rows[number + 1]
            last = number + 2 == len(rows)
            end = left + (BAR * next_chosen / len(next_parts) if last else BAR)
            for x1, x2 in ((left, left), (left + chosen * wide, end)):
                drawn.append(svg.line(x1, y + ROW, x2, y + ROW + GAP, stroke_dasharray="3 4", stroke_opacity=0.7))
    description = "; ".join(
        f"{name}: {len(parts)} parts, {parts[0]} to {parts[-1]}, the first {chosen} coloured"
        for name, parts, chosen in rows
    )
    height = TOP + len(rows) * (ROW + GAP) - GAP + 4
    return picture(left + BAR + 4, height, title, description, drawn, caption)
