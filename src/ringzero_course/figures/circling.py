"""A schedule as it moves: ranks on a circle, the messages of one round between them, and what each rank then holds.

    circle(ring_all_reduce(4), rounds_done=2)

A rank's chunks are glasses. The more ranks have added to a chunk, the fuller is its glass; a full one is the sum.
"""

from math import cos, dist, pi, sin

from ringzero.collectives.schedule import Schedule
from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

GLASS, TALL, APART, PAD = 20, 34, 24, 6  # pixels: a glass's width and height, from glass to glass, around them
RX, RY = 150, 125  # of the ellipse through the middles of up to four ranks
WIDER, HIGHER = 55, 35  # by how much it grows with each further rank
ABOVE, BELOW = 18, 18  # a rank's name, the chunks' numbers
TOKEN = (30, 22)  # the chunk on an arrow


def circle(schedule: Schedule, rounds_done: int, *, caption: str | None = None) -> Figure:
    """Draw ``schedule``, which sums, after ``rounds_done`` rounds, with the messages of the last of them.

    Raises ValueError for a schedule that does not sum whole buffers or has more than 8 ranks or chunks, and for a
    round that it has not.
    """
    n, chunks = schedule.world_size, schedule.chunks
    if schedule.collective not in ("all_reduce", "reduce_scatter", "reduce"):
        raise ValueError(f"{schedule.collective} sums nothing; draw an all_reduce, a reduce_scatter or a reduce")
    if not (2 <= n <= 8 and chunks <= 8):
        raise ValueError(f"{n} ranks with {chunks} chunks; there is room for 2 to 8 ranks and 8 chunks")
    if not 0 <= rounds_done <= len(schedule.rounds):
        raise ValueError(f"rounds_done is {rounds_done}; {schedule.name} has {len(schedule.rounds)} rounds")
    held = _held(schedule, rounds_done)
    messages = list(schedule.rounds[rounds_done - 1]) if rounds_done else []
    changed = {(t.dst, t.chunk) for t in messages}

    box = chunks * APART + 2 * PAD - (APART - GLASS), ABOVE + TALL + BELOW
    wide, high = RX + WIDER * max(0, n - 4), RY + HIGHER * max(0, n - 4)
    middle = wide + box[0] / 2 + 4, high + box[1] / 2 + 4
    places = [(middle[0] + wide * sin(2 * pi * r / n), middle[1] - high * cos(2 * pi * r / n)) for r in range(n)]
    parts = [_message(t, places, box) for t in messages]
    parts += [_rank(rank, place, box, held[rank], changed, n) for rank, place in enumerate(places)]
    finished = sum(len(ranks) == n for row in held for ranks in row)
    said = f"after round {rounds_done} of {len(schedule.rounds)}" if rounds_done else "before round 1"
    for line, words in enumerate((said, f"full glasses: {finished} of {n * chunks}")):
        parts.append(svg.text(middle[0], middle[1] - 8 + 18 * line, words, "middle"))
    title = f"{schedule.collective.replace('_', '-')}, {schedule.name}, {n} ranks, {said}"
    sent = "; ".join(f"rank {t.src} sends chunk {t.chunk} to rank {t.dst}, "
                     f"which {'adds it' if t.reduce else 'replaces its own'}" for t in messages)  # fmt: skip
    description = f"{sent or 'nothing sent yet'}. {finished} of {n * chunks} chunks hold the sum of all ranks"
    return picture(2 * middle[0], 2 * middle[1], title, description, parts, caption)


def _held(schedule, rounds):
    """``held[rank][chunk]``: the ranks whose contributions are there after so many rounds."""
    held = [[{rank} for _ in range(schedule.chunks)] for rank in range(schedule.world_size)]
    for round in schedule.rounds[:rounds]:
        arriving = [(t, held[t.src][t.chunk]) for t in round]  # what a source held when the round began
        for t, ranks in arriving:
            held[t.dst][t.chunk] = (held[t.dst][t.chunk] if t.reduce else set()) | ranks
    return held


def _rank(rank, place, box, row, changed, n):
    left, top = place[0] - box[0] / 2, place[1] - box[1] / 2
    parts = [
        svg.rect(left, top, *box, kind="rank", rx=6, stroke_opacity=0.4),
        svg.text(place[0], top + 9, f"rank {rank}", "middle"),
    ]
    for chunk, ranks in enumerate(row):
        x, y, full = left + PAD + chunk * APART, top + ABOVE, TALL * len(ranks) / n
        width = 2.5 if (rank, chunk) in changed else 0.7
        said = f"rank {rank}, chunk {chunk}: from {', '.join(map(str, sorted(ranks)))}"
        glass = {"kind": "glass", "stroke_width": width, "pointer_events": "all"}
        parts += [
            svg.rect(x, y + TALL - full, GLASS, full, palette.fill(chunk), stroke=None, kind="held"),
            svg.rect(x, y, GLASS, TALL, title=said, **glass),
            svg.text(x + GLASS / 2, y + TALL + 9, f"{chunk}", "middle"),
        ]
    return svg.group(parts)


def _message(transfer, places, box):
    """An arrow from box to box, and on its middle the chunk: square when it is added, round when it replaces."""
    start, end = places[transfer.src], places[transfer.dst]
    dx, dy = end[0] - start[0], end[1] - start[1]
    # As far from a box's middle as its edge in this direction, and a little more.
    edge = min(box[i] / 2 / abs(d) for i, d in enumerate((dx, dy)) if abs(d) > 1e-9) * dist(start, end) + 4
    x, y, (width, height) = start[0] + dx / 2, start[1] + dy / 2, TOKEN
    label, rx = f"{'+' * transfer.reduce}{transfer.chunk}", None if transfer.reduce else height / 2
    token = svg.box(x - width / 2, y - height / 2, width, height, palette.fill(transfer.chunk), label, rx=rx)
    arrow = svg.arrow(svg.towards(start, end, edge), svg.towards(end, start, edge))
    return svg.group([arrow, token], kind="message")
