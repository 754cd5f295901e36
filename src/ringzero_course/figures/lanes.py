"""Lanes: what happens when. A lane for each thing that works, time to the right, a bar for each piece of work.

For what is planned or computed. What ranks really did is a ``timeline``.
"""

from collections.abc import Mapping, Sequence
from html import escape

from ringzero.drawing import palette
from ringzero.drawing.figure import Figure, frame, svg_open
from ringzero.drawing.timelines import ticks

LANE, GAP, TOP, WIDTH, LETTER = 24, 8, 28, 500, 6.6  # pixels

Work = tuple[str, float, float, int]  # label, start, end, number of the colour


def lanes(
    rows: Mapping[str, Sequence[Work]],
    *,
    unit: str,
    title: str,
    span: float | None = None,
    caption: str | None = None,
) -> Figure:
    """Draw ``rows``, a dict of lane to work ``(label, start, end, colour)``, times in ``unit``.

    ``span`` is the time that the figure's width shows, by default up to the last end. Give several figures one span to
    have them on one scale. A label is left out where its bar is too short.

    Raises ValueError when there is nothing to draw, or work that ends before it starts.
    """
    works = [work for row in rows.values() for work in row]
    if not works:
        raise ValueError("the lanes are empty; give each a list of (label, start, end, colour)")
    for label, start, end, _ in works:
        if end < start:
            raise ValueError(f"{label} starts at {start} and ends at {end}; give the end that comes after")
    last = max(end for _, _, end, _ in works)
    span = last if span is None else span
    left = 16 + LETTER * max(map(len, rows))
    height = TOP + len(rows) * (LANE + GAP)

    drawing = [f'<text x="2" y="14">{escape(unit)}</text>']
    for tick in ticks(span):
        x = left + tick / span * WIDTH
        drawing.append(
            f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height}" stroke="currentColor" stroke-opacity="0.2"/>'
            f'<text x="{x:.1f}" y="14" text-anchor="middle">{tick:g}</text>'
        )
    for number, (name, row) in enumerate(rows.items()):
        y = TOP + number * (LANE + GAP)
        drawing.append(f'<text class="lane" x="2" y="{y + LANE / 2 + 4:g}">{escape(name)}</text>')
        drawing += [_bar(work, y, left, span) for work in row]
    description = f"{'; '.join(_say(name, row) for name, row in rows.items())}. It ends after {last:.3g} {unit}"
    svg = f'<g font-size="12" fill="currentColor">{"".join(drawing)}</g></svg>'
    return frame(svg_open(left + WIDTH + 20, height, title, description) + svg, f"{title}. {description}", caption)


def _bar(work, y, left, span):
    label, start, end, colour = work
    x, wide, fill = left + start / span * WIDTH, (end - start) / span * WIDTH, palette.fill(colour)
    bar = (
        f'<rect class="work" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{LANE}" fill="{fill}" '
        f'stroke="currentColor" stroke-width="0.5"><title>{escape(label)}: {start:.3g} to {end:.3g}</title></rect>'
    )
    if LETTER * len(label) + 4 > wide:
        return bar
    return (
        f'{bar}<text class="chunk" x="{x + wide / 2:.1f}" y="{y + LANE / 2 + 4:g}" text-anchor="middle" '
        f'fill="{palette.ink(fill)}">{escape(label)}</text>'
    )


def _say(name, row):
    return f"{name}: {', '.join(label for label, _, _, _ in row) or 'nothing'}"
