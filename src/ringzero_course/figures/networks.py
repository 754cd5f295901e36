"""Networks behind the nodes: leaves and spines, wires of a grid, and the boards of which a 3-D torus is built.

    spine_leaf(oversubscription=4)
    torus_and_mesh(4, 4)
    board_and_cube()

``wiring`` draws a node and what is inside it.
"""

from itertools import product

from ringzero.costs.page import hardware
from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

PORT = hardware.infiniband("NDR")  # GB/s, one direction
LEFT, WIDE = 128, 560  # pixels: of the words on the left, of the drawing beside them
SPINE, LEAF, NODES, HIGH = 8, 120, 214, 30  # tops of the rows, height of a switch
NODE = 26
THICKEST = 6


def spine_leaf(
    oversubscription: float = 1, leaves: int = 4, nodes_per_leaf: int = 4, cards: int = 8, spines: int = 2,
    *, caption: str | None = None,
) -> Figure:  # fmt: skip
    """Draw ``leaves`` switches with ``nodes_per_leaf`` nodes of ``cards`` cards each, joined by ``spines``.

    A line is the thicker the more it carries. Below each leaf stands what its nodes can send, above what its uplinks
    carry. Raises ValueError for an ``oversubscription`` below 1 and for more than there is room for.
    """
    if oversubscription < 1:
        raise ValueError(f"oversubscription is {oversubscription}; give 1 or more")
    if not (1 <= leaves <= 4 and 1 <= nodes_per_leaf <= 4 and 1 <= spines <= 4):
        raise ValueError(f"{leaves} leaves of {nodes_per_leaf} nodes, {spines} spines; there is room for 4 of each")
    node, below = cards * PORT, nodes_per_leaf * cards * PORT
    above = below / oversubscription
    link, most = above / spines, max(below / spines, node)
    of_leaf = [LEFT + WIDE * (leaf + 0.5) / leaves for leaf in range(leaves)]
    of_spine = [LEFT + WIDE * (spine + 0.5) / spines for spine in range(spines)]
    step, parts = WIDE / leaves / (nodes_per_leaf + 0.5), []
    for leaf, spine in product(of_leaf, of_spine):
        thick = round(THICKEST * (link / most) ** 0.5, 2)
        parts.append(svg.line(leaf, LEAF, spine, SPINE + HIGH, palette.VERMILLION, stroke_width=thick, kind="uplink"))
    for number, leaf in enumerate(of_leaf):
        for place in range(nodes_per_leaf):
            x = leaf + (place - (nodes_per_leaf - 1) / 2) * step
            thick = round(THICKEST * (node / most) ** 0.5, 2)
            parts.append(svg.line(x, LEAF + HIGH, x, NODES, palette.BLUE, stroke_width=thick, kind="downlink"))
            fill = palette.fill(number)
            said = f"{number * nodes_per_leaf + place}"
            parts.append(svg.box(x - NODE / 2, NODES, NODE, NODE, fill, said, kind="node", rx=4))
        parts.append(_switch(leaf, LEAF, WIDE / leaves * 0.8, f"leaf {number}"))
    for number, spine in enumerate(of_spine):
        parts.append(_switch(spine, SPINE, WIDE / spines * 0.5, f"spine {number}"))
    for y, first, second in (
        ((SPINE + HIGH + LEAF) / 2, "uplinks of a leaf", f"{above:,.0f} GB/s"),
        ((LEAF + HIGH + NODES) / 2, "links to its nodes", f"{below:,.0f} GB/s"),
        (NODES + NODE / 2, "nodes", f"of {cards} cards"),
    ):
        parts += [svg.text(2, y - 7, first), svg.text(2, y + 8, second)]
    title = f"{leaves} leaves and {spines} spines, oversubscribed {oversubscription:g} to 1"
    description = (
        f"Each leaf has {nodes_per_leaf} nodes, which send {below:,.0f} GB/s in all. Its uplinks to {spines} spines "
        f"carry {above:,.0f} GB/s in all"
    )
    return picture(LEFT + WIDE + 2, NODES + NODE + 6, title, description, parts, caption)


APART, RADIUS, AWAY = 42, 13, 16  # pixels: between neighbours, of a rank, of a wire around the grid
BESIDE = 24  # pixels between both grids


def torus_and_mesh(rows: int, columns: int, *, caption: str | None = None) -> Figure:
    """Draw a 2-D torus and beside it the 2-D mesh, which lacks the wires that close rows and columns.

    Raises ValueError for sides outside 3 to 5.
    """
    if not (3 <= rows <= 5 and 3 <= columns <= 5):
        raise ValueError(f"{rows} × {columns}; there is room for sides of 3 to 5")
    wide, high = 2 * AWAY + 28 + (columns - 1) * APART, 2 * AWAY + 28 + (rows - 1) * APART
    parts = [
        svg.text(AWAY, 10, f"{rows} × {columns} torus"),
        svg.text(AWAY + wide + BESIDE, 10, f"{rows} × {columns} mesh"),
    ]
    parts += _grid(rows, columns, 0, wrap=True) + _grid(rows, columns, wide + BESIDE, wrap=False)
    description = (
        "In both each rank has a wire to its neighbours in row and column. In the torus a wire also leads from the "
        "last rank of each row and column to its first"
    )
    title = f"A {rows} × {columns} torus and a {rows} × {columns} mesh"
    return picture(2 * wide + BESIDE, high + 20, title, description, parts, caption)


