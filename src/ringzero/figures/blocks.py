"""Blocks: who holds what. A row for each holder, and in it a block for each thing, as wide as it is large."""

from collections.abc import Mapping, Sequence
from html import escape

from ringzero.figures import palette
from ringzero.figures.figure import Figure, frame, svg_open

ROW, GAP, TOP, LETTER = 30, 12, 6, 6.6  # pixels: a row's height, between rows, above, and of a letter on average

Block = tuple[str, float, int]  # label, size, number of the colour


def blocks(
    rows: Mapping[str, Sequence[Block]],
    *,
    title: str,
    notes: Mapping[str, str] | None = None,
    width: float = 400,
    largest: float | None = None,
    caption: str | None = None,
) -> Figure:
    """Draw ``rows``, a dict of holder to blocks ``(label, size, colour)``, all on one scale.

    ``notes`` says something to the right of a row. The widest row is ``width`` pixels wide; with ``largest``, a size,
    that one would be, for figures side by side. A label that is wider than its block stands behind the row.

    Raises ValueError when there is nothing to draw.
    """
    notes = notes or {}
    totals = {name: sum(size for _, size, _ in row) for name, row in rows.items()}
    most = max(totals.values(), default=0) if largest is None else largest
    if not most > 0:
        raise ValueError("there are no blocks; give each holder a list of (label, size, colour)")
    left = 10 + LETTER * max(map(len, rows))
    drawing, ends = [], [left]
    for number, (name, row) in enumerate(rows.items()):
        y, x, behind = TOP + number * (ROW + GAP), left, []
        drawing.append(f'<text class="holder" x="2" y="{y + ROW / 2 + 4:g}">{escape(name)}</text>')
        for label, size, colour in row:
            wide = size / most * width
            drawing.append(
                f'<rect class="block" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW}" '
                f'fill="{palette.fill(colour)}" stroke="currentColor" stroke-width="0.5">'
                f"<title>{escape(label)}: {size:g}</title></rect>"
            )
            if LETTER * len(label) + 6 <= wide:
                ink = palette.ink(palette.fill(colour))
                drawing.append(
                    f'<text class="chunk" x="{x + wide / 2:.1f}" y="{y + ROW / 2 + 4:g}" text-anchor="middle" '
                    f'fill="{ink}">{escape(label)}</text>'
                )
            elif wide > 0:
                behind.append(label)
            x += wide
        said = "; ".join(filter(None, (", ".join(behind), notes.get(name, ""))))
        if said:
            drawing.append(f'<text class="note" x="{x + 8:.1f}" y="{y + ROW / 2 + 4:g}">{escape(said)}</text>')
        ends.append(x + 8 + LETTER * len(said))
    description = "; ".join(
        f"{name}: {', '.join(f'{label} {size:g}' for label, size, _ in row) or 'nothing'}" for name, row in rows.items()
    )
    opening = svg_open(max(ends) + 4, TOP + len(rows) * (ROW + GAP), title, description)
    svg = f'{opening}<g font-size="12" fill="currentColor">{"".join(drawing)}</g></svg>'
    return frame(svg, f"{title}. {description}", caption)
