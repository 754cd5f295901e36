"""A trade-off: each thing as a point with its name, and the line of those that nothing else beats in both ways."""

from collections.abc import Mapping
from itertools import pairwise

from ringzero.drawing import axes, palette, svg
from ringzero.drawing.figure import Figure, picture

WIDTH, HEIGHT, LEFT, TOP, BELOW = 560, 320, 56, 14, 44  # pixels: of the plot, and of the room around it
LINE, DOT = 13, 4  # pixels: a line of text, a point's radius

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
    xs, ys = zip(*points.values(), strict=True)
    across = axes.around(xs, LEFT, LEFT + WIDTH, log=True)
    up = axes.around(ys, TOP + HEIGHT, TOP)
    places = {name: (across(px), up(py)) for name, (px, py) in points.items()}
    best = front(points)
    parts = axes.plot(across, up, x, y)
    for start, end in pairwise(places[name] for name in best):
        parts.append(svg.line(*start, *end, palette.BLUE, kind="front", stroke_width=1.5, stroke_dasharray="5 4"))
    taken = [(px - DOT, py - DOT, px + DOT, py + DOT) for px, py in places.values()]
    for name, place in sorted(places.items(), key=lambda place: place[1][1]):
        colour = palette.BLUE if name in best else palette.VERMILLION
        said = f"{name}: {points[name][0]:.3g}, {points[name][1]:.3g}"
        box = _free(*place, len(name) * svg.LETTER, taken)
        taken.append(box)
        middle = (box[1] + box[3]) / 2
        parts.append(svg.disc(place, DOT, colour, title=said, stroke=None))
        parts.append(svg.text(box[0], middle, name, bold=name in best, halo=True, kind="name"))
    said = "; ".join(f"{name} {px:.3g}, {py:.3g}" for name, (px, py) in points.items())
    description = f"{y} against {x}: {said}. Not beaten in both: {', '.join(best)}"
    return picture(LEFT + WIDTH + 110, TOP + HEIGHT + BELOW, title, description, parts, caption)


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
