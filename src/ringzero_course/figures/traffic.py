"""Traffic: who sends how much to whom. Nodes as boxes, ranks inside them, an arrow for each pair that talks."""

from collections.abc import Callable, Mapping
from math import dist

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

# Pixels: a node's width, a rank's height, above, between the nodes' left sides, a rank's radius, and between an arrow
# and the line from rank to rank: the arrow that comes back lies on the other side.
NODE, RANK, TOP, APART, RADIUS, ASIDE = 150, 110, 66, 300, 20, 9
INSIDE, ACROSS = palette.BLUE, palette.VERMILLION


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
    parts = []
    for node in range(nodes):
        x = 60 + node * APART
        parts.append(svg.rect(x, 26, NODE, height - 34, kind="node", rx=8, stroke_opacity=0.5))
        parts.append(svg.text(x + NODE / 2, 12, f"node {node}", "middle"))
    arrows = [(pair, size, *_ends(place[pair[0]], place[pair[1]])) for pair, size in sent.items() if size > 0]
    for (source, target), size, start, end in arrows:
        crosses = source // ranks_per_node != target // ranks_per_node
        kind, colour = ("across", ACROSS) if crosses else ("inside", INSIDE)
        thick = 1.5 + 5 * min(size / most, 1) ** 0.5
        parts.append(svg.arrow(start, end, colour, thick, kind=kind))
    for rank, middle in place.items():
        parts.append(svg.disc(middle, RADIUS, palette.fill(rank), f"{rank}", kind="rank", stroke_width=0.5))
    parts += [_label(say(size), start, end) for _, size, start, end in arrows]
    across = sum(size for (a, b), size in sent.items() if a // ranks_per_node != b // ranks_per_node)
    description = (
        f"Between nodes {say(across)}, inside them {say(sum(sent.values()) - across)}: "
        f"{'; '.join(f'rank {a} to {b} {say(size)}' for (a, b), size in sent.items()) or 'nothing'}"
    )
    return picture(width, height, title, description, parts, caption)


def _place(rank, ranks_per_node):
    node, row = divmod(rank, ranks_per_node)
    return 60 + NODE / 2 + node * APART, TOP + row * RANK


def _ends(a, b):
    """Where the arrow from rank to rank begins and ends."""
    long = dist(a, b)
    shift = (a[1] - b[1]) / long * ASIDE, (b[0] - a[0]) / long * ASIDE
    begin, end = svg.towards(a, b, RADIUS), svg.towards(b, a, RADIUS)
    return (begin[0] + shift[0], begin[1] + shift[1]), (end[0] + shift[0], end[1] + shift[1])


def _label(words, begin, end):
    dx, dy = end[0] - begin[0], end[1] - begin[1]
    if abs(dx) < 1:  # upright: beside the arrow, outside of the pair
        x, y, anchor = begin[0] + (8 if dy < 0 else -8), begin[1] + dy / 2, "start" if dy < 0 else "end"
    elif abs(dy) < 1:  # level: beside the arrow, in the middle
        x, y, anchor = begin[0] + dx / 2, begin[1] + (14 if dx > 0 else -13), "middle"
    else:  # on the arrow, nearer to the sender, where no other one crosses
        x, y, anchor = begin[0] + dx / 4, begin[1] + dy / 4, "middle"
    return svg.text(x, y, words, anchor, halo=True, kind="bytes")
