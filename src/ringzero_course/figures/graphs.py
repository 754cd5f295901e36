"""Graphs of gossip: ranks as circles, a line between two that send to each other, an arrow where only one sends."""

from collections.abc import Sequence
from html import escape
from math import cos, hypot, pi, sin

from ringzero.drawing import palette
from ringzero.drawing.figure import HALO, Figure, frame, svg_open

RADIUS, APART, HEAD, LETTER = 15, 74, 9, 6.6  # pixels: a rank, between two neighbours, an arrow's head, a letter
BEND = 0.62  # of APART: how far a line in a grid is bent
INTO, OTHER = palette.VERMILLION, "currentColor"

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
    places = _on_circle(n) if columns is None else [divmod(i, columns)[::-1] for i in range(n)]
    margin: float = RADIUS + 6
    if columns is not None:
        places = [(x * APART * 1.5, y * APART) for x, y in places]
        margin += BEND * APART
    left, top = (min(place[axis] for place in places) - margin for axis in (0, 1))
    places = [(x - left, y - top) for x, y in places]
    width, height = (max(place[axis] for place in places) + margin for axis in (0, 1))

    edges = [(i, j) for i in range(n) for j in range(n) if i != j and weights[i][j] > 0]
    lines, labels = [], []
    for i, j in sorted(edges, key=lambda edge: edge[0] == rank):
        both = (j, i) in edges
        if both and rank != i and (rank == j or i < j):
            continue  # a line for two, drawn once; the one into ``rank`` is the one that shows
        bend = _bend(places, i, j, columns)
        lines.append(_line(places[j], places[i], bend, is_arrow=not both, into=i == rank))
        if i == rank:
            labels.append(_label(_said(weights[i][j]), places[j], places[i], bend))
    circles = [_circle(number, place, number == rank) for number, place in enumerate(places)]
    below = ""
    if rank is not None:
        terms = [f"{_said(weights[rank][rank])} own"]
        terms += [f"{_said(weights[rank][j])} of {j}" for j in range(n) if (rank, j) in edges]
        below = f"rank {rank} takes {' + '.join(terms)}"
        width = max(width, LETTER * len(below) + 8)
        labels.append(f'<text class="sum" x="4" y="{height + 8:g}">{escape(below)}</text>')
    sends = [f"rank {j} sends to {', '.join(str(i) for i, k in edges if k == j) or 'nobody'}" for j in range(n)]
    description = "; ".join([*sends, *([below] if below else [])])
    drawing = f'<g font-size="12" fill="currentColor">{"".join([*lines, *circles, *labels])}</g></svg>'
    opening = svg_open(width, height + (16 if below else 0), title, description)
    return frame(opening + drawing, f"{title}. {description}", caption)


def _on_circle(n: int) -> list[Point]:
    radius = max(1.15 * APART * n / (2 * pi), 0.8 * APART) if n > 1 else 0.0
    return [(radius * sin(2 * pi * i / n), -radius * cos(2 * pi * i / n)) for i in range(n)]


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


def _line(start: Point, end: Point, bend: Point, is_arrow: bool, into: bool) -> str:
    """From the circle round ``start`` to that round ``end``, through the middle moved by twice ``bend``, about."""
    control = (start[0] + end[0]) / 2 + 2 * bend[0], (start[1] + end[1]) / 2 + 2 * bend[1]
    x1, y1 = _towards(start, control, RADIUS)
    tip = _towards(end, control, RADIUS + 1)
    x2, y2 = _towards(end, control, RADIUS + HEAD) if is_arrow else _towards(end, control, RADIUS)
    colour, look = (INTO, "") if into else (OTHER, ' stroke-opacity="0.45"')
    path = (
        f'<path d="M{x1:.1f} {y1:.1f}Q{control[0]:.1f} {control[1]:.1f} {x2:.1f} {y2:.1f}" fill="none" '
        f'stroke="{colour}" stroke-width="{2.5 if into else 1.3}"{look}/>'
    )
    if is_arrow:
        long = hypot(tip[0] - x2, tip[1] - y2)
        across = ((y2 - tip[1]) / long * HEAD * 0.5, (tip[0] - x2) / long * HEAD * 0.5)
        corners = (tip, (x2 + across[0], y2 + across[1]), (x2 - across[0], y2 - across[1]))
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        path += f'<polygon points="{points}" fill="{colour}"{look.replace("stroke", "fill")}/>'
    return f'<g class="{"into" if into else "edge"}">{path}</g>'


def _towards(start: Point, end: Point, distance: float) -> Point:
    long = hypot(end[0] - start[0], end[1] - start[1])
    return start[0] + (end[0] - start[0]) / long * distance, start[1] + (end[1] - start[1]) / long * distance


def _circle(number: int, place: Point, is_focus: bool) -> str:
    fill = palette.fill(number)
    return (
        f'<circle class="rank" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{RADIUS}" fill="{fill}" '
        f'stroke="{INTO if is_focus else OTHER}" stroke-width="{2.5 if is_focus else 0.5}"/>'
        f'<text class="chunk" x="{place[0]:.1f}" y="{place[1] + 4:.1f}" text-anchor="middle" '
        f'fill="{palette.ink(fill)}">{number}</text>'
    )


def _label(text: str, start: Point, end: Point, bend: Point) -> str:
    """On the line, nearer to its end, where lines into one rank are still apart."""
    x, y = (a * 0.46 + b * 0.54 + c for a, b, c in zip(start, end, bend, strict=True))
    return f'<text class="weight" style="{HALO}" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(text)}</text>'


def _said(weight: float) -> str:
    """As a fraction, where it is one with 1 above."""
    below = round(1 / weight) if weight else 1
    return f"1/{below}" if below > 1 and abs(weight * below - 1) < 1e-9 else f"{weight:.3g}"
