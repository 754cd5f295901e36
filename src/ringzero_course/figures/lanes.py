"""Lanes: what happens when. A lane for each thing that works, time to the right, a bar for each piece of work.

For what is planned or computed. What ranks really did is a ``timeline``.
"""

from collections.abc import Mapping, Sequence

from ringzero.drawing import axes, palette, svg
from ringzero.drawing.figure import Figure, picture

LANE, GAP, TOP, WIDTH = 24, 8, 28, 500  # pixels: a lane's height, between lanes, above, all the time

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
    left = 16 + svg.LETTER * max(map(len, rows))
    height = TOP + len(rows) * (LANE + GAP)
    across = axes.Scale(0, span, left, left + WIDTH)
    parts = [svg.text(2, 10, unit), *axes.upright(across, TOP - 8, height, 10)]
    for number, (name, row) in enumerate(rows.items()):
        y = TOP + number * (LANE + GAP)
        parts.append(svg.text(2, y + LANE / 2, name, kind="lane"))
        for label, start, end, colour in row:
            x, said = across(start), f"{label}: {start:.3g} to {end:.3g}"
            parts.append(svg.box(x, y, across(end) - x, LANE, palette.fill(colour), label, said, kind="work"))
    description = f"{'; '.join(_say(name, row) for name, row in rows.items())}. It ends after {last:.3g} {unit}"
    return picture(left + WIDTH + 20, height, title, description, parts, caption)


def _say(name, row):
    return f"{name}: {', '.join(label for label, _, _, _ in row) or 'nothing'}"
