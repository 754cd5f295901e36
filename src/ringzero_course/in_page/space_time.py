"""Space-time diagram: rounds to the right, ranks downward, one box for each transfer.

A box stands in the lane of the rank that receives, a thin line leads to it from the lane of the rank that sent.
``+3`` in a square box: chunk 3 arrives and is added. ``3`` in a round box: it arrives and replaces. So a reduction
is told from a copy by sign and shape, and the colour only helps to follow a chunk.
"""

from ringzero.drawing import palette, svg

LEFT, TOP, BOTTOM = 56, 34, 34  # pixels: the ranks' names; the numbers of rounds; the key
BOX, HEIGHT = 24, 18  # pixels, of one box


def space_time(
    n: int, rounds: list, upto: int | None = None, notes: dict | None = None, marked: tuple | None = None
) -> tuple:
    """``(width, height, parts)`` of an image: pixels, and its elements.

    ``rounds`` is a sequence of rounds of ``(src, dst, chunk, reduce)``; those from ``upto`` on are drawn faintly.
    ``notes[rank]`` is written at the end of a rank's lane. The transfer ``marked``, ``(round from 0, src, dst,
    chunk)``, gets a cross.
    """
    upto, notes = len(rounds) if upto is None else upto, notes or {}
    lane_gap = 34 if n <= 8 else 26
    side = max([_busiest(round) for round in rounds if len(round)], default=1)
    gap = 14 if n > 8 else 22  # between columns, for the lines
    column = side * BOX + gap
    end = LEFT + column * len(rounds) + 6
    written = max([len(note) for note in notes.values()], default=0) * svg.LETTER
    width = max(end + 6 + written, 388)  # the key below the lanes needs some width of its own
    height = TOP + lane_gap * (n - 1) + HEIGHT + BOTTOM

    parts = [svg.text(2, 10, "round")]
    for rank in range(n):
        y = _lane(rank, lane_gap)
        parts.append(svg.text(2, y, f"rank {rank}", kind="rank"))
        parts.append(svg.line(LEFT - 6, y, end, y, kind="lane", stroke_opacity=0.3))
        if rank in notes:
            parts.append(svg.text(end + 6, y, notes[rank], kind="note"))
    for number, round in enumerate(rounds):
        x = LEFT + column * number
        parts.append(svg.text(x + gap + side * BOX / 2, 10, f"{number + 1}", "middle"))
        cross = marked[1:] if marked and marked[0] == number else None
        drawn = _round(round, x, x + gap, lane_gap, cross)
        parts.append(svg.group(drawn, kind="round", opacity=None if number < upto else 0.3))
    return width, height, parts + _key(height - 14)


def _busiest(round):
    """How many chunks a rank receives in the round, at most; their boxes stand side by side."""
    arrived = {}
    for _, dst, _, _ in round:
        arrived[dst] = arrived.get(dst, 0) + 1
    return max(arrived.values())


def _lane(rank, lane_gap):
    return TOP + HEIGHT / 2 + lane_gap * rank


def _round(round, start, first, lane_gap, cross):
    """Transfers whose lines begin at ``start`` and whose boxes begin at ``first``."""
    lines, dots, boxes, arrived = [], [], [], {}
    for src, dst, chunk, reduce in round:
        left = first + BOX * arrived.get(dst, 0)
        arrived[dst] = arrived.get(dst, 0) + 1
        y, sender = _lane(dst, lane_gap), _lane(src, lane_gap)
        lines.append(svg.line(start, sender, left, y, kind="transfer", stroke_opacity=0.55))
        dots.append(svg.disc((start, sender), 2, svg.INK, stroke=None))
        boxes.append(_box(left, y, chunk, reduce))
        if (src, dst, chunk) == cross:
            boxes.append(svg.text(left + BOX / 2, y - HEIGHT / 2 - 6, "×", "middle", size=16, kind="cross"))
    return lines + dots + boxes  # lines first, boxes above them: a long line (the ring's way back) passes behind


def _box(left, y, chunk, reduce):
    fill = palette.fill(chunk)
    kind, width, rx = ("reduce", 2, None) if reduce else ("copy", 1, HEIGHT / 2)
    box = svg.rect(left + 1, y - HEIGHT / 2, BOX - 2, HEIGHT, fill, kind=kind, stroke_width=width, rx=rx)
    return box + svg.on_colour(left + BOX / 2, y, f"{'+' if reduce else ''}{chunk}", fill, size=11)


def _key(y):
    """What the two kinds of box mean, on the figure itself."""
    parts, x = [], LEFT
    for sign, meaning, width, rx in (("+c", "chunk c arrives and is added", 2, 0), ("c", "it replaces", 1, HEIGHT / 2)):
        parts.append(svg.rect(x, y - HEIGHT / 2, BOX, HEIGHT, kind="key", stroke_width=width, rx=rx))
        parts.append(svg.text(x + BOX / 2, y, sign, "middle", size=11, kind="key"))
        parts.append(svg.text(x + BOX + 6, y, meaning, kind="key"))
        x += 216
    return parts
