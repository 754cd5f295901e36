"""Wiring: a node with its GPUs, switch and cards, and the network that joins it to others, with what each link carries.

    node_and_cluster("DGX H100", nodes=8)

All figures are those of ``costs.page.hardware``, one direction. A line is the thicker the more it carries.
"""

from ringzero.costs.page import hardware
from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

LEFT, WIDE = 132, 548  # pixels: of the column of bandwidths, of all that is drawn beside it
SWITCH, GPUS, CARDS, NETWORK, OTHERS = 34, 104, 170, 250, 322  # top of each row
GPU, CARD, BAR, SQUARE = (54, 28), (46, 22), 26, 9  # width and height; height of a switch; side of a small GPU
THICKEST = 7


def node_and_cluster(node: str = "DGX H100", nodes: int = 8, *, caption: str | None = None) -> Figure:
    """Draw one node of a kind in ``hardware.NODES`` in full, and ``nodes`` - 1 others small, on one network.

    Raises ValueError for a node that is not in the table, and for fewer than 2 or more than 8 nodes.
    """
    row = hardware.node(node)
    if not 2 <= nodes <= 8:
        raise ValueError(f"nodes is {nodes}; there is room for 2 to 8")
    gpu, count = hardware.gpu(row["gpu"]), row["gpus"]
    inside, slot = gpu["nvlink_gb_per_s"], hardware.pcie(gpu["pcie_generation"])
    port = hardware.infiniband(row["infiniband"])
    middles = [LEFT + WIDE * (place + 0.5) / count for place in range(count)]

    parts = [
        _node(LEFT, 22, WIDE, CARDS + CARD[1] + 10 - 22),
        svg.text(LEFT, 10, f"node 0, a {node}: {count} GPUs with {gpu['memory_gb']} GB of memory each"),
        *_switch(SWITCH, "NVLink switch"),
        *_switch(NETWORK, "switches of the network"),
    ]
    for rank, x in enumerate(middles):
        parts += [
            _cable(x, SWITCH + BAR, GPUS, inside / inside, palette.BLUE),
            _cable(x, GPUS + GPU[1], CARDS, slot / inside, palette.BLUE),
            _cable(x, CARDS + CARD[1], NETWORK, port / inside, palette.VERMILLION),
            svg.box(x - GPU[0] / 2, GPUS, *GPU, palette.fill(rank), f"GPU {rank}", kind="gpu", rx=4),
            svg.rect(x - CARD[0] / 2, CARDS, *CARD, kind="nic"),
            svg.text(x, CARDS + CARD[1] / 2, "card", "middle"),
        ]
    parts += _other_nodes(nodes, count, port / inside)
    labels = (
        (SWITCH + BAR, GPUS, "NVLink", f"{inside:.0f} GB/s a GPU"),
        (GPUS + GPU[1], CARDS, f"PCIe {gpu['pcie_generation']}.0 x16", f"{slot:.0f} GB/s a GPU"),
        (CARDS + CARD[1], NETWORK, f"InfiniBand {row['infiniband']}", f"{port:.0f} GB/s a card"),
        (NETWORK + BAR, OTHERS, f"{count} × {port:.0f} GB/s", "each node"),
    )
    for top, bottom, what, carries in labels:
        middle = (top + bottom) / 2
        parts += [svg.text(2, middle - 7, what), svg.text(2, middle + 8, carries)]
    title = f"{nodes} nodes of {count} {row['gpu']}"
    description = (
        f"In node 0 {count} GPUs are joined to an NVLink switch, {inside:.0f} GB/s each. Each has a network card, "
        f"{slot:.0f} GB/s away over PCIe. From each card a cable of {port:.0f} GB/s leads to the switches of the "
        f"network, and so from {nodes - 1} more nodes. All in one direction"
    )
    return picture(LEFT + WIDE + 2, OTHERS + 60, title, description, parts, caption)


def _other_nodes(nodes, gpus, share):
    """Below the network, small: a box for each node, its GPUs in two rows of squares, a line for each card."""
    parts, apart, step = [], WIDE / (nodes - 1), SQUARE + 4
    columns = (gpus + 1) // 2
    for node in range(1, nodes):
        middle = LEFT + apart * (node - 0.5)
        left = middle - columns * step / 2
        parts.append(_node(left - 5, OTHERS, columns * step + 6, 2 * step + 8))
        for place in range(gpus):
            row, column = divmod(place, columns)
            x, y, fill = left + column * step, OTHERS + 6 + row * step, palette.fill(node * gpus + place)
            cable = _cable(middle + (place - (gpus - 1) / 2) * 5, NETWORK + BAR, OTHERS, share, palette.VERMILLION)
            parts += [svg.box(x, y, SQUARE, SQUARE, fill, kind="gpu"), cable]
        parts.append(svg.text(middle, OTHERS + 48, f"node {node}", "middle"))
    return parts


def _switch(y, name):
    box = svg.rect(LEFT + 12, y, WIDE - 24, BAR, kind="switch", rx=4)
    return [box, svg.text(LEFT + WIDE / 2, y + BAR / 2, name, "middle")]


def _node(x, y, width, height):
    return svg.rect(x, y, width, height, kind="node", rx=8, stroke_opacity=0.5)


def _cable(x, top, bottom, share, colour):
    """``share``: of what the thickest line carries."""
    return svg.line(x, top, x, bottom, colour, stroke_width=round(THICKEST * share**0.5, 1))
