"""A figure that moves in a page with no kernel: every state is computed when the page is built.

The page gets the default state as it would be printed, the other states as JSON, and labelled native inputs, which
one small script (``book/_page/explore.js``) brings to life. Without the script the default state stays.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import product

from ringzero.drawing.figure import Figure, table

PLAY = '<button type="button" class="rz-play">Play</button>'  # moves the slider before it: book/_page/play.js


def explore(
    fn: Callable[..., Figure | tuple[Figure, Sequence[tuple]]],
    controls: Mapping[str, Iterable],
    *,
    default: Mapping[str, object] | None = None,
    labels: Mapping[str, str] | None = None,
    plays: str | None = None,
    caption: str | None = None,
) -> Figure:
    """Call ``fn(**state)`` for every state of ``controls`` and let the reader choose among the results.

    ``controls`` maps each argument of ``fn`` to the list of its values: numbers become a slider, words a menu.
    ``fn`` returns a Figure, or ``(Figure, rows)`` with rows ``(what, value)`` for a small table below it.
    ``default`` names the state to begin with (first values otherwise), ``labels`` the arguments in words. ``plays``
    names a slider that gets a button "Play", which moves it on by itself.

    Raises ValueError for a default that is not a state of the controls, and for a ``plays`` that is no slider.
    """
    labels = {name: name.replace("_", " ") for name in controls} | dict(labels or {})
    names, values = list(controls), [list(v) for v in controls.values()]
    default = {name: choices[0] for name, choices in zip(names, values, strict=True)} | dict(default or {})
    for name, value in default.items():
        if value not in controls.get(name, ()):
            raise ValueError(f"default has {name}={value!r}, which is not a state of the controls {controls}")
    if plays is not None and not _is_slider(controls.get(plays, "")):
        raise ValueError(
            f"plays is {plays!r}; it is one of the sliders {', '.join(n for n, v in controls.items() if _is_slider(v))}"
        )
    every = list(product(*values))
    states = [_state(fn, labels, dict(zip(names, state, strict=True))) for state in every]
    shown = states[every.index(tuple(default[name] for name in names))]
    inputs = "".join(
        _input(labels[name], choices, default[name]) + PLAY * (name == plays)
        for name, choices in zip(names, values, strict=True)
    )
    grid = {"sizes": [len(v) for v in values], "values": [[str(v) for v in vs] for vs in values], "states": states}
    inside = (
        f'<div class="rz-controls" hidden>{inputs}</div><div class="rz-view">{shown["html"]}</div>'
        f'<p class="rz-status" aria-live="polite">{escape(shown["says"])}</p>'
    )
    return Figure(widget("explore", inside, grid, caption), shown["says"])


def _state(fn, labels, state):
    result = fn(**state)
    figure, rows = result if isinstance(result, tuple) else (result, ())
    chosen = ", ".join(f"{labels[name]} {value}" for name, value in state.items())
    facts = "; ".join(f"{what}: {value}" for what, value in rows)
    says = f"Shown: {chosen}{'; ' * bool(facts)}{facts}."
    return {"html": figure.html + (table(rows).html if rows else ""), "says": says}


def _is_slider(choices):
    return all(isinstance(choice, (int, float)) for choice in choices) and bool(choices)


def _input(label, choices, start):
    if not _is_slider(choices):
        return f"<label>{escape(label)} {menu(choices, start)}</label>"
    return (
        f'<label>{escape(label)} <input type="range" min="0" max="{len(choices) - 1}" step="1" '
        f'value="{choices.index(start)}" aria-valuetext="{start}"> <output>{start}</output></label>'
    )


def menu(words: Sequence, start: object, attributes: str = "") -> str:
    """A ``<select>`` whose options have the places of the words as their values."""
    options = "".join(
        f'<option value="{i}"{" selected" * (word == start)}>{escape(str(word))}</option>'
        for i, word in enumerate(words)
    )
    return f"<select{attributes}>{options}</select>"


def widget(kind: str, inside: str, data: object, caption: str | None, attributes: str = "") -> str:
    """The element of the class ``rz-KIND`` that a script brings to life, with its caption and, as JSON, its data."""
    below = f'<p class="rz-caption">{escape(caption)}</p>' if caption else ""
    script = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")  # ends no script
    script = f'<script type="application/json">{script}</script>'
    return f'<div class="rz-{kind}"{attributes}>{inside}{below}{script}</div>'
