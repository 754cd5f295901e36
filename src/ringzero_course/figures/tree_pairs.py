"""Two trees over the same ranks, as a double binary tree has them: a leaf of one is an inner rank of the other.

    two_trees(7)

Drawn from the schedule that ranks run. Each rank has a column: its place in the first tree is above, in the second
below, so the roots are at the top and at the bottom and the leaves meet in the middle.
"""

from ringzero.collectives.trees import double_binary_tree_broadcast
from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

COLUMN, LEVEL, RADIUS, LEFT, BETWEEN = 44, 54, 15, 76, 30  # pixels; BETWEEN: the trees' lowest levels
HALVES = ("first half", palette.BLUE), ("second half", palette.VERMILLION)


def two_trees(ranks: int, *, caption: str | None = None) -> Figure:
    """Draw both trees of the broadcast from rank 0.

    Raises ValueError for fewer than 3 and more than 15 ranks, and for an even number: there the second tree is the
    first one shifted, so one rank's line would cross the others'.
    """
    if not 3 <= ranks <= 15 or ranks % 2 == 0:
        raise ValueError(f"ranks is {ranks}; there is room for an odd number from 3 to 15")
    parents: list[dict[int, int]] = [{}, {}]
    for of_round in double_binary_tree_broadcast(ranks).rounds:
        for sent in of_round:
            parents[sent.chunk][sent.dst] = sent.src
    depths = [_depths(parent, ranks) for parent in parents]
    deepest = max(map(max, depths))
    across, middle = [LEFT + COLUMN * (rank + 0.5) for rank in range(ranks)], RADIUS + 4 + deepest * LEVEL + BETWEEN / 2
    parts, said = [], []
    places = [
        [(across[r], middle + side * (BETWEEN / 2 + (deepest - depths[tree][r]) * LEVEL)) for r in range(ranks)]
        for tree, side in enumerate((-1, 1))
    ]
    for rank in range(ranks):
        parts.append(svg.line(*places[0][rank], *places[1][rank], stroke_opacity=0.3, stroke_dasharray="2 4"))
    for (half, colour), parent, where in zip(HALVES, parents, places, strict=True):
        for child, its in sorted(parent.items()):
            end = svg.towards(where[child], where[its], RADIUS)
            parts.append(svg.arrow(svg.towards(where[its], where[child], RADIUS), end, colour, 2, kind="edge"))
        said.append(f"{half}: " + ", ".join(f"{its} to {child}" for child, its in sorted(parent.items())))
        for rank, place in enumerate(where):
            parts.append(svg.disc(place, RADIUS, palette.fill(rank), f"{rank}", kind="rank", stroke_width=0.5))
    for (half, _), where in zip(HALVES, places, strict=True):
        y = where[0][1]
        parts.append(svg.text(2, y - 7, half, bold=True))
        parts.append(svg.text(2, y + 8, "of the buffer"))
    title = f"Two trees over {ranks} ranks"
    return picture(LEFT + COLUMN * ranks, 2 * middle, title, "; ".join(said), parts, caption)


def _depths(parent, ranks):
    """How many hops each rank is from rank 0."""

    def depth(rank):
        return 1 + depth(parent[rank]) if rank else 0

    return [depth(rank) for rank in range(ranks)]
