"""Queues: what each rank issued, first to last, as NCCL would run it, and what of it never runs.

A row is a rank, a box an operation; boxes in one frame are one batch and run at once. Lines join the ends that must run
at the same time. A box with a solid outline runs. One with dashes has come to the head of its queue and waits for ever;
those without colour stand behind it.
"""

from collections.abc import Iterable
from itertools import pairwise

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture
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
    parts = [svg.text(2, 10, "first issued first")]
    parts += [svg.text(2, TOP + rank * ROW + HEIGHT / 2, f"rank {rank}", kind="rank") for rank in range(len(rows))]
    for ends in answer.ends():
        for one, other in pairwise(sorted(ends, key=lambda op: op.rank)):
            parts.append(_line(places[id(one)], places[id(other)]))
    for row in rows:
        parts += [_frame(together, places) for together in _batches(row)]
        parts += [_box(op, states[id(op)], places[id(op)]) for op in row]
    return picture(width, height, "Queues", description, parts, caption, text=11)


def _line(one, other):
    (x1, y1), (x2, y2) = sorted((one, other), key=lambda place: place[1])
    return svg.line(x1 + BOX / 2, y1 + HEIGHT, x2 + BOX / 2, y2, kind="ends", stroke_opacity=0.6)


def _batches(row):
    groups: dict[int, list[Operation]] = {}
    for op in row:
        if op.batch is not None:
            groups.setdefault(op.batch, []).append(op)
    return groups.values()


def _frame(together, places):
    (x, y), (last, _) = places[id(together[0])], places[id(together[-1])]
    return svg.rect(x - 6, y - 6, last - x + BOX + 12, HEIGHT + 12, kind="batch", rx=6, stroke_opacity=0.7)


def _box(op, state, place):
    """Its text lies on the colour of its kind; what stands behind has no colour, so its text has that of the page."""
    middle = place[0] + BOX / 2, place[1] + HEIGHT / 2
    if state == BEHIND:
        box = svg.rect(*place, BOX, HEIGHT, rx=3, stroke_dasharray="1 3")
        label = svg.text(*middle, _label(op), "middle", size=11)
    else:
        color = COLOURS.get(op.kind, palette.PURPLE)
        dashes = {"stroke_dasharray": "5 3", "stroke_width": 2.5} if state == WAITS else {}
        box = svg.rect(*place, BOX, HEIGHT, color, rx=3, **dashes)
        label = svg.on_colour(*middle, _label(op), color, size=11)
    return svg.group([box, label], kind="behind" if state == BEHIND else state.split()[0])


def _label(op):
    if not op.is_message:
        return op.kind
    return f"send to {op.peer_rank}" if op.kind == "send" else f"recv from {op.peer_rank}"


def _description(rows, states):
    waiting = [f"rank {op.rank}: {_label(op)}" for row in rows for op in row if states[id(op)] == WAITS]
    return f"What never runs: {', '.join(waiting)}" if waiting else "Everything runs"
