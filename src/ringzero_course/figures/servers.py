"""Who serves and who works: servers above, workers below, an arrow for what each pushes up and pulls down.

A rank that does both stands in both rows, and a dashed line joins its two boxes: nothing crosses a network there.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import hypot

from ringzero.drawing import palette
from ringzero.drawing.figure import Figure, frame, svg_open

LEFT, BESIDE, BOX, HEIGHT = 60, 20, 72, 30  # pixels: names of the rows; between two boxes; of a rank's box
LINE, LETTER, APART, HEAD = 16, 6.6, 130, 9  # of text; of a letter on average; between the two rows; of an arrow


def servers(
    serve: Mapping[int, Sequence[str]],
    work: Mapping[int, Sequence[str]],
    *,
    title: str,
    caption: str | None = None,
) -> Figure:
    """Draw the ranks in ``serve`` above those in ``work``: ``{rank: lines of text}``, which stand beside its box.

    Raises ValueError where nobody serves or nobody works.
    """
    if not serve or not work:
        raise ValueError(f"serve has {len(serve)} ranks and work {len(work)}; give at least one each")
    above, below = (max(len(lines) for lines in row.values()) * LINE + 8 for row in (serve, work))
    top, bottom = above, above + HEIGHT + APART
    longest = max((len(line) for row in (serve, work) for lines in row.values() for line in lines), default=0)
    column = max(BOX + BESIDE, LETTER * longest + 12)
    middle = {rank: LEFT + column * (rank + 0.5) for rank in {*serve, *work}}
    drawing = [
        f'<text class="row" x="2" y="{y + HEIGHT / 2 + 4:g}">{name}</text>'
        for name, y in (("serves", top), ("trains", bottom))
    ]
    for worker in work:
        for server in serve:
            ends = (middle[worker], bottom), (middle[server], top + HEIGHT)
            drawing.append(_inside_a_rank(*ends) if worker == server else _both_ways(*ends))
    for row, y, first in ((serve, top, top - above + LINE - 2), (work, bottom, bottom + HEIGHT + LINE)):
        for rank, lines in row.items():
            fill = palette.fill(rank)
            drawing.append(
                f'<rect class="rank" x="{middle[rank] - BOX / 2:g}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="4" '
                f'fill="{fill}" stroke="currentColor" stroke-width="0.5"/><text class="chunk" x="{middle[rank]:g}" '
                f'y="{y + HEIGHT / 2 + 4:g}" text-anchor="middle" fill="{palette.ink(fill)}">rank {rank}</text>'
            )
            drawing += [
                f'<text class="note" x="{middle[rank]:g}" y="{first + LINE * number:g}" '
                f'text-anchor="middle">{escape(line)}</text>'
                for number, line in enumerate(lines)
            ]
    said = [f"rank {rank} {does}: {', '.join(lines)}" for does, row in (("serves", serve), ("trains", work))
            for rank, lines in row.items()]  # fmt: skip
    description = "; ".join(said)
    opening = svg_open(LEFT + column * (max(middle) + 1), bottom + HEIGHT + below, title, description)
    svg = f'{opening}<g font-size="12" fill="currentColor">{"".join(drawing)}</g></svg>'
    return frame(svg, f"{title}. {description}", caption)


def _inside_a_rank(start, end):
    return (
        f'<line class="inside" x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" '
        'stroke="currentColor" stroke-dasharray="3 4" stroke-opacity="0.6"/>'
    )


def _both_ways(start, end):
    """A line with a head at both ends: gradients go up it, parameters come down."""
    long = hypot(end[0] - start[0], end[1] - start[1])
    along = (end[0] - start[0]) / long, (end[1] - start[1]) / long
    low, high = [[p[i] + sign * (HEAD - 1) * along[i] for i in (0, 1)] for p, sign in ((start, 1), (end, -1))]
    heads = []
    for tip, foot in ((start, low), (end, high)):
        aside = (-along[1] * HEAD * 0.4, along[0] * HEAD * 0.4)
        corners = tip, (foot[0] + aside[0], foot[1] + aside[1]), (foot[0] - aside[0], foot[1] - aside[1])
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        heads.append(f'<polygon points="{points}" fill="{palette.BLUE}"/>')
    return (
        f'<g class="both ways"><line x1="{low[0]:.1f}" y1="{low[1]:.1f}" x2="{high[0]:.1f}" y2="{high[1]:.1f}" '
        f'stroke="{palette.BLUE}" stroke-width="1.6"/>{"".join(heads)}</g>'
    )
