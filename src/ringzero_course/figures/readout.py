"""What a calculator shows: a verdict, a table of numbers with units, a plot. Plain Python, which a page runs too.

``view`` is called when the page is built, for the states that the page carries, and in the page, by MicroPython, for
all others. So one piece of code draws both, and uses only what MicroPython has (see ``ringzero.costs.page``).
"""

import sys
from math import floor, log10

from ringzero.drawing import axes, palette, svg
from ringzero.drawing.svg import escape

LEFT, WIDTH, RIGHT = 62, 380, 178  # pixels: numbers of the y axis, the plot, names at the ends of lines
TOP, HEIGHT, BELOW = 22, 230, 44  # pixels: above the plot, the plot, below it
BAR, GAP = 22, 12  # pixels: a bar, the space between two


def view(module: str, name: str, given: dict) -> dict:
    """Call the function ``name`` of ``module`` with ``given`` and put what it returns into words and a drawing.

    ``{"html": ..., "says": ...}``. Errors are those of the function.
    """
    __import__(module)
    result = getattr(sys.modules[module], name)(**given)
    rows = [(what, quantity(value, unit)) for what, value, unit in result["rows"]]
    cells = "".join([f'<tr><th scope="row">{escape(what)}</th><td>{escape(said)}</td></tr>' for what, said in rows])
    facts = "; ".join([f"{what}: {said}" for what, said in rows])
    drawn = draw(result["plot"], result["verdict"])
    return {
        "html": f'<p class="rz-verdict">{escape(result["verdict"])}</p>'
        f'<figure class="rz-figure"><div class="rz-scroll" tabindex="0">{drawn}</div></figure>'
        f'<table class="rz-table"><tbody>{cells}</tbody></table>',
        "says": f"{result['verdict']} {facts}.",
    }


def quantity(value: float | str, unit: str) -> str:
    """A number to three digits with its unit, or a word.

    >>> quantity(8847320.5, "$"), quantity(4096, "tokens"), quantity(0.41416, "")
    ('$8.85 million', '4,096 tokens', '0.414')
    """
    if isinstance(value, str):
        return value
    said = number(value)
    return f"${said}" if unit == "$" else f"{said} {unit}".strip()


