"""A figure that moves in a page with no kernel: every state is computed when the page is built.

The page gets the default state as it would be printed, the other states as JSON, and labelled native inputs, which
one small script (``book/_page/explore.js``) brings to life. Without the script the default state stays.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import product

from ringzero.drawing.figure import Figure, table


def explore(
    fn: Callable[..., Figure | tuple[Figure, Sequence[tuple]]],
    controls: Mapping[str, Iterable],
    *,
    default: Mapping[str, object] | None = None,
    labels: Mapping[str, str] | None = None,
    caption: str | None = None,
) -> Figure:
    """Call ``fn(**state)`` for every state of ``controls`` and let the reader choose among the results.

    ``controls`` maps each argument of ``fn`` to the list of its values: numbers become a slider, words a menu.
    ``fn`` returns a Figure, or ``(Figure, rows)`` with rows ``(what, value)`` for a small table below it.
    ``default`` names the state to begin with (first values otherwise), ``labels`` the arguments in words.

    Raises ValueError for a default that is not a state of the controls.
    """
    labels = {name: name.replace("_", " ") for name in controls} | dict(labels or {})
    names, values = list(controls), [list(v) for v in controls.values()]
    default = {name: choices[0] for name, choices in zip(names, values, strict=True)} | dict(default or {})
    for name, value in default.items():
        if value not in controls.get(name, ()):
            raise ValueError(f"default has {name}={value!r}, which is not a state of the controls {controls}")
    start = [choices.index(default[name]) for name, choices in zip(names, values, strict=True)]
    states = [_state(fn, labels, dict(zip(names, state, strict=True))) for state in product(*values)]
    position = 0
    for index, choices in zip(start, values, strict=True):
        position = position * len(choices) + index
    inputs = "".join(
        _input(labels[name], choices, index) for name, choices, index in zip(names, values, start, strict=True)
    )
    grid = {"sizes": [len(v) for v in values], "values": [[str(v) for v in vs] for vs in values], "states": states}
    shown = states[position]
    below = f'<p class="rz-caption">{escape(caption)}</p>' if caption else ""
    html = (
        f'<div class="rz-explore"><div class="rz-controls" hidden>{inputs}</div>'
        f'<div class="rz-view">{shown["html"]}</div>'
        f'<p class="rz-status" aria-live="polite">{escape(shown["says"])}</p>{below}'
        f'<script type="application/json">{json_in_html(grid)}</script></div>'
    )
    return Figure(html, shown["says"])


def _state(fn, labels, state):
    result = fn(**state)
    figure, rows = result if isinstance(result, tuple) else (result, ())
    chosen = ", ".join(f"{labels[name]} {value}" for name, value in state.items())
    facts = "; ".join(f"{what}: {value}" for what, value in rows)
    says = f"Shown: {chosen}{'; ' * bool(facts)}{facts}."
    return {"html": figure.html + (table(rows).html if rows else ""), "says": says}


def _input(label, choices, index):
    if all(isinstance(choice, (int, float)) for choice in choices):
        control = (
            f'<input type="range" min="0" max="{len(choices) - 1}" step="1" value="{index}" '
            f'aria-valuetext="{choices[index]}">'
        )
        return f"<label>{escape(label)} {control} <output>{choices[index]}</output></label>"
    options = "".join(
        f'<option value="{i}"{" selected" * (i == index)}>{escape(str(choice))}</option>'
        for i, choice in enumerate(choices)
    )
    return f"<label>{escape(label)} <select>{options}</select></label>"


def json_in_html(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
