"""Timeline of what ranks did: time to the right, ranks downward, one bar for each operation.

A rank that says what it computes (``ringzero.record.computing``) has two lanes, computing above communication; else it
has the lower one alone. Below, the pale part of a bar is the operation on its way while its rank does something else,
the solid part is its rank waiting for it; an operation nobody waited for has a dashed outline. Above, a bar is pale
where its thread waits for communication instead of computing. So what is solid is what the rank is busy with.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ringzero.drawing import axes, palette, svg
from ringzero.drawing.figure import Figure, picture
from ringzero.record.operation import COMPUTE, HEADER, Operation

LEFT, TOP, BAR, GAP, WIDTH = 68, 30, 18, 12, 624  # GAP is between two ranks
RIGHT = {1: 20, 2: 64}  # by lanes: names of what computes may stand behind the last bar
LETTER = 6.2  # pixels of a letter on a bar, on average
COLOURS = {
    **dict.fromkeys(["send"], palette.ORANGE),
    **dict.fromkeys(["recv"], palette.SKY),
    **dict.fromkeys(["all_reduce", "reduce", "reduce_scatter"], palette.GREEN),  # sums
    **dict.fromkeys(["broadcast", "all_gather", "gather", "scatter", "all_to_all"], palette.YELLOW),  # copies
    "barrier": palette.PURPLE,
    "forward": palette.BLUE,
    "backward": palette.VERMILLION,
    "optimizer": palette.PURPLE,
}
PREDICTED = "predicted"


class Row(NamedTuple):
    """One rank's lanes: what stands to the left of them, in lines, and its operations."""

    names: tuple[str, ...]
    operations: list[Operation]
    begin: float  # of the figure, by these operations' clock


def timeline(
    trace: Iterable[Operation],
    *,
    beside: Iterable[Operation] = (),
    begin: float | None = None,
    span: float | None = None,
    key: bool = True,
    caption: str | None = None,
) -> Figure:
    """Draw operations, such as ``Ranks.trace``; headers are left out.

    ``beside`` are other operations, such as predicted ones, drawn below those of the same rank and on the same scale,
    from the first of them on: their clock may be another. ``begin`` (as ``time.time`` counts) and ``span``, in seconds,
    choose the part of the trace to draw, all of it by default. Give two timelines one ``span`` to have them on one
    scale. ``key`` says below the bars what pale means: of figures in a row the first needs it.

    Raises ValueError when there is nothing to draw.
    """
    trace, beside = ([op for op in operations if op.kind != HEADER] for operations in (trace, beside))
    if not trace:
        raise ValueError("the trace is empty; call launch(..., trace=True) on something that communicates")
    begin = min(op.start for op in trace) if begin is None else begin
    begins = (begin, min((op.start for op in beside), default=0.0))
    if span is None:
        span = max(op.last - first for ops, first in zip((trace, beside), begins, strict=True) for op in ops)
    span = max(span, 1e-6)
    rows = _rows(trace, beside, *begins, span)
    if not any(row.operations for row in rows if PREDICTED not in row.names):
        raise ValueError(f"no operation of the trace lies in the {span:g} s from begin={begin!r}")
    lanes = 2 if any(op.stream == COMPUTE for row in rows for op in row.operations) else 1
    height = TOP + len(rows) * (lanes * BAR + GAP) + 34
    parts = _axis(span, height, lanes)[: None if key else -1]
    for number, row in enumerate(rows):
        parts += _row(row, span, TOP + number * (lanes * BAR + GAP), lanes)
    description = _description(rows, span)
    return picture(
        LEFT + WIDTH + RIGHT[lanes], height - 16 * (not key), "Timeline", description, parts, caption, text=11
    )


def _rows(trace, beside, begin, beside_begin, span):
    """A row for each rank of the trace, followed by one of what stands beside it."""
    rows = []
    for rank in sorted({op.rank for op in (*trace, *beside)}):
        for operations, first, names in ((trace, begin, ()), (beside, beside_begin, (PREDICTED,))):
            mine = [op for op in operations if op.rank == rank]
            inside = [op for op in mine if op.start <= first + span and op.last >= first]
            rows += [Row((f"rank {rank}", *names), inside, first)] if mine else []
    return rows


def _description(rows, span):
    counts = [sum(len(row.operations) for row in rows if (PREDICTED in row.names) == which) for which in (False, True)]
    ranks = len({row.names[0] for row in rows})
    beside = f", beside {counts[1]} predicted" if counts[1] else ""
    return f"{counts[0]} operations of {ranks} ranks in {span * 1e3:.3g} ms{beside}"


def _row(row, span, top, lanes):
    """The row's name, then its bars: first all pale parts, faded together, so that overlapping ones are no darker."""
    middle = top + lanes * BAR / 2 - 7 * (len(row.names) - 1)
    names = [svg.text(2, middle + 14 * line, name, kind="rank") for line, name in enumerate(row.names)]
    bars = [_bar(op, row, span, top, lanes) for op in row.operations]
    by_lane = [[bar for bar in bars if bar.y == top + lane * BAR] for lane in range(lanes)]
    labels = [label for lane in by_lane for label in _labels(lane)]
    return [*names, svg.group([_pale(bar) for bar in bars], opacity=0.35), *map(_solid, bars), *labels]


class Bar(NamedTuple):
    """An operation in pixels: from ``start`` on it is under way, and solid in ``pieces``, each ``(left, right)``."""

    kind: str  # of what is drawn: "operation" or "computing"
    label: str
    title: str
    colour: str
    y: float
    start: float
    end: float
    pieces: list[tuple[float, float]]


