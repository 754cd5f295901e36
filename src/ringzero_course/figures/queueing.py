"""Queues: what each rank issued, first to last, as NCCL would run it, and what of it never runs.

A row is a rank, a box an operation; boxes in one frame are one batch and run at once. Lines join the ends that must run
at the same time. A box with a solid outline runs. One with dashes has come to the head of its queue and waits for ever;
those without colour stand behind it.
"""

from collections.abc import Iterable
from html import escape
from itertools import pairwise

from ringzero.drawing import palette
from ringzero.drawing.figure import Figure, frame, svg_open
from ringzero.drawing.timelines import COLOURS
from ringzero.explain.queues import Queues
from ringzero.record.operation import COMMUNICATION, HEADER, Operation

LEFT, TOP, BOX, HEIGHT, GAP, ROW, BOTTOM = 60, 30, 88, 24, 18, 70, 10
RUNS, WAITS, BEHIND = "runs", "waits for ever", "stands behind"


def queues(ranks: Iterable[Iterable[Operation]] | Iterable[Operation], *, caption: str | None = None) -> Figure:
    """Draw what ranks issued: a trace, such as ``Ranks.trace``, or the operations of each rank.

    Raises ValueError when there is nothing to draw.
    """
    flat = [op for item in ranks for op in ([item] if isinstance(item, Operation) else item)]
    issued = sorted((op for op in flat if op.stream == COMMUNICATION and op.kind != HEADER), key=lambda op: op.sequence)
    if not issued:
        raise ValueError("nobody communicated; there is nothing to draw")
    rows = [[op for op in issued if op.rank == rank] for rank in range(1 + max(op.rank for op in issued))]
    answer = Queues(rows)
    stuck = {id(op) for op in answer.stuck()}
    states = {id(op): RUNS if answer.is_done(op) else WAITS if id(op) in stuck else BEHIND for op in issued}
    places = {id(op): (LEFT + column * (BOX + GAP), TOP + row * ROW) for row in range(len(rows))
              for column, op in enumerate(rows[row])}  # fmt: skip
    width = max(LEFT + max(map(len, rows)) * (BOX + GAP), 300)
    height = TOP + (len(rows) - 1) * ROW + HEIGHT + BOTTOM
    description = _description(rows, states)
    drawing = [svg_open(width, height, "Queues", description, text=11)]
    drawing.append('<g font-size="12" fill="currentColor" stroke="none"><text x="2" y="14">first issued first</text>')
    for rank in range(len(rows)):
        drawing.append(f'<text class="rank" x="2" y="{TOP + rank * ROW + 16}">rank {rank}</text>')
    drawing.append('<g stroke="currentColor" stroke-opacity="0.6">')
    for ends in answer.ends():
        for one, other in pairwise(sorted(ends, key=lambda op: op.rank)):
            drawing.append(_line(places[id(one)], places[id(other)]))
    drawing.append("</g>")
    for row in rows:
        drawing += [_frame(together, places) for together in _batches(row)]
        drawing += [_box(op, states[id(op)], places[id(op)]) for op in row]
    drawing.append("</g></svg>")
    return frame("".join(drawing), f"Queues. {description}", caption)


def _line(one, other):
    (x1, y1), (x2, y2) = sorted((one, other), key=lambda place: place[1])
    return f'<line class="ends" x1="{x1 + BOX / 2}" y1="{y1 + HEIGHT}" x2="{x2 + BOX / 2}" y2="{y2}"/>'


def _batches(row):
    groups: dict[int, list[Operation]] = {}
    for op in row:
        if op.batch is not None:
            groups.setdefault(op.batch, []).append(op)
    return groups.values()


def _frame(together, places):
    (x, y), (last, _) = places[id(together[0])], places[id(together[-1])]
    return (
        f'<rect class="batch" x="{x - 6}" y="{y - 6}" width="{last - x + BOX + 12}" height="{HEIGHT + 12}" rx="6" '
        'fill="none" stroke="currentColor" stroke-opacity="0.7"/>'
    )


def _box(op, state, place):
    """Its text lies on the colour of its kind; what stands behind has no colour, so its text has that of the page."""
    x, y = place
    box = f'<rect x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="3"'
    text = f'x="{x + BOX / 2}" y="{y + 16}" text-anchor="middle" font-size="11"'
    if state == BEHIND:
        return (
            f'<g class="behind">{box} fill="none" stroke="currentColor" stroke-dasharray="1 3"/>'
            f"<text {text}>{escape(_label(op))}</text></g>"
        )
    color = COLOURS.get(op.kind, palette.PURPLE)
    dashed = ' stroke-dasharray="5 3" stroke-width="2.5"' if state == WAITS else ""
    return (
        f'<g class="{state.split()[0]}">{box} fill="{color}" stroke="currentColor"{dashed}/>'
        f'<text class="chunk" {text} fill="{palette.ink(color)}">{escape(_label(op))}</text></g>'
    )


def _label(op):
    if not op.is_message:
        return op.kind
    return f"send to {op.peer_rank}" if op.kind == "send" else f"recv from {op.peer_rank}"


def _description(rows, states):
    waiting = [f"rank {op.rank}: {_label(op)}" for row in rows for op in row if states[id(op)] == WAITS]
    return f"What never runs: {', '.join(waiting)}" if waiting else "Everything runs"
