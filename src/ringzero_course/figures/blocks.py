"""Blocks: who holds what. A row for each holder: a block for each thing it holds (``blocks``), or the share of each
part that it has (``shares``)."""

from collections.abc import Mapping, Sequence
from html import escape

from ringzero.drawing import palette
from ringzero.drawing.figure import Figure, frame, svg_open

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
    left = 14 + LETTER * max(map(len, rows))
    drawing, ends = [], [left]
    for number, (name, row) in enumerate(rows.items()):
        y, x, behind = TOP + number * (ROW + GAP), left, []
        drawing.append(f'<text class="holder" x="2" y="{y + ROW / 2 + 4:g}">{escape(name)}</text>')
        for label, size, colour in row:
            wide = size / most * width
            drawing.append(
                f'<rect class="block" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW}" '
                f'fill="{palette.fill(colour)}" stroke="currentColor" stroke-width="0.5">'
                f"<title>{escape(_say(label, size))}</title></rect>"
            )
            if LETTER * len(label) + 6 <= wide:
                ink = palette.ink(palette.fill(colour))
                drawing.append(
                    f'<text class="chunk" x="{x + wide / 2:.1f}" y="{y + ROW / 2 + 4:g}" text-anchor="middle" '
                    f'fill="{ink}">{escape(label)}</text>'
                )
            elif label and wide > 0:
                behind.append(label)
            x += wide
        said = "; ".join(filter(None, (", ".join(behind), notes.get(name, ""))))
        if said:
            drawing.append(f'<text class="note" x="{x + 8:.1f}" y="{y + ROW / 2 + 4:g}">{escape(said)}</text>')
        ends.append(x + (8 + LETTER * len(said) if said else 0))
    description = "; ".join(
        f"{name}: {', '.join(_say(label, size) for label, size, _ in row) or 'nothing'}" for name, row in rows.items()
    )
    opening = svg_open(max(ends) + 4, TOP + len(rows) * (ROW + GAP), title, description)
    svg = f'{opening}<g font-size="12" fill="currentColor">{"".join(drawing)}</g></svg>'
    return frame(svg, f"{title}. {description}", caption)


def _say(label, size):
    return f"{label} {size:g}".lstrip()


SHARE_ROW, SHARE_GAP = 22, 8  # pixels: a row's height, between rows

Share = Mapping[str, tuple[float, float]]  # for each part, from where to where the holder has it, of 0 to 1


def shares(
    parts: Mapping[str, tuple[float, int]],
    rows: Mapping[str, Share],
    *,
    title: str,
    per_size: float = 18,
    caption: str | None = None,
) -> Figure:
    """Draw which share of each part every holder has.

    ``parts`` is a dict of name to ``(size, colour)``; each is an outline as wide as its size, ``per_size`` pixels for
    one. ``rows`` is a dict of holder to its shares: ``{"gradients": (0.25, 0.5)}`` is the second quarter, filled. A
    holder without shares stands for others that are left out: its row is three dots.

    Raises ValueError when there is nothing to draw, or for a share of a part that is not there.
    """
    if not parts or not rows:
        raise ValueError("there is nothing to draw; give parts, and holders with their shares")
    unknown = sorted({part for held in rows.values() for part in held} - set(parts))
    if unknown:
        raise ValueError(f"no part is called {unknown[0]!r}; there are {', '.join(parts)}")
    left, top, between = 14 + LETTER * max(map(len, rows)), 26, 10
    lefts, x = {}, left
    for name, (size, _) in parts.items():
        lefts[name] = x
        x += max(size * per_size, LETTER * len(name)) + between
    drawing = [f'<text class="part" x="{lefts[name]:.1f}" y="14">{escape(name)}</text>' for name in parts]
    y = top
    for holder, held in rows.items():
        middle = y + SHARE_ROW / 2 + 4
        drawing.append(f'<text class="holder" x="2" y="{middle:g}">{escape(holder)}</text>')
        for name, (size, colour) in parts.items():
            wide = size * per_size
            if not held:
                drawing.append(f'<text x="{lefts[name] + wide / 2:.1f}" y="{middle:g}" text-anchor="middle">⋮</text>')
                continue
            drawing.append(
                f'<rect class="whole" x="{lefts[name]:.1f}" y="{y:g}" width="{wide:.1f}" height="{SHARE_ROW}" '
                'fill="none" stroke="currentColor" stroke-width="0.7" stroke-dasharray="2 3"/>'
            )
            start, end = held.get(name, (0.0, 0.0))
            if end > start:
                drawing.append(
                    f'<rect class="share" x="{lefts[name] + start * wide:.1f}" y="{y:g}" '
                    f'width="{max((end - start) * wide, 1):.1f}" height="{SHARE_ROW}" fill="{palette.fill(colour)}" '
                    f'stroke="currentColor" stroke-width="0.5"><title>{escape(f"{holder}: {name}")}</title></rect>'
                )
        y += SHARE_ROW + SHARE_GAP
    description = "; ".join(f"{holder}: {_in_words(parts, held)}" for holder, held in rows.items())
    opening = svg_open(x, y, title, description)
    return frame(
        f'{opening}<g font-size="12" fill="currentColor">{"".join(drawing)}</g></svg>',
        f"{title}. {description}",
        caption,
    )


def _in_words(parts, held):
    def of(name):
        start, end = held.get(name, (0.0, 0.0))
        return f"{name} whole" if end - start == 1 else f"{end - start:.3g} of {name}" if end > start else f"no {name}"

    return ", ".join(map(of, parts)) if held else "as the others"
