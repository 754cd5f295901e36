"""Space-time diagram: rounds to the right, ranks downward, one box for each transfer.

A box stands in the lane of the rank that receives, a thin line leads to it from the lane of the rank that sent.
``+3`` in a square box: chunk 3 arrives and is added. ``3`` in a round box: it arrives and replaces. So a reduction
is told from a copy by sign and shape, and the colour only helps to follow a chunk.
"""

LEFT, TOP, BOTTOM = 56, 34, 34
BOX, HEIGHT = 24, 18  # of one box
LETTER = 6.5  # an average one, of 12 pixels


def space_time(
    n: int, rounds: list, colors: list, upto: int | None = None, notes: dict | None = None, marked: tuple = ()
) -> tuple:
    """``(width, height, content)`` of an SVG image: pixels, and the text between ``<svg>`` and ``</svg>``.

    ``rounds`` is a sequence of rounds of ``(src, dst, chunk, reduce)``; those from ``upto`` on are drawn faintly.
    ``colors`` are pairs (of a box, of the text in it), repeated for chunks. ``notes[rank]`` is written at the end of a
    rank's lane, as HTML. A transfer in ``marked``, ``(round from 0, src, dst, chunk)``, gets a cross.
    """
    upto, notes = len(rounds) if upto is None else upto, notes or {}
    lane_gap = 34 if n <= 8 else 26
    side = max([_busiest(round) for round in rounds if len(round)], default=1)
    gap = 14 if n > 8 else 22  # between columns, for the lines
    column = side * BOX + gap
    end = LEFT + column * len(rounds) + 6
    written = max([len(note) for note in notes.values()], default=0) * LETTER
    width = max(end + 6 + written, 388)  # the key below the lanes needs some width of its own
    height = TOP + lane_gap * (n - 1) + HEIGHT + BOTTOM

    drawing = ['<g font-size="12" fill="currentColor" stroke="none">']
    for rank in range(n):
        y = _lane(rank, lane_gap)
        drawing.append(f'<text class="rank" x="2" y="{y + 4:g}">rank {rank}</text>')
        drawing.append(
            f'<line class="lane" x1="{LEFT - 6}" y1="{y:g}" x2="{end:g}" y2="{y:g}" '
            'stroke="currentColor" stroke-opacity="0.3"/>'
        )
        if rank in notes:
            drawing.append(f'<text class="note" x="{end + 6:g}" y="{y + 4:g}">{notes[rank]}</text>')
    drawing.append('<text x="2" y="14">round</text>')
    for number, round in enumerate(rounds):
        x = LEFT + column * number
        drawing.append(f'<text x="{x + gap + side * BOX / 2:g}" y="14" text-anchor="middle">{number + 1}</text>')
        not_yet = "" if number < upto else ' opacity="0.3"'
        drawing.append(f'<g class="round" font-size="11" text-anchor="middle"{not_yet}>')
        drawing += _round(number, round, x + gap, x, lane_gap, colors, marked)
        drawing.append("</g>")
    drawing.append(_key(height - 10))
    drawing.append("</g>")
    return width, height, "".join(drawing)


def _busiest(round):
    """How many chunks a rank receives in the round, at most; their boxes stand side by side."""
    arrived = {}
    for _, dst, _, _ in round:
        arrived[dst] = arrived.get(dst, 0) + 1
    return max(arrived.values())


def _lane(rank, lane_gap):
    return TOP + HEIGHT / 2 + lane_gap * rank


def _round(number, round, first, start, lane_gap, colors, marked):
    """Transfers whose lines begin at ``start`` and whose boxes begin at ``first``."""
    lines, dots, boxes, arrived = [], [], [], {}
    for src, dst, chunk, reduce in round:
        left = first + BOX * arrived.get(dst, 0)
        arrived[dst] = arrived.get(dst, 0) + 1
        y, sender = _lane(dst, lane_gap), _lane(src, lane_gap)
        # Lines first, boxes above them: a long line (the ring's way back) passes behind.
        lines.append(f'<line class="transfer" x1="{start:g}" y1="{sender:g}" x2="{left:g}" y2="{y:g}"/>')
        dots.append(f'<circle cx="{start:g}" cy="{sender:g}" r="2"/>')
        boxes.append(_box(left, y, chunk, reduce, colors[chunk % len(colors)]))
        if (number, src, dst, chunk) in marked:
            above = y - HEIGHT / 2 - 2
            boxes.append(f'<text class="cross" x="{left + BOX / 2:g}" y="{above:g}" font-size="16">×</text>')
    return ['<g stroke="currentColor" stroke-opacity="0.55">'] + lines + ["</g>"] + dots + boxes


def _box(left, y, chunk, reduce, color):
    fill, ink = color
    shape = 'stroke-width="2"' if reduce else f'rx="{HEIGHT / 2:g}"'
    return (
        f'<rect class="{"reduce" if reduce else "copy"}" x="{left + 1:g}" y="{y - HEIGHT / 2:g}" width="{BOX - 2}" '
        f'height="{HEIGHT}" {shape} fill="{fill}" stroke="currentColor"/>'
        f'<text class="chunk" x="{left + BOX / 2:g}" y="{y + 4:g}" '
        f'fill="{ink}">{"+" if reduce else ""}{chunk}</text>'
    )


def _key(y):
    """What the two kinds of box mean, on the figure itself."""
    texts, x = [], LEFT
    for sign, meaning, reduce in (("+c", "chunk c arrives and is added", True), ("c", "it replaces", False)):
        rx, line = (0, 2) if reduce else (HEIGHT / 2, 1)
        texts.append(
            f'<rect class="key" x="{x}" y="{y - 13}" width="{BOX}" height="{HEIGHT}" rx="{rx:g}" fill="none" '
            f'stroke="currentColor" stroke-width="{line}"/><text class="key" x="{x + BOX / 2:g}" y="{y}" '
            f'text-anchor="middle" font-size="11">{sign}</text>'
            f'<text class="key" x="{x + BOX + 6}" y="{y}">{meaning}</text>'
        )
        x += 216
    return "".join(texts)