def _grid(rows, columns, left, wrap):
    place = {
        (r, c): (left + AWAY + 14 + c * APART, AWAY + 34 + r * APART) for r, c in product(range(rows), range(columns))
    }
    wires = []
    if wrap:
        closed = [(place[r, 0], place[r, columns - 1], True) for r in range(rows)]
        closed += [(place[0, c], place[rows - 1, c], False) for c in range(columns)]
        wires = [svg.path(_around(*ends), stroke=palette.VERMILLION, stroke_width=2, kind="around") for ends in closed]
    for (r, c), here in place.items():
        for there in ((r, c + 1), (r + 1, c)):
            if there in place:
                wires.append(svg.line(*here, *place[there], palette.BLUE, stroke_width=2, kind="wire"))
    ranks = [
        svg.disc(where, RADIUS, palette.fill(r), f"{r * columns + c}", kind="rank", stroke_width=0.5)
        for (r, c), where in place.items()
    ]
    return wires + ranks


def _around(first, last, is_row):
    """From the first to the last rank of a row, above it; or of a column, to the left of it."""
    (x1, y1), (x2, y2), far = first, last, 2 * AWAY
    if is_row:
        y = y1 - AWAY
        back = f"C{x2 + AWAY} {y} {x2 + far} {y2} {x2} {y2}"
        return f"M{x1} {y1}C{x1 - far} {y1} {x1 - AWAY} {y} {x1} {y}L{x2} {y}{back}"
    x = x1 - AWAY
    back = f"C{x} {y2 + AWAY} {x2} {y2 + far} {x2} {y2}"
    return f"M{x1} {y1}C{x1} {y1 - far} {x} {y1 - AWAY} {x} {y1}L{x} {y2}{back}"


CHIP, CELL = 44, 34  # pixels: a chip of the board; from chip to chip in the cube


def board_and_cube(*, caption: str | None = None) -> Figure:
    """A TPU v4 board of four chips, and the cube of 4 × 4 × 4 chips that 16 boards make, with this board in colour."""
    parts = [svg.text(8, 12, "one board: 2 × 2 × 1 chips")]
    chips = {(x, y): (70 + x * 100, 96 + y * 96) for x, y in product(range(2), range(2))}
    parts.append(svg.rect(36, 60, 168, 166, kind="board", rx=8, stroke_opacity=0.5))
    for (x, y), (left, top) in chips.items():
        out, down = (1 if x else -1), (1 if y else -1)
        middle = left, top
        for dx, dy in ((out * 58, 0), (0, down * 58), (24, -38), (-24, 38)):  # to other boards: x, y, and both ways z
            end = middle[0] + dx, middle[1] + dy
            parts.append(svg.line(*middle, *end, palette.VERMILLION, stroke_width=2, kind="out"))
    for one, other in (((0, 0), (1, 0)), ((0, 1), (1, 1)), ((0, 0), (0, 1)), ((1, 0), (1, 1))):
        parts.append(svg.line(*chips[one], *chips[other], palette.BLUE, stroke_width=3, kind="wire"))
    for (x, y), (left, top) in chips.items():
        fill = palette.fill(2 * y + x)
        parts.append(svg.box(left - CHIP / 2, top - CHIP / 2, CHIP, CHIP, fill, "TPU", kind="chip", rx=4))
    parts += _cube(266, 88)
    title = "A board of four TPUs, and a cube of 16 boards"
    description = (
        "Each chip has six links: two to neighbours on the board, four to other boards. 16 boards make a cube of "
        "4 × 4 × 4 chips, whose outer links lead to switches that close each line of chips to a ring"
    )
    return picture(424, 272, title, description, parts, caption)


def _cube(left, top):
    """Chips as circles, wires between neighbours; the board's four chips are in the front layer."""
    parts = [svg.text(left - 8, 12, "a rack: 4 × 4 × 4 chips")]

    def at(x, y, z):
        return left + x * CELL + z * 15, top + 36 + y * CELL - z * 13

    corners = sorted(product(range(4), range(4), range(4)), key=lambda chip: -chip[2])
    for x, y, z in corners:
        for step in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
            there = x + step[0], y + step[1], z + step[2]
            if max(there) < 4:
                parts.append(svg.line(*at(x, y, z), *at(*there), stroke_opacity=0.3))
    for x, y, z in corners:
        on_board = x < 2 and y < 2 and z == 0
        fill = palette.fill(2 * y + x) if on_board else "var(--pst-color-background,Canvas)"
        parts.append(svg.element("circle", cx=at(x, y, z)[0], cy=at(x, y, z)[1], r=7 if on_board else 4, fill=fill,
                                 stroke=svg.INK, stroke_width=0.8, kind="of-cube"))  # fmt: skip
    return parts


def _switch(middle, y, wide, name):
    return svg.rect(middle - wide / 2, y, wide, HIGH, kind="switch", rx=4) + svg.text(
        middle, y + HIGH / 2, name, "middle"
    )
