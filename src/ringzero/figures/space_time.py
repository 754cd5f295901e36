"""Space-time diagram of a schedule: rounds to the right, ranks downward, one box for each transfer.

A box stands in the lane of the rank that receives, a thin line leads to it from the lane of the rank that sent.
``+3`` in a square box: chunk 3 arrives and is added. ``3`` in a round box: it arrives and replaces. So a reduction
is told from a copy by sign and shape, and the colour only helps to follow a chunk.
"""

from collections import Counter
from html import escape

from ringzero.collectives.schedule import Schedule
from ringzero.figures import palette
from ringzero.figures.figure import Figure, frame, svg_open

LEFT, TOP, BOTTOM = 56, 34, 34
BOX, HEIGHT = 24, 18  # of one box


def spacetime(schedule: Schedule, *, upto: int | None = None, caption: str | None = None) -> Figure:
    """Draw ``schedule``. With ``upto=k`` only the first k rounds have happened: the rest is drawn faintly."""
    n, rounds = schedule.world_size, schedule.rounds
    upto = len(rounds) if upto is None else upto
    lane_gap = 34 if n <= 8 else 26
    # A rank that receives several chunks in one round gets their boxes side by side.
    side = max((max(Counter(t.dst for t in round).values()) for round in rounds if len(round)), default=1)
    gap = 14 if n > 8 else 22  # between columns, for the lines
    column = side * BOX + gap
    # The key below the lanes needs some width of its own.
    end = LEFT + column * len(rounds) + 6
    width = max(end + 6, 420)
    height = TOP + lane_gap * (n - 1) + HEIGHT + BOTTOM

    title = f"{schedule.collective.replace('_', '-')}, {schedule.name}, {n} ranks"
    drawing = [svg_open(width, height, title, _description(schedule), smallest=0.8)]
    drawing.append('<g font-size="12" fill="currentColor" stroke="none">')
    for rank in range(n):
        y = _lane(rank, lane_gap)
        drawing.append(f'<text class="rank" x="2" y="{y + 4:g}">rank {rank}</text>')
        drawing.append(
            f'<line class="lane" x1="{LEFT - 6}" y1="{y:g}" x2="{end:g}" y2="{y:g}" '
            'stroke="currentColor" stroke-opacity="0.3"/>'
        )
    drawing.append('<text x="2" y="14">round</text>')
    for number, round in enumerate(rounds):
        x = LEFT + column * number
        drawing.append(f'<text x="{x + gap + side * BOX / 2:g}" y="14" text-anchor="middle">{number + 1}</text>')
        not_yet = "" if number < upto else ' opacity="0.3"'
        drawing.append(f'<g class="round" font-size="11" text-anchor="middle"{not_yet}>')
        drawing += _round(round, x, gap, lane_gap)
        drawing.append("</g>")
    drawing.append(_key(height - 10))
    drawing.append("</g></svg>")
    return frame("".join(drawing), f"{title}. {_description(schedule)}", caption)


def _lane(rank, lane_gap):
    return TOP + HEIGHT / 2 + lane_gap * rank


def _round(round, x, gap, lane_gap):
    lines, dots, boxes, arrived = [], [], [], Counter()
    for src, dst, chunk, reduce in round:
        left = x + gap + BOX * arrived[dst]
        arrived[dst] += 1
        y, start = _lane(dst, lane_gap), _lane(src, lane_gap)
        # Lines first, boxes above them: a long line (the ring's way back) passes behind.
        lines.append(f'<line class="transfer" x1="{x:g}" y1="{start:g}" x2="{left:g}" y2="{y:g}"/>')
        dots.append(f'<circle cx="{x:g}" cy="{start:g}" r="2"/>')
        boxes.append(_box(left, y, chunk, reduce))
    return ['<g stroke="currentColor" stroke-opacity="0.55">', *lines, "</g>", *dots, *boxes]


def _box(left, y, chunk, reduce):
    color = palette.fill(chunk)
    shape = 'stroke-width="2"' if reduce else f'rx="{HEIGHT / 2:g}"'
    return (
        f'<rect class="{"reduce" if reduce else "copy"}" x="{left + 1:g}" y="{y - HEIGHT / 2:g}" width="{BOX - 2}" '
        f'height="{HEIGHT}" {shape} fill="{color}" stroke="currentColor"/>'
        f'<text class="chunk" x="{left + BOX / 2:g}" y="{y + 4:g}" '
        f'fill="{palette.ink(color)}">{"+" if reduce else ""}{chunk}</text>'
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
            f'<text class="key" x="{x + BOX + 6}" y="{y}">{escape(meaning)}</text>'
        )
        x += 232
    return "".join(texts)


def _description(schedule):
    transfers = sum(len(round) for round in schedule.rounds)
    added = sum(int(round.reduce.sum()) for round in schedule.rounds)
    messages = schedule.messages_sent()
    most = int(messages.max()) if len(messages) else 0
    return (
        f"{len(schedule.rounds)} rounds, {transfers} transfers of {schedule.chunks} "
        f"chunk{'s' * (schedule.chunks != 1)}: {added} added on arrival, {transfers - added} copied. "
        f"The busiest rank sends {most} messages"
    )
