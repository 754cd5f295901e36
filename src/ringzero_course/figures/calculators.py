"""A calculator: a function of ``ringzero.costs.page`` behind labelled fields, which a page runs itself, in MicroPython.

The page gets the view of the starting state as it would be printed, those of a small grid of states as JSON, and the
fields, which ``book/_page/calculator.js`` brings to life: it shows the grid's views until Python has started, and from
then on what Python answers. Without the script the starting view stays.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from math import ceil, floor, log10

from ringzero.drawing.figure import Figure
from ringzero_course.figures import readout
from ringzero_course.figures.controls import menu, widget


@dataclass(frozen=True)
class Number:
    """A field for a number, with a slider.

    ``stops`` are the slider's places, ascending; the field takes any number from the first to the last. What the reader
    sees is in ``unit``, and the function gets ``scale`` times as much. ``whole`` refuses fractions. ``grid`` are the
    stops whose views the page carries; by default the start alone.
    """

    label: str
    stops: Sequence[float]
    start: float
    unit: str = ""
    scale: float = 1
    whole: bool = False
    grid: Sequence[float] = ()


@dataclass(frozen=True)
class Choice:
    """A menu of ``values``, which the function gets as they are. ``grid`` are those whose views the page carries."""

    label: str
    values: Sequence
    start: object
    grid: Sequence = ()


def round_numbers(low: float, high: float) -> list[float]:
    """Stops from ``low`` to ``high``, eleven for each factor of ten.

    >>> round_numbers(1, 10)
    [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0]
    """
    digits = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8)
    exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
    stops = [float(f"{digit}e{exponent}") for exponent in exponents for digit in digits]
    return [stop for stop in stops if low <= stop <= high]


def powers_of_two(low: int, high: int) -> list[int]:
    """``low``, twice as much, ... up to ``high``."""
    return [low * 2**i for i in range((high // low).bit_length())]


def calculator(
    fn: Callable[..., dict],
    fields: Mapping[str, Number | Choice],
    *,
    caption: str | None = None,
) -> Figure:
    """Let the reader choose the arguments of ``fn``, and show its answer.

    ``fn`` is a function of ``ringzero.costs.page.calculators``, which describes what it returns; ``fields`` has a
    Number or a Choice for each argument. The function's name names the calculator in the page's address, so a page has
    each once.

    Raises ValueError for a start or a grid that a field does not have.
    """
    grids = [_grid(name, field) for name, field in fields.items()]
    every = list(product(*grids))
    states = [_view(fn, fields, state) for state in every]
    shown, name = states[every.index(tuple(field.start for field in fields.values()))], fn.__name__
    data = {
        "module": fn.__module__,
        "name": name,
        "fields": [_spec(*item, grid) for item, grid in zip(fields.items(), grids, strict=True)],
        "states": states,
    }
    inputs = "".join(_input(f"rz-{name}-{argument}", argument, field) for argument, field in fields.items())
    inside = (
        f'<div class="rz-fields" hidden>{inputs}</div><div class="rz-view">{shown["html"]}</div>'
        f'<p class="rz-status" aria-live="polite">{escape(shown["says"])}</p>'
        f'<p class="rz-note">{escape(shown["note"])}</p>'
    )
    return Figure(widget("calculator", inside, data, caption, f' id="rz-{name}"'), shown["says"])


def _grid(name, field):
    """The values whose views the page carries: among what the field offers, the start with them, in order."""
    offered = list(field.values if isinstance(field, Choice) else field.stops)
    for value in (field.start, *field.grid):
        if value not in offered:
            raise ValueError(f"{name} has {value!r}, which is not among its values {offered}")
    return [value for value in offered if value == field.start or value in field.grid]


def _view(fn, fields, state):
    """The view of a state in the reader's units, and for which values it holds."""
    given = {
        name: value if isinstance(field, Choice) else value * field.scale
        for (name, field), value in zip(fields.items(), state, strict=True)
    }
    chosen = ", ".join(
        f"{field.label} {value if isinstance(field, Choice) else readout.quantity(value, field.unit)}"
        for field, value in zip(fields.values(), state, strict=True)
    )
    return readout.view(fn.__module__, fn.__name__, given) | {"note": f"For {chosen}."}


def _spec(name, field, grid):
    common = {"name": name, "label": field.label, "grid": grid}
    if isinstance(field, Choice):
        return common | {"values": list(field.values), "start": str(field.start)}
    low, high = readout.number(field.stops[0]), readout.number(field.stops[-1])
    takes = f"{'a whole number' if field.whole else 'a number'} from {low} to {high}"
    return common | {
        "unit": field.unit,
        "stops": list(field.stops),
        "scale": field.scale,
        "whole": field.whole,
        "takes": f"{field.label}: give {takes}{f' ({field.unit})' * bool(field.unit)}, in digits: 1000 or 2.5",
        "start": _digits(field.start),
    }


def _digits(value):
    return f"{value:.12g}"


def _input(identifier, name, field):
    label = f'<label for="{identifier}">{escape(field.label)}</label>'
    wrong = f'<span class="rz-wrong" id="{identifier}-wrong" role="alert"></span>'
    if isinstance(field, Choice):
        attributes = f' id="{identifier}" name="{name}" aria-describedby="{identifier}-wrong"'
        control = menu(field.values, field.start, attributes)
        return f'<div class="rz-field">{label}{control}{wrong}</div>'
    unit = f'<span class="rz-unit" id="{identifier}-unit">{escape(field.unit)}</span>'
    text = (
        f'<input type="text" inputmode="decimal" autocomplete="off" id="{identifier}" name="{name}" '
        f'value="{_digits(field.start)}" aria-describedby="{identifier}-unit {identifier}-wrong">'
    )
    slider = (
        f'<input type="range" aria-label="{escape(field.label)}, slider" min="0" max="{len(field.stops) - 1}" step="1" '
        f'value="{list(field.stops).index(field.start)}" aria-valuetext="{_digits(field.start)} {escape(field.unit)}">'
    )
    return f'<div class="rz-field">{label}{text}{unit}{slider}{wrong}</div>'
