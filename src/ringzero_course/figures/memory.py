"""Memory over a training step: stacked areas, one for each kind, from ``MemoryTimeline.history()``.

To the right go changes, allocations and releases in their order, not seconds: so a figure is the same each time it is
made. Where changes are closer than a pixel the one with the most bytes shows.
"""

from html import escape
from math import floor, log10
from typing import TYPE_CHECKING

from ringzero.drawing import palette
from ringzero.drawing.figure import Figure, frame, svg_open

if TYPE_CHECKING:  # it imports torch, which a figure needs not
    from ringzero.record.memory import History

LEFT, TOP, WIDTH, HEIGHT, RIGHT = 70, 34, 520, 260, 150
COLOURS = {
    "parameters": palette.BLUE,
    "gradients": palette.ORANGE,
    "optimizer": palette.GREEN,
    "buckets": palette.YELLOW,
    "activations": palette.SKY,
    "other": palette.PURPLE,
}
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))


def memory_timeline(history: "History", *, most: float | None = None, caption: str | None = None) -> Figure:
    """Draw a ``ringzero.record.memory.History``. ``most`` is the top of the scale in bytes, for figures side by side.

    Raises ValueError when nothing was held.
    """
    totals = history.totals
    if not totals or not max(totals):
        raise ValueError("the history is empty; run a step inside the MemoryTimeline")
    most = max(totals) if most is None else most
    size, unit = next((size, unit) for size, unit in UNITS if most >= size)
    columns = _columns(totals)
    kinds = [kind for kind, held in history.bytes.items() if max(held)]
    peak = f"at most {max(totals) / size:.3g} {unit}"
    description = f"{', '.join(kinds)} over {len(totals)} allocations and releases; {peak}"
    drawing = [svg_open(LEFT + WIDTH + RIGHT, TOP + HEIGHT + 40, "Memory of a training step", description)]
    drawing.append('<g font-size="12" fill="currentColor">')
    drawing += _scale(most, size, unit)
    below, areas, labels = [0] * len(columns), [], []
    for kind in kinds:
        held = [history.bytes[kind][change] for _, change in columns]
        thick = max(i for i in range(len(columns)) if 2 * held[i] >= max(held))  # the last: a short line leads there
        labels.append((kind, columns[thick][0], _y(below[thick] + held[thick] / 2, most)))
        below = [low + more for low, more in zip(below, held, strict=True)]
        areas.append(_area(kind, columns, below, most, f"{kind}: at most {max(held) / size:.3g} {unit}"))
    drawing += reversed(areas)  # each down to the axis, and the one below it on top
    drawing += _marks(history.marks, len(totals))
    drawing += _names(labels)
    drawing.append("</g></svg>")
    return frame("".join(drawing), f"Memory of a training step. {description}", caption)


def _columns(totals):
    """``(x, change)`` from left to right, at most one a pixel: the change with the most bytes."""
    highest = {}
    for change, total in enumerate(totals):
        x = round(_x(change, len(totals)))
        if x not in highest or total > totals[highest[x]]:
            highest[x] = change
    return sorted(highest.items())


def _x(change, changes):
    return LEFT + WIDTH * change / max(changes - 1, 1)


def _y(held, most):
    return TOP + HEIGHT * (1 - held / most)


def _area(kind, columns, upto, most, title):
    path, last = f"M{LEFT} {TOP + HEIGHT}", None
    for (x, _), held in zip(columns, upto, strict=True):
        y = f"{_y(held, most):.1f}"
        if y != last:
            path, last = f"{path}H{x}V{y}", y
    return (
        f'<path class="{kind}" d="{path}H{LEFT + WIDTH}V{TOP + HEIGHT}Z" fill="{COLOURS[kind]}" stroke="currentColor" '
        f'stroke-width="0.5"><title>{escape(title)}</title></path>'
    )


def _scale(most, size, unit):
    step = 10 ** floor(log10(most / size))
    step = next(step * factor for factor in (0.1, 0.2, 0.5, 1, 2) if most / size / (step * factor) <= 6)
    parts = [f'<text x="2" y="14">{unit}</text>']
    for i in range(int(most / size / step + 1e-9) + 1):
        y = _y(i * step * size, most)
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{i * step:g}</text>'
            f'<line x1="{LEFT - 4}" x2="{LEFT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor"/>'
        )
    parts.append(f'<text x="{LEFT}" y="{TOP + HEIGHT + 30}">allocations and releases, in their order →</text>')
    return parts


def _marks(marks, changes):
    """A line where each phase ends, its name to the left of the line, out of the way of the one before."""
    parts, last = [], LEFT - 8
    for name, change in marks:
        x = _x(change, changes)
        parts.append(
            f'<line class="phase" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 18}" y2="{TOP + HEIGHT}" stroke="currentColor" '
            'stroke-dasharray="3"/>'
        )
        if x - 6 * len(name) - 4 >= last:
            parts.append(f'<text x="{x - 2:.1f}" y="{TOP - 8}" text-anchor="end">{escape(name)}</text>')
            last = x
    return parts


def _names(labels):
    """Names on the right, as high as what they name or a line above the one below, and a line to it."""
    parts, floor_ = [], TOP + HEIGHT + 16
    for kind, x, y in labels:  # from the bottom up
        place = min(y, floor_ - 16)
        floor_ = place
        parts.append(
            f'<line x1="{x}" x2="{LEFT + WIDTH + 8}" y1="{y:.1f}" y2="{place:.1f}" stroke="currentColor" '
            f'stroke-width="0.7"/><circle cx="{x}" cy="{y:.1f}" r="2"/>'
            f'<rect x="{LEFT + WIDTH + 10}" y="{place - 6:.1f}" width="12" height="12" fill="{COLOURS[kind]}" '
            f'stroke="currentColor" stroke-width="0.5"/>'
            f'<text class="kind" x="{LEFT + WIDTH + 27}" y="{place + 4:.1f}">{escape(kind)}</text>'
        )
    return parts
