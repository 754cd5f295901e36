"""What a calculator shows: a verdict, a table of numbers with units, a plot. Plain Python, which a page runs too.

``view`` is called when the page is built, for the states that the page carries, and in the page, by MicroPython, for
all others. So one piece of code draws both. It imports only ``math`` and the palette, and uses only what MicroPython
has (see ``ringzero.costs.page``). Colours and lettering are those of the other figures.
"""

import sys
from math import ceil, floor, log10

from ringzero.drawing import palette

LEFT, WIDTH, RIGHT = 62, 380, 178  # pixels: numbers of the y axis, the plot, names at the ends of lines
TOP, HEIGHT, BELOW = 22, 230, 44
BAR, GAP, LETTER = 22, 12, 6.3  # pixels: a bar, the space between two, a letter on average


def view(module: str, name: str, given: dict) -> dict:
    """Call the function ``name`` of ``module`` with ``given`` and put what it returns into words and a drawing.

    ``{"html": ..., "says": ..., "answer": ..., "answer_says": ...}``. Errors are those of the function.
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
        "answer": result["answer"],
        "answer_says": quantity(result["answer"], result["unit"]),
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


def escape(text: str) -> str:
    """Text for HTML."""
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(letter, entity)
    return text


def _lines(plot, title):
    series = [(name, [(x, y) for x, y in zip(xs, ys) if y > 0]) for name, xs, ys in plot["series"]]  # noqa: B905
    series = [(name, points) for name, points in series if points]
    if not series:
        return _svg(LEFT + WIDTH, 40, title, "nothing to draw", _text(LEFT, 24, "nothing to draw", "start"))
    xs = [x for _, points in series for x, _ in points] + [plot["at"]]
    ys = [y for _, points in series for _, y in points] + ([plot["level"][1]] if plot["level"] else [])
    left, right, bottom, top = log10(min(xs)), log10(max(xs)), log10(min(ys)), log10(max(ys))
    top += 0.02 * (top - bottom) + 1e-9
    floor_y = TOP + HEIGHT

    def place(x, y):
        return (
            LEFT + (log10(x) - left) / (right - left) * WIDTH,
            floor_y - (log10(y) - bottom) / (top - bottom) * HEIGHT,
        )

    parts = []
    for value in _ticks(left, right):
        x, _ = place(value, max(ys))
        parts += [_rule(x, TOP, x, floor_y), _text(x, floor_y + 15, number(value))]
    for value in _ticks(bottom, top):
        _, y = place(max(xs), value)
        parts += [_rule(LEFT, y, LEFT + WIDTH, y), _text(LEFT - 6, y + 4, number(value), "end")]
    parts.append(_text(LEFT + WIDTH / 2, floor_y + 34, plot["x"]))
    middle = TOP + HEIGHT / 2
    parts.append(_text(14, middle, plot["y"], "middle", f' transform="rotate(-90 14 {middle:.0f})"'))
    ends = []
    if plot["level"]:
        _, y = place(max(xs), plot["level"][1])
        parts.append(_stroke(LEFT, y, LEFT + WIDTH, y, "currentColor", "1.2", "2 3"))
        ends.append((y, plot["level"][0], "currentColor"))
    here, _ = place(plot["at"], max(ys))
    parts += [_stroke(here, TOP, here, floor_y, "currentColor", "1.5", "6 3")]
    parts.append(_text(here, TOP - 7, number(plot["at"]), "middle", ' font-weight="bold"'))
    said = []
    for index, (name, points) in enumerate(series):
        color = palette.LINES[index % len(palette.LINES)]
        places = [place(x, y) for x, y in points]
        path = " ".join([f"{x:.1f},{y:.1f}" for x, y in places])
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        at = _between(points, plot["at"])
        if at:
            x, y = place(plot["at"], at)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>')
            said.append(f"{name} {number(at)}")
        ends.append((places[-1][1], name, color))
    ends, lowest, end = sorted(ends), floor_y - 4, LEFT + WIDTH  # names keep off the numbers of the x axis
    limits = [lowest - 15 * (len(ends) - 1 - index) for index in range(len(ends))]
    placed = -1e9
    for (y, name, color), limit in zip(ends, limits):  # noqa: B905
        placed = max(min(y, limit), placed + 15)
        parts.append(f'<path d="M{end + 2} {y:.1f}L{end + 12} {placed:.1f}" fill="none" stroke="{color}"/>')
        parts.append(_text(end + 16, placed + 4, name, "start"))
    said = f"{plot['y']} against {plot['x']}; at {number(plot['at'])}: {', '.join(said)}"
    return _svg(LEFT + WIDTH + RIGHT, floor_y + BELOW, title, said, "".join(parts))


def _bars(plot, title):
    name, level = plot["level"]
    totals = [sum(values) for _, values in plot["bars"]]
    most = min(max(totals + [level]), 2.5 * level) * 1.02  # what is longer is cut off
    start, shown = LEFT + 4, LEFT + 4
    parts, top = [], 14
    for index, part in enumerate(plot["parts"]):  # the names, in the order of the bars
        if shown + 16 + LETTER * len(part) > LEFT + WIDTH - 20:
            shown, top = start, top + 18
        parts.append(_box(shown, top - 10, 11, 11, palette.fill(index)) + _text(shown + 16, top, part, "start"))
        shown += 34 + LETTER * len(part)
    top += 26
    bottom = top + len(totals) * (BAR + GAP) + 4
    for index, (bar, values) in enumerate(plot["bars"]):
        y, x = top + 8 + index * (BAR + GAP), start
        bold = ' font-weight="bold"' if index == plot["at"] else ""
        parts.append(_text(LEFT - 4, y + 15, bar, "end", bold))
        for i, value in enumerate(values):
            wide = min(value / most * WIDTH, start + WIDTH - x)
            if wide > 0.05:
                title_of = f"{bar}, {plot['parts'][i]}: {number(value)}"
                parts.append(_box(x, y, wide, BAR, palette.fill(i), title_of))
                x += wide
        beyond = " →" if totals[index] > most else ""
        parts.append(_text(x + 6, y + 15, number(totals[index]) + beyond, "start", bold))
    x = start + level / most * WIDTH
    parts.append(_stroke(x, top - 2, x, bottom, "currentColor", "2", "5 3"))
    parts.append(_text(x, bottom + 14, f"{name}: {number(level)}"))
    parts.append(_text(start, bottom + 30, plot["x"], "start"))
    said = "; ".join([f"{bar} {number(total)}" for (bar, _), total in zip(plot["bars"], totals)])  # noqa: B905
    said = f"{plot['x']}: {said}; {name} {number(level)}"
    return _svg(LEFT + WIDTH + 90, bottom + 38, title, said, "".join(parts))


def _ticks(low, high):
    """Powers of ten between two exponents; 2 and 5 times these too where there would be few, fewer where many."""
    step = max(1, int((high - low) / 7))
    digits = (1,) if high - low > 3 else (1, 2, 5)
    found = []
    for exponent in range(floor(low), ceil(high) + 1):
        if exponent % step == 0:
            found += [digit * 10.0**exponent for digit in digits if low <= log10(digit * 10.0**exponent) <= high]
    return found


def _between(points, x):
    """The y at ``x`` on the straight line between the neighbouring points, on logarithmic axes; None outside."""
    for i in range(len(points) - 1):
        (x1, y1), (x2, y2) = points[i], points[i + 1]
        if x1 <= x <= x2:
            return 10 ** (log10(y1) + (log10(x) - log10(x1)) / (log10(x2) - log10(x1)) * (log10(y2) - log10(y1)))
    return None


def _text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _rule(x1, y1, x2, y2):
    return _stroke(x1, y1, x2, y2, "currentColor", "0.8", "", ' stroke-opacity="0.13"')


def _stroke(x1, y1, x2, y2, color, width, dashes, more=""):
    dashes = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"'
        f"{dashes}{more}/>"
    )


def _box(x, y, width, height, color, title=""):
    named = f"><title>{escape(title)}</title></rect>" if title else "/>"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{color}" stroke="currentColor" '
        f'stroke-width="0.8"{named}'
    )


def _svg(width, height, title, description, drawn):
    """An image that shrinks with its column until its letters have 10 pixels: ``figure.svg_open``, in plain Python."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(title)} {escape(description)}" style="width:100%;max-width:{width:.0f}px;'
        f'min-width:{width * 10 / 12:.0f}px"><g font-size="12" fill="currentColor">{drawn}</g></svg>'
    )
