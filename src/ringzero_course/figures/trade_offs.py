"""A trade-off: each thing as a point with its name, and the line of those that nothing else beats in both ways."""

from collections.abc import Iterator, Mapping
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

from ringzero.drawing import palette
from ringzero.drawing.figure import HALO, Figure, frame, svg_open

WIDTH, HEIGHT, LEFT, TOP, BELOW = 560, 320, 56, 14, 44  # pixels: of the plot, and of the room around it
LETTER, LINE, DOT = 6.2, 13, 4  # pixels: a letter on average, a line of text, a point's radius

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def front(points: Mapping[str, Place]) -> list[str]:
    """Names of the points that no other is at least as low as in both coordinates, from left to right.

    >>> front({"slow and good": (3, 1), "fast and bad": (1, 3), "beaten": (3, 2)})
    ['fast and bad', 'slow and good']
    """
    best, names = float("inf"), []
    for name, (_, y) in sorted(points.items(), key=lambda point: point[1]):
        if y < best:
            names.append(name)
            best = y
    return names


def trade_off(points: Mapping[str, Place], *, x: str, y: str, title: str, caption: str | None = None) -> Figure:
    """Draw ``points``, a dict of name to ``(x, y)``, lower being better; ``x`` is on a logarithmic axis.

    Raises ValueError without points, and for one whose x is not positive.
    """
    if not points:
        raise ValueError("there are no points; give a dict of name to (x, y)")
    if wrong := [name for name, (px, _) in points.items() if not px > 0]:
        raise ValueError(f"{wrong[0]} has x {points[wrong[0]][0]!r}; on a logarithmic axis it must be above 0")
    left, right = _around([log10(px) for px, _ in points.values()])
    bottom, top = _around([py for _, py in points.values()])
    places = {
        name: (
            LEFT + (log10(px) - left) / (right - left) * WIDTH,
            TOP + HEIGHT - (py - bottom) / (top - bottom) * HEIGHT,
        )
        for name, (px, py) in points.items()
    }
    best = front(points)
    drawing = [*_axes(left, right, bottom, top, x, y)]
    drawing += [
        f'<line class="front" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{palette.BLUE}" '
        'stroke-width="1.5" stroke-dasharray="5 4"/>'
        for (x1, y1), (x2, y2) in pairwise(places[name] for name in best)
    ]
    taken = [(px - DOT, py - DOT, px + DOT, py + DOT) for px, py in places.values()]
    for name, (px, py) in sorted(places.items(), key=lambda place: place[1][1]):
        colour = palette.BLUE if name in best else palette.VERMILLION
        said = f"{name}: {points[name][0]:.3g}, {points[name][1]:.3g}"
        drawing.append(
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{DOT}" fill="{colour}"><title>{escape(said)}</title></circle>'
        )
        box = _free(px, py, len(name) * LETTER, taken)
        taken.append(box)
        look = f'style="{HALO}"' + ' font-weight="bold"' * (name in best)
        drawing.append(f'<text class="name" x="{box[0]:.1f}" y="{box[3] - 3:.1f}" {look}>{escape(name)}</text>')
    said = "; ".join(f"{name} {px:.3g}, {py:.3g}" for name, (px, py) in points.items())
    description = f"{y} against {x}: {said}. Not beaten in both: {', '.join(best)}"
    opening = svg_open(LEFT + WIDTH + 110, TOP + HEIGHT + BELOW, title, description, text=11.5)
    svg = f'{opening}<g font-size="11.5" fill="currentColor">{"".join(drawing)}</g></svg>'
    return frame(svg, f"{title}. {description}", caption)


def _around(values: list[float]) -> Place:
    room = (max(values) - min(values) or 1) * 0.08
    return min(values) - room, max(values) + room


def _axes(left: float, right: float, bottom: float, top: float, x: str, y: str) -> Iterator[str]:
    def text(px: float, py: float, what: str, anchor: str = "middle", more: str = "") -> str:
        return f'<text x="{px:.1f}" y="{py:.1f}" text-anchor="{anchor}"{more}>{escape(what)}</text>'

    floor_y = TOP + HEIGHT
    for exponent in range(floor(left), ceil(right) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**exponent
            if left <= log10(value) <= right:
                px = LEFT + (log10(value) - left) / (right - left) * WIDTH
                yield _rule(px, TOP, px, floor_y)
                yield text(px, floor_y + 16, f"{value:g}")
    step = 10.0 ** floor(log10(top - bottom))
    step = next(step / part for part in (1, 2, 5, 10) if (top - bottom) / (step / part) >= 4)
    for number in range(ceil(bottom / step), floor(top / step) + 1):
        py = floor_y - (number * step - bottom) / (top - bottom) * HEIGHT
        yield _rule(LEFT, py, LEFT + WIDTH, py)
        yield text(LEFT - 6, py + 4, f"{number * step:.4g}", "end")
    yield text(LEFT + WIDTH / 2, floor_y + 36, x)
    yield text(14, TOP + HEIGHT / 2, y, more=f' transform="rotate(-90 14 {TOP + HEIGHT / 2:g})"')


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    places = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {places} stroke="currentColor" stroke-opacity="0.13" stroke-width="0.8"/>'


def _free(px: float, py: float, width: float, taken: list[Box]) -> Box:
    """Where a name beside its point touches nothing: to the right, to the left, then further and further away."""
    boxes = []
    for away in range(9):
        for level in (0, -away, away) if away else (0,):
            for start in (px + DOT + 3, px - DOT - 3 - width):
                middle = py + level * LINE * 0.75
                boxes.append((start, middle - LINE / 2, start + width, middle + LINE / 2))
    inside = [box for box in boxes if box[0] > LEFT and box[1] > TOP - LINE and box[3] < TOP + HEIGHT]
    return next((box for box in inside if not any(_touch(box, other) for other in taken)), boxes[0])


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
