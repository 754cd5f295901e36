"""Scales, the round numbers on an axis, and thin lines at them.

Pages run this module in MicroPython, so it imports only ``math`` and ``svg`` (see ``ringzero.costs``).
"""

from math import ceil, floor, log10

from ringzero.drawing import svg

TYPE_CHECKING = False  # MicroPython has neither
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Scale:
    """From a value to its pixel: ``low`` lies at ``first`` and ``high`` at ``last``; with ``log`` by the logarithm."""

    def __init__(self, low: float, high: float, first: float, last: float, log: bool = False):
        self.low, self.high, self.first, self.last, self.log = low, high, first, last, log

    def __call__(self, value: float) -> float:
        if self.log:
            part = log10(value / self.low) / log10(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.first + part * (self.last - self.first)

    def ticks(self) -> list:
        """Round numbers from ``low`` to ``high``."""
        return log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high)


def around(values: "Sequence[float]", first: float, last: float, log: bool = False) -> Scale:
    """A scale with some room beside the least and the largest of ``values``."""
    low, high = min(values), max(values)
    if log:
        room = (high / low) ** 0.05 if high > low else 2
        return Scale(low / room, high * room, first, last, True)
    room = ((high - low) or abs(high) or 1) * 0.05
    return Scale(low - room, high + room, first, last)


def ticks(low: float, high: float) -> list:
    """Multiples of 1, 2 or 5 times a power of ten, at most seven.

    >>> ticks(0, 24), ticks(0.5, 2.9)
    ([0.0, 5.0, 10.0, 15.0, 20.0], [0.5, 1.0, 1.5, 2.0, 2.5])
    """
    step = 10 ** floor(log10(high - low))
    step = next(step * factor for factor in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (step * factor) < 7)
    return [round(step * i, 12) for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list:
    """Powers of ten; 2 and 5 times these too where there would be few, fewer where many.

    Where even these are fewer than three, as between 1.9 and 3.4, the ticks of a straight axis.

    >>> log_ticks(1, 50), log_ticks(1, 1e4), log_ticks(1.9, 3.4)
    ([1.0, 2.0, 5.0, 10.0, 20.0, 50.0], [1.0, 10.0, 100.0, 1000.0, 10000.0], [2.0, 2.5, 3.0])
    """
    lowest, highest = log10(low), log10(high)
    step, digits = max(1, int((highest - lowest) / 7)), (1,) if highest - lowest > 3 else (1, 2, 5)
    exponents = [exponent for exponent in range(floor(lowest), ceil(highest) + 1) if exponent % step == 0]
    values = [digit * 10.0**exponent for exponent in exponents for digit in digits]
    found = [value for value in values if lowest <= log10(value) <= highest]
    return found if len(found) > 2 else ticks(low, high)


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return svg.line(x1, y1, x2, y2, stroke_opacity=0.16, stroke_width=0.8)


def upright(
    across: Scale, top: float, bottom: float, y: float, say: "Callable[[float], str]" = "{:g}".format,
    ticks: dict | None = None,
) -> list:  # fmt: skip
    """Rules from ``top`` to ``bottom`` at round numbers, and at ``y`` these numbers, as ``say`` puts them.

    ``ticks`` maps other values to their words. A number that would touch another is left out, a power of ten last.
    """
    values, parts = sorted(ticks) if ticks else across.ticks(), []
    odd = [value for value in values if across.log and abs(log10(value) - round(log10(value))) > 1e-9]
    taken: list = []
    for value in [value for value in values if value not in odd] + odd:
        x, words = across(value), ticks[value] if ticks else say(value)
        half = svg.LETTER * len(words) / 2 + 2
        parts.append(rule(x, top, x, bottom))
        if all(abs(x - other) >= half + more for other, more in taken):
            taken.append((x, half))
            parts.append(svg.text(x, y, words, "middle"))
    return parts


def level(up: Scale, left: float, right: float, say: "Callable[[float], str]" = "{:g}".format) -> list:
    """Rules from ``left`` to ``right``, and their numbers to the left of them."""
    parts = []
    for value in up.ticks():
        y = up(value)
        parts += [rule(left, y, right, y), svg.text(left - 6, y, say(value), "end")]
    return parts


def plot(
    across: Scale, up: Scale, x: str, y: str, say: "Callable[[float], str]" = "{:g}".format,
    ticks: dict | None = None,
) -> list:  # fmt: skip
    """Both axes of a plot, named ``x`` and ``y``: 44 pixels below it, and all that lies to the left of it."""
    left, right, top, bottom = across.first, across.last, up.last, up.first
    middle = (top + bottom) / 2
    parts = upright(across, top, bottom, bottom + 12, say, ticks) + level(up, left, right, say)
    parts.append(svg.text((left + right) / 2, bottom + 32, x, "middle"))
    return parts + [svg.text(12, middle, y, "middle", transform=f"rotate(-90 12 {svg.number(middle)})")]


def apart(heights: list, lowest: float, gap: float = 15) -> list:
    """``heights``, ascending, moved so that they lie ``gap`` apart, and as far down as ``lowest`` where they fit.

    >>> apart([10, 12, 90], lowest=80)
    [10, 25, 80]
    """
    placed: list = []
    for index, y in enumerate(heights):
        y = min(y, lowest - gap * (len(heights) - 1 - index))
        placed.append(max(y, placed[-1] + gap) if placed else y)
    return placed
