"""Blocks: who holds what. A row for each holder: a block for each thing it holds (``blocks``), or the share of each
part that it has (``shares``)."""

from collections.abc import Mapping, Sequence

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

ROW, GAP, TOP = 30, 12, 6  # pixels: a row's height, between rows, above

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
    left = 14 + svg.LETTER * max(map(len, rows))
    parts, ends = [], [left]
    for number, (name, row) in enumerate(rows.items()):
        y, x, behind = TOP + number * (ROW + GAP), left, []
        parts.append(svg.text(2, y + ROW / 2, name, kind="holder"))
        for label, size, colour in row:
            wide = size / most * width
            parts.append(svg.box(x, y, wide, ROW, palette.fill(colour), label, _say(label, size), kind="block"))
            if label and wide > 0 and not svg.fits(label, wide):
                behind.append(label)
            x += wide
        note = "; ".join(filter(None, (", ".join(behind), notes.get(name, ""))))
        parts.append(svg.text(x + 8, y + ROW / 2, note, kind="note") if note else "")
        ends.append(x + (8 + svg.LETTER * len(note) if note else 0))
    description = "; ".join(
        f"{name}: {', '.join(_say(label, size) for label, size, _ in row) or 'nothing'}" for name, row in rows.items()
    )
    return picture(max(ends) + 4, TOP + len(rows) * (ROW + GAP), title, description, parts, caption)


def _say(label, size):
    return f"{label} {size:g}".lstrip()


SHARE_ROW, SHARE_GAP, PER_SIZE = 22, 8, 18  # pixels: a row's height, between rows, the width of a size of 1

Share = Mapping[str, tuple[float, float]]  # for each part, from where to where the holder has it, of 0 to 1


def shares(
    parts: Mapping[str, tuple[float, int]],
    rows: Mapping[str, Share],
    *,
    title: str,
    caption: str | None = None,
) -> Figure:
    """Draw which share of each part every holder has.

    ``parts`` is a dict of name to ``(size, colour)``; each is an outline as wide as its size.
    ``rows`` is a dict of holder to its shares: ``{"gradients": (0.25, 0.5)}`` is the second quarter, filled. A
    holder without shares stands for others that are left out: its row is three dots.

    Raises ValueError when there is nothing to draw, or for a share of a part that is not there.
    """
    if not parts or not rows:
        raise ValueError("there is nothing to draw; give parts, and holders with their shares")
    unknown = sorted({part for held in rows.values() for part in held} - set(parts))
    if unknown:
        raise ValueError(f"no part is called {unknown[0]!r}; there are {', '.join(parts)}")
    left, top, between = 14 + svg.LETTER * max(map(len, rows)), 26, 10
    drawn, lefts, x = [], {}, left
    for name, (size, _) in parts.items():
        lefts[name] = x
        drawn.append(svg.text(x, 10, name, kind="part"))
        x += max(size * PER_SIZE, svg.LETTER * len(name)) + between
    y = top
    for holder, held in rows.items():
        drawn.append(svg.text(2, y + SHARE_ROW / 2, holder, kind="holder"))
        for name, (size, colour) in parts.items():
            wide = size * PER_SIZE
            if not held:
                drawn.append(svg.text(lefts[name] + wide / 2, y + SHARE_ROW / 2, "⋮", "middle"))
                continue
            drawn.append(svg.rect(lefts[name], y, wide, SHARE_ROW, kind="whole", stroke_dasharray="2 3"))
            start, end = held.get(name, (0.0, 0.0))
            if end > start:
                place = lefts[name] + start * wide, y, max((end - start) * wide, 1), SHARE_ROW
                drawn.append(svg.box(*place, palette.fill(colour), title=f"{holder}: {name}", kind="share"))
        y += SHARE_ROW + SHARE_GAP
    description = "; ".join(f"{holder}: {_in_words(parts, held)}" for holder, held in rows.items())
    return picture(x, y, title, description, drawn, caption)


def _in_words(parts, held):
    def of(name):
        start, end = held.get(name, (0.0, 0.0))
        return f"{name} whole" if end - start == 1 else f"{end - start:.3g} of {name}" if end > start else f"no {name}"

    return ", ".join(map(of, parts)) if held else "as the others"
