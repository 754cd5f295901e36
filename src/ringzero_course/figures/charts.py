"""A line or point chart: measured beside predicted, units on the axes, each line named where it ends."""

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import NamedTuple

from ringzero.drawing import axes, palette, svg
from ringzero.drawing.figure import Figure, frame

WIDTH, TOP, BELOW = 690, 12, 44  # pixels: of all, above the plot, below it
STYLES = {  # lines, their dashes, points
    "line": (True, None, False),
    "dashed": (True, "6 3", False),
    "points": (False, None, True),
    "both": (True, None, True),
}
MARKERS = (  # by series, so that two sets of points differ in more than colour
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "m-4-4h8v8h-8z",
    "m0-5l5 9h-10z",
    "m0-6l6 6l-6 6l-6-6z",
    "m0 5l5-9h-10z",
)

Point = tuple[float, float]


class Look(NamedTuple):
    """How a series is drawn."""

    line: bool
    dashes: str | None
    points: bool
    color: str
    marker: str

    def draw(self, places: Sequence[Point], marked: Sequence[Point]) -> str:
        """A line through ``places`` and a mark on each of ``marked``, where the series has lines and marks."""
        joined = " ".join(f"{svg.number(x)},{svg.number(y)}" for x, y in places)
        drawn = ""
        if self.line:
            dashes = self.dashes
            drawn = svg.element(
                "polyline", points=joined, fill="none", stroke=self.color, stroke_width=2, stroke_dasharray=dashes
            )
        for x, y in marked if self.points else ():
            drawn += svg.path(f"M{svg.number(x)} {svg.number(y)}{self.marker}", self.color, None)
        return drawn


def chart(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x: str,
    y: str,
    title: str,
    log: str = "",
    styles: Mapping[str, str] | None = None,
    ticks: Mapping[float, str] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    caption: str | None = None,
    height: float = 290,
    named_at: str = "end",
) -> Figure:
    """Draw ``series``, a dict of name to ``(xs, ys)``, with axes labelled ``x`` and ``y`` (write the unit in them).

    ``log`` is "", "x", "y" or "xy"; what such an axis cannot show is left out. ``styles`` gives a name "line" (as by
    default), "dashed", "points" or "both". ``ticks`` maps positions on the x axis to their labels. ``labels`` gives a
    name the words beside each of its points. ``height`` is that of the plot, in pixels. ``named_at`` "start" writes
    each name above the line where it begins: for lines that meet at their ends.

    Raises ValueError when ``styles`` names a series that is not there.
    """
    styles = styles or {}
    if unknown := set(styles) - set(series):
        raise ValueError(f"styles has {sorted(unknown)}, which is not among the series {list(series)}")
    shown = {name: points for name, (xs, ys) in series.items() if (points := _points(xs, ys, log))}
    looks = {
        name: Look(*STYLES[styles.get(name, "line")], palette.LINES[i % len(palette.LINES)], MARKERS[i % len(MARKERS)])
        for i, name in enumerate(series)
    }
    nothing = [svg.text(2, TOP, "nothing to draw")]  # such as the losses of a run that diverged at once
    parts = _plot(shown, looks, x, y, log, ticks, height, named_at, labels or {}) if shown else nothing
    description = f"{y} against {x}: " + "; ".join(_in_words(name, *points) for name, points in series.items())
    drawn = svg.image(WIDTH, TOP + height + BELOW, title, description, parts)
    return frame(drawn, f"{title}. {description}", caption, _legend(looks))


def _points(xs, ys, log):
    """Those that a chart can show."""
    points = [(float(px), float(py)) for px, py in zip(xs, ys, strict=True) if isfinite(px) and isfinite(py)]
    return [(px, py) for px, py in points if (px > 0 or "x" not in log) and (py > 0 or "y" not in log)]


def _plot(shown, looks, x, y, log, ticks, height, named_at, labels):
    beside = 36 + svg.LETTER * max(map(len, shown)) if named_at == "end" else 8
    bottom, right = TOP + height, WIDTH - beside
    up = axes.around([py for points in shown.values() for _, py in points], bottom, TOP, "y" in log)
    left = 32 + svg.LETTER * max(len(_number(tick)) for tick in up.ticks())
    xs = [px for points in shown.values() for px, _ in points]
    across = axes.around([*xs, *(ticks or ())], left, right, "x" in log)
    parts = axes.plot(across, up, x, y, _number, ticks)
    ends, alone = [], len(shown) == 1 and labels  # its points have names, so it needs none
    for name, points in shown.items():
        places = [(across(px), up(py)) for px, py in points]
        parts.append(looks[name].draw(places, places))
        for (px, py), words in zip(places, labels.get(name, ()), strict=False):
            before = px + 8 + svg.LETTER * len(words) > (WIDTH if alone else right)
            parts.append(svg.text(px + (-8 if before else 8), py, words, "end" if before else "start", halo=True))
        ends.append((places[-1][1] if named_at == "end" else places[0][1] - 9, name))
    ends = [] if alone else sorted(ends)
    if named_at == "start":
        for (_, name), level in zip(ends, axes.apart([start for start, _ in ends], bottom), strict=True):
            parts.append(looks[name].draw([(left + 8, level), (left + 24, level)], [(left + 16, level)]))
            parts.append(svg.text(left + 30, level, name, halo=True, kind="name"))
        return parts
    for (end, name), level in zip(ends, axes.apart([end for end, _ in ends], bottom), strict=True):
        parts.append(svg.line(right + 2, end, right + 12, level, looks[name].color, stroke_width=0.8))
        parts.append(looks[name].draw([(right + 12, level), (right + 28, level)], [(right + 20, level)]))
        parts.append(svg.text(right + 32, level, name))
    return parts


def _legend(looks):
    """A sample and a name for each series, hidden where ``book/_page/ringzero.css`` does not show it."""
    if len(looks) < 2:
        return ""
    sample = '<span><svg width="22" height="12" aria-hidden="true">{}</svg> {}</span>'
    names = [sample.format(look.draw([(0, 6), (22, 6)], [(11, 6)]), escape(name)) for name, look in looks.items()]
    return f'<p class="rz-legend" style="display:none">{" ".join(names)}</p>'


def _number(value):
    """In full: "1,000", "0.00005"."""
    return f"{value:,.12f}".rstrip("0").rstrip(".")


def _in_words(name, xs, ys):
    return f"{name} from {ys[0]:.3g} at {xs[0]:.3g} to {ys[-1]:.3g} at {xs[-1]:.3g}"
