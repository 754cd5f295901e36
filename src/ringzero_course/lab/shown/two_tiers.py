"""What happened in two memories (``Tiers``), drawn as lanes on the simulated clock."""

from collections.abc import Iterable, Sequence

from ringzero.drawing.figure import Figure
from ringzero_course.figures.lanes import lanes

LANES = {  # kind of event -> lane, number of the colour
    "to_device": ("copies to device", 2),
    "forward": ("device computes", 0),
    "backward": ("device computes", 0),
    "to_host": ("copies to host", 1),
    "step": ("host steps", 3),
}


def two_tiers(
    events: Iterable[Sequence], sizes: Sequence[int], *, begin: float = 0.0, span: float | None = None, caption: str
) -> Figure:
    """Draw ``(kind, numel, begin, end)`` of a run of ``Tiers``, from ``begin`` on; waiting is left out.

    A bar is labelled with the place of its number of elements in ``sizes``.
    """
    rows: dict[str, list] = {lane: [] for lane, _ in LANES.values()}
    for kind, numel, start, end in events:
        if kind in LANES:
            lane, colour = LANES[kind]
            label = str(list(sizes).index(numel)) if numel in sizes else "all"
            rows[lane].append((label, start - begin, end - begin, colour))
    return lanes(
        {name: row for name, row in rows.items() if row}, unit="s", title="Two memories", span=span, caption=caption
    )
