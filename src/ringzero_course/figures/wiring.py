"""Wiring: a node with its GPUs, switch and cards, and the network that joins it to others, with what each link carries.

    node_and_cluster("DGX H100", nodes=8)

All figures are those of ``costs.page.hardware``, one direction. A line is the thicker the more it carries.
"""

from html import escape

from ringzero.costs.page import hardware
from ringzero.drawing import palette
from ringzero.drawing.figure import Figure, frame, svg_open

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

    drawing = [
        _frame(LEFT, 22, WIDE, CARDS + CARD[1] + 10 - 22),
        _text(LEFT, 14, f"node 0, a {node}: {count} GPUs with {gpu['memory_gb']} GB of memory each", "start"),
        _bar(SWITCH, "NVLink switch"),
        _bar(NETWORK, "switches of the network"),
    ]
    for rank, x in enumerate(middles):
        fill = palette.fill(rank)
        drawing += [
            _line(x, SWITCH + BAR, x, GPUS, inside / inside, palette.BLUE),
            _line(x, GPUS + GPU[1], x, CARDS, slot / inside, palette.BLUE),
            _line(x, CARDS + CARD[1], x, NETWORK, port / inside, palette.VERMILLION),
            f'<rect class="gpu" x="{x - GPU[0] / 2:g}" y="{GPUS}" width="{GPU[0]}" height="{GPU[1]}" rx="4" '
            f'fill="{fill}" stroke="currentColor" stroke-width="0.5"/>'
            f'<text class="chunk" x="{x:g}" y="{GPUS + 18}" text-anchor="middle" fill="{palette.ink(fill)}">GPU {rank}'
            f'</text><rect class="nic" x="{x - CARD[0] / 2:g}" y="{CARDS}" width="{CARD[0]}" height="{CARD[1]}" '
            f'fill="none" stroke="currentColor"/>',
            _text(x, CARDS + 15, "card"),
        ]
    drawing += _other_nodes(nodes, count, port / inside)
    labels = (
        (SWITCH + BAR, GPUS, "NVLink", f"{inside:.0f} GB/s a GPU"),
        (GPUS + GPU[1], CARDS, f"PCIe {gpu['pcie_generation']}.0 x16", f"{slot:.0f} GB/s a GPU"),
        (CARDS + CARD[1], NETWORK, f"InfiniBand {row['infiniband']}", f"{port:.0f} GB/s a card"),
        (NETWORK + BAR, OTHERS, f"{count} × {port:.0f} GB/s", "each node"),
    )
    for top, bottom, what, carries in labels:
        middle = (top + bottom) / 2
        drawing += [_text(2, middle - 2, what, "start"), _text(2, middle + 13, carries, "start")]
    title = f"{nodes} nodes of {count} {row['gpu']}"
    description = (
        f"In node 0 {count} GPUs are joined to an NVLink switch, {inside:.0f} GB/s each. Each has a network card, "
        f"{slot:.0f} GB/s away over PCIe. From each card a cable of {port:.0f} GB/s leads to the switches of the "
        f"network, and so from {nodes - 1} more nodes. All in one direction"
    )
    svg = f'<g font-size="12" fill="currentColor">{"".join(drawing)}</g></svg>'
    return frame(svg_open(LEFT + WIDE + 2, OTHERS + 60, title, description) + svg, f"{title}. {description}", caption)


def _other_nodes(nodes, gpus, share):
    """Below the network, small: a box for each node, its GPUs in two rows of squares, a line for each card."""
    drawing, apart = [], WIDE / (nodes - 1)
    columns = (gpus + 1) // 2
    for node in range(1, nodes):
        middle = LEFT + apart * (node - 0.5)
        left = middle - columns * (SQUARE + 4) / 2
        drawing.append(_frame(left - 5, OTHERS, columns * (SQUARE + 4) + 6, 2 * (SQUARE + 4) + 8))
        for place in range(gpus):
            row, column = divmod(place, columns)
            x, y = left + column * (SQUARE + 4), OTHERS + 6 + row * (SQUARE + 4)
            drawing.append(
                f'<rect class="gpu" x="{x:g}" y="{y}" width="{SQUARE}" height="{SQUARE}" '
                f'fill="{palette.fill(node * gpus + place)}" stroke="currentColor" stroke-width="0.5"/>'
            )
            x = middle + (place - (gpus - 1) / 2) * 5
            drawing.append(_line(x, NETWORK + BAR, x, OTHERS, share, palette.VERMILLION))
        drawing.append(_text(middle, OTHERS + 52, f"node {node}"))
    return drawing


def _bar(y, name):
    box = f'<rect class="switch" x="{LEFT + 12}" y="{y}" width="{WIDE - 24}" height="{BAR}" rx="4" fill="none" '
    return f'{box}stroke="currentColor"/>{_text(LEFT + WIDE / 2, y + 17, name)}'


def _frame(x, y, width, height):
    return (
        f'<rect class="node" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="none" '
        'stroke="currentColor" stroke-opacity="0.5"/>'
    )


def _line(x1, y1, x2, y2, share, colour):
    """``share``: of what the thickest line carries."""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" '
        f'stroke-width="{THICKEST * share**0.5:.1f}"/>'
    )


def _text(x, y, words, anchor="middle"):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'