def number(value: float) -> str:
    """Three digits, more for whole numbers below a million: "0.414", "4,096", "8.85 million"."""
    for size, word in ((1e15, "quadrillion"), (1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if 0.9995 * size <= abs(value) < 999.5 * size:
            return f"{value / size:.3g} {word}"
    if 999.5 <= abs(value) < 1e6:
        return f"{int(floor(value + 0.5)):,}"
    return f"{value:.3g}"


def draw(plot: dict, title: str) -> str:
    """The ``<svg>`` of a plot as ``ringzero.costs.page.calculators`` describes it."""
    return _bars(plot, title) if plot["kind"] == "bars" else _lines(plot, title)


def _lines(plot, title):
    series = [(name, [(x, y) for x, y in zip(xs, ys) if y > 0]) for name, xs, ys in plot["series"]]  # noqa: B905
    series = [(name, points) for name, points in series if points]
    if not series:
        return svg.image(LEFT + WIDTH, 40, title, "nothing to draw", [svg.text(LEFT, 20, "nothing to draw")])
    xs = [x for _, points in series for x, _ in points] + [plot["at"]]
    ys = [y for _, points in series for _, y in points] + ([plot["level"][1]] if plot["level"] else [])
    bottom, right = TOP + HEIGHT, LEFT + WIDTH
    across = axes.Scale(min(xs), max(xs), LEFT, right, True)
    up = axes.Scale(min(ys), max(ys) * (max(ys) / min(ys)) ** 0.02 * (1 + 1e-9), bottom, TOP, True)
    here = across(plot["at"])
    parts = axes.plot(across, up, plot["x"], plot["y"], number)
    ends, said = [], []
    if plot["level"]:
        y = up(plot["level"][1])
        parts.append(svg.line(LEFT, y, right, y, stroke_width=1.2, stroke_dasharray="2 3"))
        ends.append((y, plot["level"][0], svg.INK))
    parts.append(svg.line(here, TOP, here, bottom, stroke_width=1.5, stroke_dasharray="6 3"))
    parts.append(svg.text(here, TOP - 11, number(plot["at"]), "middle", bold=True))
    for index, (name, points) in enumerate(series):
        color = palette.LINES[index % len(palette.LINES)]
        path = " ".join([f"{svg.number(across(x))},{svg.number(up(y))}" for x, y in points])
        parts.append(svg.element("polyline", points=path, fill="none", stroke=color, stroke_width=2))
        at = _between(points, plot["at"])
        if at:
            parts.append(svg.disc((here, up(at)), 4, color, stroke=None))
            said.append(f"{name} {number(at)}")
        ends.append((up(points[-1][1]), name, color))
    ends.sort()
    placed = axes.apart([y for y, _, _ in ends], bottom - 4)  # the names keep off the numbers of the x axis
    for (y, name, color), level in zip(ends, placed):  # noqa: B905
        parts += [svg.line(right + 2, y, right + 12, level, color), svg.text(right + 16, level, name)]
    said = f"{plot['y']} against {plot['x']}; at {number(plot['at'])}: {', '.join(said)}"
    return svg.image(right + RIGHT, bottom + BELOW, title, said, parts)


def _bars(plot, title):
    name, level = plot["level"]
    totals = [sum(values) for _, values in plot["bars"]]
    most = min(max(totals + [level]), 2.5 * level) * 1.02  # what is longer is cut off
    start = LEFT + 4
    across = axes.Scale(0, most, start, start + WIDTH)
    parts, top = _legend(plot["parts"], start)
    bottom = top + len(totals) * (BAR + GAP) + 4
    for index, (bar, values) in enumerate(plot["bars"]):
        y, reached, bold = top + 8 + index * (BAR + GAP), 0, index == plot["at"]
        parts.append(svg.text(LEFT - 4, y + BAR / 2, bar, "end", bold=bold))
        for i, value in enumerate(values):
            left, right = across(reached), across(min(reached + value, most))
            if right - left > 0.05:
                said = f"{bar}, {plot['parts'][i]}: {number(value)}"
                parts.append(svg.box(left, y, right - left, BAR, palette.fill(i), title=said))
            reached = min(reached + value, most)
        beyond = " →" if totals[index] > most else ""
        parts.append(svg.text(across(reached) + 6, y + BAR / 2, number(totals[index]) + beyond, bold=bold))
    x = across(level)
    parts.append(svg.line(x, top - 2, x, bottom, stroke_width=2, stroke_dasharray="5 3"))
    parts.append(svg.text(x, bottom + 10, f"{name}: {number(level)}", "middle"))
    parts.append(svg.text(start, bottom + 26, plot["x"]))
    said = "; ".join([f"{bar} {number(total)}" for (bar, _), total in zip(plot["bars"], totals)])  # noqa: B905
    said = f"{plot['x']}: {said}; {name} {number(level)}"
    return svg.image(LEFT + WIDTH + 90, bottom + 38, title, said, parts)


def _legend(names, start):
    """The parts' colours and names, in the order of the bars, and where the drawing goes on below them."""
    parts, x, y = [], start, 9
    for index, name in enumerate(names):
        wide = 34 + svg.LETTER * len(name)
        if x + wide > LEFT + WIDTH:
            x, y = start, y + 18
        parts += [svg.box(x, y - 5, 11, 11, palette.fill(index)), svg.text(x + 16, y, name)]
        x += wide
    return parts, y + 31


def _between(points, x):
    """The y at ``x`` on the straight line between the neighbouring points, on logarithmic axes; None outside."""
    for i in range(len(points) - 1):
        (x1, y1), (x2, y2) = points[i], points[i + 1]
        if x1 <= x <= x2:
            return 10 ** (log10(y1) + (log10(x) - log10(x1)) / (log10(x2) - log10(x1)) * (log10(y2) - log10(y1)))
    return None
