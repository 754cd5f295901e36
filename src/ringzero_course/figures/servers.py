"""Who serves and who works: servers above, workers below, an arrow for what each pushes up and pulls down.

A rank that does both stands in both rows, and a dashed line joins its two boxes: nothing crosses a network there.
"""

from collections.abc import Mapping, Sequence

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

LEFT, BESIDE, BOX, HEIGHT = 60, 20, 72, 30  # pixels: names of the rows; between two boxes; of a rank's box
LINE, APART = 16, 130  # pixels: a line of text, between the two rows


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
    column = max(BOX + BESIDE, svg.LETTER * longest + 12)
    middle = {rank: LEFT + column * (rank + 0.5) for rank in {*serve, *work}}
    parts = [svg.text(2, y + HEIGHT / 2, name, kind="row") for name, y in (("serves", top), ("trains", bottom))]
    for worker in work:
        for server in serve:
            ends = (middle[worker], bottom), (middle[server], top + HEIGHT)
            parts.append(_inside_a_rank(*ends) if worker == server else _both_ways(*ends))
    for row, y, first in ((serve, top, LINE / 2), (work, bottom, bottom + HEIGHT + LINE * 0.75)):
        for rank, lines in row.items():
            x = middle[rank]
            parts.append(svg.box(x - BOX / 2, y, BOX, HEIGHT, palette.fill(rank), f"rank {rank}", kind="rank", rx=4))
            parts += [svg.text(x, first + LINE * i, line, "middle", kind="note") for i, line in enumerate(lines)]
    said = [f"rank {rank} {does}: {', '.join(lines)}" for does, row in (("serves", serve), ("trains", work))
            for rank, lines in row.items()]  # fmt: skip
    width, height = LEFT + column * (max(middle) + 1), bottom + HEIGHT + below
    return picture(width, height, title, "; ".join(said), parts, caption)


def _inside_a_rank(start, end):
    return svg.line(*start, *end, kind="inside", stroke_dasharray="3 4", stroke_opacity=0.6)


def _both_ways(start, end):
    """Gradients go up the line, parameters come down."""
    return svg.arrow(start, end, palette.BLUE, heads=2, kind="both ways")
