"""A line or point chart: measured beside predicted, units on the axes, each line named where it ends.

Matplotlib draws it as SVG with text left as text. Whatever it would paint in its own black becomes
``currentColor``, and identifiers become functions of the content, so that two builds give the same bytes
and two charts live on one page.
"""

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, frame

POINT = 4 / 3  # pixels: matplotlib counts in points
FONT = 10  # points
INK = "#010203"  # stands for the page's text colour until the SVG is written
STYLES = {"line": ("-", False), "dashed": ("--", False), "points": ("", True), "both": ("-", True)}
MANY_DECADES = 4  # on a logarithmic axis: from here on ticks at 2 and 5 would crowd it
MARKERS = "os^Dv"  # by series, so that two sets of points differ in more than colour
SHAPES = {
    "o": "M7 6a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "s": "M7 2h8v8h-8z",
    "^": "M11 1l5 9h-10z",
    "D": "M11 0l6 6l-6 6l-6-6z",
    "v": "M11 11l5-9h-10z",
}
DASHES = {"-": "", "--": ' stroke-dasharray="6 3"'}


def chart(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x: str,
    y: str,
    title: str,
    log: str = "",
    styles: Mapping[str, str] | None = None,
    ticks: Mapping[float, str] | None = None,
    caption: str | None = None,
    width: float = 7.2,
    height: float = 3.8,
) -> Figure:
    """Draw ``series``, a dict of name to ``(xs, ys)``, with axes labelled ``x`` and ``y`` (write the unit in them).

    ``log`` is "", "x", "y" or "xy". ``styles`` gives a name "line" (as by default), "dashed", "points" or "both".
    ``ticks`` maps positions on the x axis to their labels. ``width`` and ``height`` are in inches.

    Raises ValueError when ``styles`` names a series that is not there.
    """
    styles = styles or {}
    unknown = set(styles) - set(series)
    if unknown:
        raise ValueError(f"styles has {sorted(unknown)}, which is not among the series {list(series)}")
    looks = [
        (name, *STYLES[styles.get(name, "line")], color, marker)
        for name, color, marker in zip(series, cycle(palette.LINES), cycle(MARKERS), strict=False)
    ]
    drawn = _draw(series, x, y, log, looks, ticks, (width, height))
    description = f"{y} against {x}: " + "; ".join(_say(name, *points) for name, points in series.items())
    return frame(_adopt(drawn, title, description), f"{title}. {description}", caption, _legend(looks))


def _legend(looks):
    """A sample and a name for each series, hidden where ``book/_page/ringzero.css`` does not show it."""
    names = []
    for name, line, points, color, marker in looks:
        line = f'<path d="M0 6H22" stroke="{color}" stroke-width="2"{DASHES[line]}/>' if line else ""
        point = f'<path d="{SHAPES[marker]}" fill="{color}"/>' if points else ""
        names.append(f'<span><svg width="22" height="12" aria-hidden="true">{line}{point}</svg> {escape(name)}</span>')
    return f'<p class="rz-legend" style="display:none">{" ".join(names)}</p>' if len(names) > 1 else ""


def _draw(series, x, y, log, looks, ticks, size):
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings = {"svg.fonttype": "none", "svg.hashsalt": "ringzero", "font.size": FONT}
    settings |= dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK)
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        canvas = FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color=INK, alpha=0.12, linewidth=0.6)
        ends = []
        for name, line, points, color, marker in looks:
            xs, ys = series[name]
            look = {"linestyle": line, "marker": marker if points else "", "color": color, "linewidth": 1.8}
            axes.plot(xs, ys, markersize=6, **look)
            ends.append((name, xs[-1], ys[-1], look))
        axes.set(xlabel=x, ylabel=y)
        if "x" in log:
            axes.set_xscale("log")
            _mark_powers(axes.xaxis)
        if "y" in log:
            axes.set_yscale("log")
            _mark_powers(axes.yaxis)
        if ticks:
            axes.set_xticks(list(ticks), list(ticks.values()))
            axes.set_xticks([], minor=True)
        _label_ends(axes, ends)
        for background in (figure.patch, axes.patch):
            background.set_facecolor("none")
        figure.get_layout_engine().execute(figure)
        figure.set_layout_engine("none")  # else it is done again
        out = io.StringIO()
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})  # savefig would draw everything twice
    return out.getvalue()


def _mark_powers(axis):
    """Ticks at 1, 2 and 5 of each power of ten, or at the powers alone where there are many; numbers in full."""
    from matplotlib.ticker import LogLocator, NullLocator

    least, largest = axis.get_data_interval()
    many = largest > 10**MANY_DECADES * least
    axis.set_major_locator(LogLocator(subs=(1,) if many else (1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:.12f}".rstrip("0"))
    axis.set_minor_locator(NullLocator())


def _label_ends(axes, ends):
    """Names to the right of the lines' ends, each after a sample, pushed apart where they would touch."""
    axes.autoscale_view()
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform((px, py))[1]) for _, px, py, _ in ends]
    placed = 1e9
    for i in sorted(range(len(ends)), key=lambda i: -heights[i]):
        placed = min(heights[i], placed - 0.08)
        name, _, _, look = ends[i]
        if look["linestyle"]:
            path, level = [1.01, 1.045], [heights[i], placed]
        else:
            path, level = [1.03], [placed]
        axes.plot(path, level, transform=axes.transAxes, clip_on=False, markersize=6, **look)
        axes.annotate(name, (1.065, placed), xycoords="axes fraction", va="center", color=INK, annotation_clip=False)


def _adopt(drawn, title, description):
    """Matplotlib's file as an element of the page: its colours, its fonts, identifiers of its own."""
    body = drawn[drawn.index("<svg") :]
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', body).groups())
    inner = body[body.index(">") + 1 : body.rindex("</svg>")]
    inner = re.sub(r"<metadata>.*?</metadata>|<title>.*?</title>", "", inner, flags=re.DOTALL)
    inner = inner.replace(INK, "currentColor")
    inner = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", inner)
    inner = re.sub(r">\s+<", "><", inner)
    mine = "c" + hashlib.sha256((title + inner).encode()).hexdigest()[:8]
    inner = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{mine}-", inner)
    inner = inner.replace("xlink:href", "href")
    scaled = svg.element("g", inner, transform=f"scale({POINT:.4f})")
    return svg.image(width * POINT, height * POINT, title, description, [scaled], FONT * POINT)


def _say(name, xs, ys):
    return f"{name} from {ys[0]:.3g} at {xs[0]:.3g} to {ys[-1]:.3g} at {xs[-1]:.3g}"