def _bar(op, row, span, top, lanes):
    across = axes.Scale(0, span, LEFT, LEFT + WIDTH)

    def x(time):
        return across(min(max(time - row.begin, 0.0), span))

    if op.stream == COMPUTE:
        end = row.begin + span if op.end is None else op.end
        took = "never ended" if op.end is None else f"{(op.end - op.start) * 1e3:.3g} ms"
        title = f"{', '.join(filter(None, (op.kind, op.line)))}: {took}"
        pieces = [(x(a), x(b)) for a, b in _without_waits(op.start, end, op.thread, row.operations)]
        return Bar("computing", op.kind, title, COLOURS.get(op.kind, palette.BLUE), top, x(op.start), x(end), pieces)
    label = op.kind
    if op.is_message:
        label += f" {'to' if op.kind == 'send' else 'from'} {op.peer}"
    took = "never waited for" if op.end is None else f"{(op.end - op.start) * 1e3:.3g} ms"
    title = f"{', '.join(filter(None, (label, f'{op.bytes} bytes', op.line)))}: {took}"
    wait = next((time for time in (op.wait, op.end) if time is not None), row.begin + span)
    pieces = [] if op.end is None else [(x(wait), x(op.end))]
    y = top + (lanes - 1) * BAR
    return Bar("operation", label, title, COLOURS.get(op.kind, palette.BLUE), y, x(op.start), x(wait), pieces)


def _without_waits(start, end, thread, operations):
    """The pieces of the time from ``start`` to ``end`` in which ``thread`` waits for none of ``operations``."""
    waits = (
        (op.wait, end if op.end is None else op.end) for op in operations if op.thread == thread and op.wait is not None
    )
    pieces = []
    for wait, until in sorted(waits):
        if until > max(start, wait) and wait < end:
            pieces += [(start, wait)] if wait > start else []
            start = max(start, until)
    return [*pieces, (start, end)] if start < end else pieces


def _pale(bar):
    """The part under way, which for what computes is all of it, behind the solid pieces."""
    kind = "under-way" if bar.kind == "operation" else "interrupted"
    return _piece(bar, bar.start, bar.end, bar.colour, kind=kind, stroke=None, title=bar.title)


def _solid(bar):
    kind = "waiting" if bar.kind == "operation" else "busy"
    edges = [svg.INK if right - left > 3 else None for left, right in bar.pieces]  # a thin one would be all edge
    parts = [
        _piece(bar, left, right, bar.colour, kind=kind, stroke=edge)
        for (left, right), edge in zip(bar.pieces, edges, strict=True)
    ]
    outline = _piece(bar, bar.start, bar.end, "none", stroke_dasharray="3")
    return svg.group([svg.element("title", svg.escape(bar.title)), *(parts or [outline])], kind=bar.kind)


def _piece(bar, left, right, fill, **look):
    return svg.rect(left, bar.y, max(right - left, 0.5), BAR, fill, stroke_width=0.5, **look)


def _labels(lane):
    """Names of a lane's bars, where there is room that no other label has.

    On a solid piece; else on a bar's pale part, if no other kind of bar is there. What computes has its name in any
    case: on a plate of its colour over its beginning, or behind it where it is too short.
    """
    taken, parts = LEFT, []
    for bar in lane:
        width = LETTER * len(bar.label) + 8
        long = [left for left, right in bar.pieces if right - max(left, taken) > width]
        if long:
            left, on_bar = max(long[0], taken), True
        elif bar.kind == "computing" and bar.end - bar.start > width:
            left, on_bar = bar.start, True
        elif bar.kind == "computing" and _is_free(lane, bar, behind := _behind(lane, bar), behind + width, taken):
            left, on_bar = behind, False
        elif bar.pieces and bar.end - bar.start > width and _is_free(lane, bar, bar.start, bar.start + width, taken):
            left, on_bar = bar.start, False
        else:
            continue
        if on_bar:
            parts.append(svg.rect(left, bar.y, width, BAR, bar.colour, stroke=None, kind="plate"))
        kind, ink = ("chunk", palette.ink(bar.colour)) if on_bar else ("name", svg.INK)
        parts.append(svg.text(left + 4, bar.y + BAR / 2, bar.label, size=11, kind=kind, fill=ink))
        taken = left + width
    return parts


def _behind(lane, bar):
    """Where the bar ends, and with it any other that goes on there: the optimizer may step in the backward pass."""
    return max(other.end for other in lane if other.start <= bar.end <= other.end)


def _is_free(lane, bar, left, right, taken):
    """Whether between ``left`` and ``right`` no bar of the lane is solid, and none of another name than ``bar``."""
    solid = [piece for other in lane for piece in other.pieces]
    others = [(other.start, other.end) for other in lane if other.label != bar.label]
    return left >= taken and all(start >= right or end <= left for start, end in (*solid, *others))


KEYS = {
    1: "pale: on its way; solid: its rank waits for it",
    2: "above: computing, pale while it waits; below: communication, pale on its way, solid while its rank waits",
}


def _axis(span, height, lanes):
    unit, scale = ("ms", 1e3) if span >= 1e-3 else ("µs", 1e6)
    across = axes.Scale(0, span * scale, LEFT, LEFT + WIDTH)
    key = svg.text(LEFT, height - 12, KEYS[lanes], size=11)
    return [svg.text(2, 10, unit), *axes.upright(across, TOP - 8, height - 30, 10), key]
