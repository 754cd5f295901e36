"""Memory over a training step: stacked areas, one for each kind, from ``MemoryTimeline.history()``.

To the right go changes, allocations and releases in their order, not seconds: so a figure is the same each time it is
made. Where changes are closer than a pixel the one with the most bytes shows.
"""

from typing import TYPE_CHECKING

from ringzero.drawing import axes, palette, svg
from ringzero.drawing.figure import Figure, picture

if TYPE_CHECKING:  # it imports torch, which a figure does not need
    from ringzero.record.memory import History

LEFT, TOP, WIDTH, BOTTOM, RIGHT = 70, 34, 520, 294, 150  # pixels: of the areas; of the names to their right
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
    across = axes.Scale(0, max(len(totals) - 1, 1), LEFT, LEFT + WIDTH)
    up = axes.Scale(0, most / size, BOTTOM, TOP)
    columns = _columns(totals, across)
    held = {kind: [of[change] / size for _, change in columns] for kind, of in history.bytes.items() if max(of)}
    parts = [svg.text(2, 10, unit), svg.text(LEFT, BOTTOM + 26, "allocations and releases, in their order →")]
    parts += axes.level(up, LEFT, LEFT + WIDTH)
    parts += _stacked(held, [x for x, _ in columns], up, unit)
    parts += _marks(history.marks, across)
    peak = f"at most {max(totals) / size:.3g} {unit}"
    description = f"{', '.join(held)} over {len(totals)} allocations and releases; {peak}"
    return picture(LEFT + WIDTH + RIGHT, BOTTOM + 40, "Memory of a training step", description, parts, caption)


def _columns(totals, across):
    """``(x, change)`` from left to right, at most one a pixel: the change with the most bytes."""
    highest = {}
    for change, total in enumerate(totals):
        x = round(across(change))
        if x not in highest or total > totals[highest[x]]:
            highest[x] = change
    return sorted(highest.items())


def _stacked(held, xs, up, unit):
    """An area for each kind on top of the kinds before it, and their names."""
    below, areas, labels = [0.0] * len(xs), [], []
    for kind, values in held.items():
        # The name stands where the area is last thick: a short line leads there from the right.
        thick = max(i for i, value in enumerate(values) if 2 * value >= max(values))
        labels.append((kind, xs[thick], up(below[thick] + values[thick] / 2)))
        below = [low + more for low, more in zip(below, values, strict=True)]
        steps = "".join(f"H{x}V{svg.number(up(top))}" for x, top in zip(xs, below, strict=True))
        outline, said = f"M{LEFT} {BOTTOM}{steps}H{LEFT + WIDTH}V{BOTTOM}Z", f"{kind}: at most {max(values):.3g} {unit}"
        areas.append(svg.path(outline, COLOURS[kind], title=said, kind=kind, stroke_width=0.5))
    return [*reversed(areas), *_names(labels)]  # each area goes down to the axis, and the one below lies on top of it


def _marks(marks, across):
    """A line where each phase ends, its name to the left of the line, a line higher where another name is."""
    parts, ends = [], [LEFT - 8, LEFT - 8]  # of the names so far, in the lower line and in the upper one
    for name, change in marks:
        x = across(change)
        start = x - svg.LETTER * len(name) - 12
        level = next((level for level, end in enumerate(ends) if start >= end), None)
        top = TOP - 18 - 12 * (level or 0)
        parts.append(svg.line(x, top, x, BOTTOM, kind="phase", stroke_dasharray="3"))
        if level is not None:
            parts.append(svg.text(x - 2, top + 6, name, "end"))
            ends[level] = x
        ends[0] = max(ends[0], x)  # no name lies over a line
    return parts


def _names(labels):
    """Names on the right, as high as what they name or a line apart, and a line to it."""
    parts, x = [], LEFT + WIDTH
    labels = sorted(labels, key=lambda label: -label[2])  # no line crosses another
    levels = axes.apart([-middle for _, _, middle in labels], -TOP, gap=16)  # from the bottom up
    for (kind, at, middle), level in zip(labels, levels, strict=True):
        y = -level
        parts += [
            svg.line(at, middle, x + 8, y, stroke_width=0.7),
            svg.disc((at, middle), 2, svg.INK, stroke=None),
            svg.box(x + 10, y - 6, 12, 12, COLOURS[kind]),
            svg.text(x + 27, y, kind, kind="kind"),
        ]
    return parts
