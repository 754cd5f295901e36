"""Timeline of what ranks really did: time to the right, ranks downward, one bar for each operation of a trace.

The pale part of a bar is the operation on its way while its rank does something else; the solid part is its rank
waiting for it. An operation nobody waited for has a dashed outline.
"""

from html import escape
from math import floor, log10

from ringzero.figures import palette
from ringzero.figures.figure import frame, svg_open

LEFT, TOP, LANE, BAR, WIDTH = 56, 30, 30, 18, 640
COLOURS = {  # messages, sums, copies
    **dict.fromkeys(["send"], palette.ORANGE),
    **dict.fromkeys(["recv"], palette.SKY),
    **dict.fromkeys(["all_reduce", "reduce", "reduce_scatter"], palette.GREEN),
    **dict.fromkeys(["broadcast", "all_gather", "gather", "scatter", "all_to_all"], palette.YELLOW),
    "barrier": palette.PURPLE,
}


def timeline(trace, *, begin=None, span=None, caption=None):
    """Draw ``Ranks.trace``, records of ``ringzero.launch.trace``; headers, 16 bytes each, are left out.

    ``begin`` (as ``time.time`` counts) and ``span``, in seconds, choose the part of the trace to draw, all of it by
    default. Give two timelines one ``span`` to have them on one scale.

    Raises ValueError when there is nothing to draw.
    """
    operations = [op for op in trace if op["kind"] != "header"]
    if not operations:
        raise ValueError("the trace is empty; call launch(..., trace=True) on something that communicates")
    ranks = sorted({op["rank"] for op in operations})
    begin = min(op["start"] for op in operations) if begin is None else begin
    span = max(_last(op) for op in operations) - begin if span is None else span
    span = max(span, 1e-6)
    operations = [op for op in operations if op["start"] <= begin + span and _last(op) >= begin]
    if not operations:
        raise ValueError(f"no operation of the trace lies in the {span:g} s from begin={begin!r}")
    height = TOP + LANE * len(ranks) + 34
    description = f"{len(operations)} operations of {len(ranks)} ranks in {span * 1e3:.3g} ms"
    drawing = [svg_open(LEFT + WIDTH + 20, height, "Timeline", description)]
    drawing.append('<g font-size="12" fill="currentColor" stroke="none">')
    drawing += _axis(span, height)
    for lane, rank in enumerate(ranks):
        y = TOP + LANE * lane
        drawing.append(f'<text class="rank" x="2" y="{y + 13}">rank {rank}</text>')
        bars = [_bar(op, begin, span, y) for op in operations if op["rank"] == rank]
        # Faded together: where several are on their way at once, the lane is no darker.
        drawing.append(f'<g opacity="0.35">{"".join(pale for pale, _ in bars)}</g>')
        drawing += [solid for _, solid in bars]
    drawing.append("</g></svg>")
    return frame("".join(drawing), f"Timeline. {description}", caption)


def _last(op):
    return op["end"] or op["wait"] or op["start"]


def _bar(op, begin, span, y):
    """The pale part of an operation's bar, and the solid part with its label."""

    def x(time):
        return LEFT + min(max((time - begin) / span, 0.0), 1.0) * WIDTH

    colour, size, line = COLOURS.get(op["kind"], palette.BLUE), op["bytes"], op["line"]
    start, wait = x(op["start"]), x(op["wait"] or op["end"] or begin + span)
    end = x(op["end"]) if op["end"] else wait
    peer = f" {'to' if op['kind'] == 'send' else 'from'} {op['peer']}" if op["kind"] in ("send", "recv") else ""
    took = f"{(op['end'] - op['start']) * 1e3:.3g} ms" if op["end"] else "never waited for"
    label = f"{op['kind']}{peer}"
    title = f"<title>{escape(f'{label}, {size} bytes, {line}: {took}')}</title>"
    place = f'y="{y}" height="{BAR}"'
    under_way = f'x="{start:.1f}" width="{max(wait - start, 0.5):.1f}" {place}'
    pale = f'<rect class="under-way" {under_way} fill="{colour}">{title}</rect>'
    if not op["end"]:
        outline = 'fill="none" stroke="currentColor" stroke-width="0.5" stroke-dasharray="3"'
        return pale, f'<g class="operation">{title}<rect {under_way} {outline}/></g>'
    solid = f'<rect class="waiting" x="{wait:.1f}" width="{max(end - wait, 0.5):.1f}" {place} fill="{colour}"'
    parts = [f'<g class="operation">{title}', f'{solid} stroke="currentColor" stroke-width="0.5"/>']
    if end - wait > 7 * len(label):
        ink = palette.ink(colour)
        text = f'class="chunk" x="{wait + 4:.1f}" y="{y + 13}" font-size="11" fill="{ink}"'
        parts.append(f"<text {text}>{escape(label)}</text>")
    return pale, "".join([*parts, "</g>"])


def _axis(span, height):
    unit, scale = ("ms", 1e3) if span >= 1e-3 else ("µs", 1e6)
    parts = [f'<text x="2" y="14">{unit}</text>']
    for tick in _ticks(span * scale):
        x = LEFT + tick / (span * scale) * WIDTH
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - 30}" stroke="currentColor" '
            f'stroke-opacity="0.2"/><text x="{x:.1f}" y="14" text-anchor="middle">{tick:g}</text>'
        )
    parts.append(
        f'<text x="{LEFT}" y="{height - 8}" font-size="11">pale: on its way; solid: its rank waits for it</text>'
    )
    return parts


def _ticks(end):
    """Round numbers from 0 to ``end``, at most seven."""
    step = 10 ** floor(log10(end))
    step = next(step * f for f in (0.1, 0.2, 0.5, 1, 2) if end / (step * f) <= 6)
    return [round(step * i, 12) for i in range(int(end / step) + 1)]
