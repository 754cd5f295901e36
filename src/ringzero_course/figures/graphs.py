"""Graphs of gossip: ranks as circles, a line between two that send to each other, an arrow where only one sends."""

from collections.abc import Sequence
from math import cos, pi, sin

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

RADIUS, APART = 15, 74  # pixels: of a rank, between two neighbours
BEND = 0.62  # of APART: how far a line in a grid is bent
INTO, OTHER = palette.VERMILLION, svg.INK

Point = tuple[float, float]


def graph(
    weights: Sequence[Sequence[float]],
    *,
    title: str,
    columns: int | None = None,
    rank: int | None = 0,
    caption: str | None = None,
) -> Figure:
    """Draw ``weights``: rank j sends to rank i where ``weights[i][j]`` is above 0.

    Ranks lie on a circle, from the top clockwise, or with ``columns`` in a grid row by row. What comes in at ``rank``
    has another colour, its weights, and below the drawing their sum with the rank's own; None for no such rank.

    Raises ValueError for weights that are not square, and for a ``rank`` that is not there.
    """
    n = len(weights)
    if n == 0 or any(len(row) != n for row in weights):
        raise ValueError(f"weights have {n} rows of {sorted({len(row) for row in weights})} numbers; give N rows of N")
    if rank is not None and not 0 <= rank < n:
        raise ValueError(f"rank is {rank}; give one of 0 to {n - 1}, or None")
    places, width, height = _layout(n, columns)
    edges = [(i, j) for i in range(n) for j in range(n) if i != j and weights[i][j] > 0]
    lines, labels = [], []
    for i, j in sorted(edges, key=lambda edge: edge[0] == rank):
        both = (j, i) in edges
        if both and rank != i and (rank == j or i < j):
            continue  # a line for two, drawn once; the one into ``rank`` is the one that shows
        bend = _bend(places, i, j, columns)
        lines.append(_line(places[j], places[i], bend, heads=0 if both else 1, into=i == rank))
        if i == rank:
            labels.append(_label(_said(weights[i][j]), places[j], places[i], bend))
    ranks = [_rank(number, place, number == rank) for number, place in enumerate(places)]
    below = ""
    if rank is not None:
        terms = [f"{_said(weights[rank][rank])} own"]
        terms += [f"{_said(weights[rank][j])} of {j}" for j in range(n) if (rank, j) in edges]
        below = f"rank {rank} takes {' + '.join(terms)}"
        width = max(width, svg.LETTER * len(below) + 8)
        labels.append(svg.text(4, height + 4, below, kind="sum"))
    sends = [f"rank {j} sends to {', '.join(str(i) for i, k in edges if k == j) or 'nobody'}" for j in range(n)]
    description = "; ".join([*sends, *([below] if below else [])])
    height += 16 if below else 0
    return picture(width, height, title, description, [*lines, *ranks, *labels], caption)


def _layout(n: int, columns: int | None) -> tuple[list[Point], float, float]:
    """Where the ranks lie, and the width and height of all."""
    if columns is None:
        radius = max(1.15 * APART * n / (2 * pi), 0.8 * APART) if n > 1 else 0.0
        places, margin = [(radius * sin(2 * pi * i / n), -radius * cos(2 * pi * i / n)) for i in range(n)], 0.0
    else:
        places, margin = [(i % columns * APART * 1.5, i // columns * APART) for i in range(n)], BEND * APART
    margin += RADIUS + 6
    left, top = (min(place[axis] for place in places) - margin for axis in (0, 1))
    places = [(x - left, y - top) for x, y in places]
    width, height = (max(place[axis] for place in places) + margin for axis in (0, 1))
    return places, width, height


def _bend(places: Sequence[Point], i: int, j: int, columns: int | None) -> Point:
    """By how much the middle of a line is moved, so that it does not run through ranks that lie between its ends."""
    if columns is None:
        return 0.0, 0.0
    (row, column), (other_row, other_column) = divmod(i, columns), divmod(j, columns)
    if row == other_row and abs(column - other_column) > 1:
        return 0.0, -APART * BEND if row * 2 < len(places) // columns else APART * BEND
    if column == other_column and abs(row - other_row) > 1:
        return -APART * BEND if column * 2 < columns else APART * BEND, 0.0
    return 0.0, 0.0


def _line(start: Point, end: Point, bend: Point, heads: int, into: bool) -> str:
    """From the circle round ``start`` to that round ``end``, through the middle moved by twice ``bend``, about."""
    control = (start[0] + end[0]) / 2 + 2 * bend[0], (start[1] + end[1]) / 2 + 2 * bend[1]
    start, end = svg.towards(start, control, RADIUS), svg.towards(end, control, RADIUS)
    if into:
        return svg.arrow(start, end, INTO, 2.5, heads, control, kind="into")
    return svg.arrow(start, end, OTHER, 1.3, heads, control, kind="edge", opacity=0.45)


def _rank(number: int, place: Point, is_focus: bool) -> str:
    stroke, width = (INTO, 2.5) if is_focus else (OTHER, 0.5)
    return svg.disc(place, RADIUS, palette.fill(number), f"{number}", kind="rank", stroke=stroke, stroke_width=width)


def _label(words: str, start: Point, end: Point, bend: Point) -> str:
    """On the line, nearer to its end, where lines into one rank are still apart."""
    x, y = (a * 0.46 + b * 0.54 + c for a, b, c in zip(start, end, bend, strict=True))
    return svg.text(x, y, words, "middle", halo=True, kind="weight")


def _said(weight: float) -> str:
    """As a fraction, where it is one with 1 above."""
    below = round(1 / weight) if weight else 1
    return f"1/{below}" if below > 1 and abs(weight * below - 1) < 1e-9 else f"{weight:.3g}"
