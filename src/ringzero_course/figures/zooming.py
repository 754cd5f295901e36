"""Zoom: something cut into parts, a part of it cut again, and so on down. Each row shows the coloured part of the last.

zoom([("buffer", ["half 0", "half 1"], 1), ("a half", ["loop 0", "loop 1"], 1)], title="A buffer")
"""

from collections.abc import Sequence
from html import escape

from ringzero.drawing import palette
from ringzero.drawing.figure import Figure, frame, svg_open

ROW, GAP, TOP, LETTER, BAR = 30, 30, 4, 6.6, 560  # pixels: a row, between rows, above, a letter on average, all parts

Row = tuple[str, Sequence[str], int]  # its name, the names of its equal parts, how many of the first are coloured


def zoom(rows: Sequence[Row], *, title: str, caption: str | None = None) -> Figure:
    """Draw ``rows``, each as wide as the others; dashed lines lead from the coloured parts of one to the next row.

    The last row is not a part cut again, but where it lies: the lines lead to what is coloured there.

    Raises ValueError when there are no rows, or a row has not as many parts as it colours.
    """
    if not rows or any(not 1 <= chosen <= len(parts) for _, parts, chosen in rows):
        raise ValueError("give rows of (name, parts, how many of the first are coloured), at least one part each")
    left = 12 + LETTER * max(len(name) for name, _, _ in rows)
    drawing = []
    for number, (name, parts, chosen) in enumerate(rows):
        y, wide, fill = TOP + number * (ROW + GAP), BAR / len(parts), palette.fill(number)
        drawing.append(f'<text class="row" x="2" y="{y + ROW / 2 + 4:g}">{escape(name)}</text>')
        for place, part in enumerate(parts):
            x, coloured = left + place * wide, place < chosen
            look = 'class="chunk" fill="' + palette.ink(fill) + '"' if coloured else 'class="part"'
            fits = LETTER * len(part) + 4 <= wide
            drawing.append(
                f'<rect class="{"chosen" if coloured else "rest"}" x="{x:.1f}" y="{y}" width="{wide:.1f}" '
                f'height="{ROW}" fill="{fill if coloured else "none"}" stroke="currentColor" stroke-width="0.8"/>'
                + (f'<text {look} x="{x + wide / 2:.1f}" y="{y + ROW / 2 + 4:g}" text-anchor="middle">{escape(part)}'
                   "</text>" if fits else "")
            )  # fmt: skip
        if number + 1 < len(rows):
            _, next_parts, next_chosen = rows[number + 1]
            last = number + 2 == len(rows)
            end = left + (BAR * next_chosen / len(next_parts) if last else BAR)
            for x1, x2 in ((left, left), (left + chosen * wide, end)):
                drawing.append(
                    f'<line x1="{x1:.1f}" y1="{y + ROW}" x2="{x2:.1f}" y2="{y + ROW + GAP}" stroke="currentColor" '
                    'stroke-dasharray="3 4" stroke-opacity="0.7"/>'
                )
    description = "; ".join(
        f"{name}: {len(parts)} parts, {parts[0]} to {parts[-1]}, the first {chosen} coloured"
        for name, parts, chosen in rows
    )
    opening = svg_open(left + BAR + 4, TOP + len(rows) * (ROW + GAP) - GAP + 4, title, description)
    svg = f'{opening}<g font-size="12" fill="currentColor">{"".join(drawing)}</g></svg>'
    return frame(svg, f"{title}. {description}", caption)
