"""Traffic: who sends how much to whom. Nodes as boxes, ranks inside them, an arrow for each pair that talks."""

from collections.abc import Callable, Mapping
from html import escape
from math import hypot

from ringzero.drawing import palette
from ringzero.drawing.figure import HALO, Figure, frame, svg_open

# Pixels: a node's width, a rank's height, above, between the nodes' left sides, and a rank's radius.
NODE, RANK, TOP, APART, RADIUS = 150, 110, 66, 300, 20
INSIDE, ACROSS = palette.BLUE, palette.VERMILLION
HEAD = 9  # of an arrow


def traffic(
    sent: Mapping[tuple[int, int], float],
    *,
    ranks_per_node: int,
    ranks: int,
    title: str,
    largest: float | None = None,
    say: Callable[[float], str] = "{:,.0f}".format,
    caption: str | None = None,
) -> Figure:
    """Draw ``sent``, ``{(from, to): bytes}``, between ``ranks`` ranks in nodes of ``ranks_per_node``.

    Arrows between nodes have another colour than those inside. They are the thicker the more they carry; ``largest``,
    in bytes, has the full thickness, for figures side by side. ``say`` writes the bytes.

    Raises ValueError for a rank that is not there, and when the nodes are not whole.
    """
    if not 1 <= ranks_per_node <= ranks or ranks % ranks_per_node:
        raise ValueError(f"{ranks} ranks are not whole nodes of {ranks_per_node}; give a divisor")
    for pair in sent:
        if not all(0 <= rank < ranks for rank in pair):
            raise ValueError(f"{pair} is not a pair of ranks 0 to {ranks - 1}")
    most = max(sent.values(), default=0) if largest is None else largest
    nodes = ranks // ranks_per_node
    width, height = 60 + NODE + (nodes - 1) * APART + 60, TOP + (ranks_per_node - 1) * RANK + 48
    place = {rank: _place(rank, ranks_per_node) for rank in range(ranks)}
    drawing = []
    for node in range(nodes):
        x = 60 + node * APART
        drawing.append(
            f'<rect class="node" x="{x}" y="26" width="{NODE}" height="{height - 34}" rx="8" fill="none" '
            f'stroke="currentColor" stroke-opacity="0.5"/><text x="{x + NODE / 2:g}" y="16" '
            f'text-anchor="middle">node {node}</text>'
        )
    arrows = [(pair, size, place[pair[0]], place[pair[1]]) for pair, size in sent.items() if size > 0]
    drawing += [_arrow(pair, size / most, a, b, ranks_per_node) for pair, size, a, b in arrows]
    for rank, (x, y) in place.items():
        fill = palette.fill(rank)
        drawing.append(
            f'<circle class="rank" cx="{x:g}" cy="{y:g}" r="{RADIUS}" fill="{fill}" stroke="currentColor" '
            f'stroke-width="0.5"/><text class="chunk" x="{x:g}" y="{y + 4:g}" text-anchor="middle" '
            f'fill="{palette.ink(fill)}">{rank}</text>'
        )
    drawing += [_label(say(size), pair, a, b) for pair, size, a, b in arrows]
    across = sum(size for (a, b), size in sent.items() if a // ranks_per_node != b // ranks_per_node)
    description = (
        f"Between nodes {say(across)}, inside them {say(sum(sent.values()) - across)}: "
        f"{'; '.join(f'rank {a} to {b} {say(size)}' for (a, b), size in sent.items()) or 'nothing'}"
    )
    svg = f'<g font-size="12" fill="currentColor">{"".join(drawing)}</g></svg>'
    return frame(svg_open(width, height, title, description) + svg, f"{title}. {description}", caption)


def _place(rank, ranks_per_node):
    node, row = divmod(rank, ranks_per_node)
    return 60 + NODE / 2 + node * APART, TOP + row * RANK


def _ends(a, b):
    """Where the arrow from ``a`` to ``b`` begins and ends: beside the one that comes back."""
    long = hypot(b[0] - a[0], b[1] - a[1])
    along, aside = ((b[0] - a[0]) / long, (b[1] - a[1]) / long), 9
    shift = (-along[1] * aside, along[0] * aside)
    begin = [a[i] + along[i] * RADIUS + shift[i] for i in (0, 1)]
    end = [b[i] - along[i] * (RADIUS + HEAD) + shift[i] for i in (0, 1)]
    return begin, end, along, shift


def _arrow(pair, share, a, b, ranks_per_node):
    begin, end, along, shift = _ends(a, b)
    crosses = pair[0] // ranks_per_node != pair[1] // ranks_per_node
    colour, thick = (ACROSS if crosses else INSIDE), 1.5 + 5 * min(share, 1) ** 0.5
    side = (shift[0] / 9 * (HEAD * 0.4 + thick / 2), shift[1] / 9 * (HEAD * 0.4 + thick / 2))
    tip = [end[i] + along[i] * HEAD for i in (0, 1)]
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, (end[0] + side[0], end[1] + side[1]),
                                                    (end[0] - side[0], end[1] - side[1])))  # fmt: skip
    return (
        f'<g class="{"across" if crosses else "inside"}"><line x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" '
        f'x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{colour}" stroke-width="{thick:.1f}"/>'
        f'<polygon points="{head}" fill="{colour}"/></g>'
    )


def _label(text, pair, a, b):
    begin, end, _, shift = _ends(a, b)
    if abs(a[0] - b[0]) < 1:  # upright: beside the arrow, outside of the pair
        x, y, anchor = begin[0] + (8 if shift[0] > 0 else -8), (begin[1] + end[1]) / 2 + 4, "start"
        anchor = anchor if shift[0] > 0 else "end"
    elif abs(a[1] - b[1]) < 1:  # level: beside the arrow, in the middle
        x, y, anchor = (begin[0] + end[0]) / 2, begin[1] + (18 if shift[1] > 0 else -9), "middle"
    else:  # on the arrow, nearer to the sender, where no other one crosses
        x, y = (begin[i] + (end[i] - begin[i]) * 0.25 for i in (0, 1))
        y, anchor = y + 4, "middle"
    return f'<text class="bytes" style="{HALO}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
