"""Sliders over a drawing of the student's own collectives, priced by the student's own formula."""

import html
from typing import Any

import torch

from ringzero_course.lab import handle
from ringzero_course.lab.execute import execute
from ringzero_course.lab.parameters import notebook_names
from ringzero_course.lab.runs import Case, Run
from ringzero_course.lab.shown.drawing import Note, NothingToDrawError, observe, price

MOST_RANKS = 8
SIZES = [2**k for k in range(10, 31, 2)]  # bytes


def explore(
    *,
    all_reduce: str,
    seconds: str,
    broadcast: str | None = None,
    alpha: str = "alpha",
    beta: str = "beta",
    world_size: int = 4,
) -> Any:
    """Sliders for ranks, pieces and size over a drawing of the student's own functions, priced by their own formula.

    Functions and numbers are given by name and looked up in the notebook at each change, so the newest definition
    shows. ``alpha`` and ``beta`` fill the two fields of that name once the notebook has them.
    """
    try:
        import ipywidgets as widgets
    except ImportError:
        return Note('The explorer needs ipywidgets: pip install "ringzero-course[labs]".')

    class Explorer(widgets.VBox):
        summary = ""

        def __repr__(self):  # where there is no browser, this is what shows
            return self.summary

    functions = [("all-reduce", all_reduce)] + ([("broadcast", broadcast)] if broadcast else [])
    wide = {"style": {"description_width": "9em"}, "layout": widgets.Layout(width="28em")}
    which = widgets.Dropdown(options=functions, description="collective", **wide)
    ranks = widgets.IntSlider(world_size, 1, MOST_RANKS, description="ranks", continuous_update=False, **wide)
    pieces = widgets.IntSlider(4, 1, 16, description="chunks (broadcast)", continuous_update=False, **wide)
    size = widgets.SelectionSlider(
        options=[(_bytes(n), n) for n in SIZES],
        value=2**20,
        description="message size",
        continuous_update=False,
        **wide,
    )
    names = notebook_names()
    latency = widgets.FloatText(_number(names.get(alpha), 20e-6) * 1e6, description="α, µs a message", **wide)
    per_byte = widgets.FloatText(_number(names.get(beta), 1e-9) * 1e9, description="β, ns a byte", **wide)
    shown = widgets.HTML()
    seen: dict[str, Any] = {}  # what was drawn last: its key, schedule and shares

    def redraw(_change=None):
        box.summary, shown.value = "…", "<p>…</p>"
        try:
            box.summary, shown.value = _page(
                which.value, which.value == broadcast, seconds, ranks.value, pieces.value, size.value,
                latency.value * 1e-6, per_byte.value * 1e-9, seen, max(world_size, 1),
            )  # fmt: skip
        except NothingToDrawError as nothing:
            box.summary, shown.value = str(nothing), Note(str(nothing))._repr_html_()
        except Exception as error:  # a callback's traceback would go to a log nobody reads
            text = f"The explorer failed: {type(error).__name__}: {error}"
            box.summary, shown.value = text, Note(text)._repr_html_()

    controls = (which, ranks, pieces, size, latency, per_byte)
    box = Explorer([*controls, shown])
    for control in controls:
        control.observe(redraw, names="value")
    redraw()
    return box


def _page(function, is_broadcast, seconds, n, pieces, size, alpha, beta, seen, started):
    """The text summary and the HTML of one state of the explorer."""
    import ringzero
    from ringzero_course.figures import spacetime

    student = handle.of(function)
    name = student.name
    key = (student, n, pieces if is_broadcast else None)
    if seen.get("key") != key:
        if n > max(started, seen.get("started", 0)):
            ringzero.launch(_nothing, world_size=MOST_RANKS, device="cpu")  # once, not again for each number
            seen["started"] = MOST_RANKS
        options = {"root": 0, "chunks": pieces} if is_broadcast else {}
        numel = 24 * pieces if is_broadcast else 840  # pieces alike, for any number of ranks up to 8
        seen["schedule"], seen["shares"] = observe(student, n, numel, options)
        seen["key"] = key
    schedule, shares = seen["schedule"], seen["shares"]
    sent = _most_sent(schedule, shares)
    priced = price(schedule, shares, size, alpha, beta)
    lines = [
        f"{name} on {n} ranks, {_bytes(size)}: {len(schedule.rounds)} rounds; "
        f"no rank sends more than {sent:.3g} times the buffer.",
        f"Priced round by round, α + bytes · β each: {_time(priced)}.",
    ]
    if not is_broadcast:
        lines.append(_own_formula(seconds, size, n, alpha, beta, priced))
    page = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    figure = spacetime(schedule)._repr_html_() if schedule.rounds else "<p>No messages.</p>"
    return f"{name}, {n} ranks: {len(schedule.rounds)} rounds, {_bytes(size)} in {_time(priced)}", figure + page


def _own_formula(seconds, size, n, alpha, beta, priced):
    name = seconds
    run = Run(Case(1, None, torch.float32, (size, n, alpha, beta), {}))
    execute([run], [handle.of(seconds)], None, "cpu")
    if run.problem:
        return f"No prediction from your formula: {run.problem}."
    predicted = run.returned[0]
    if isinstance(predicted, bool) or not isinstance(predicted, (int, float)):
        return f"No prediction from your formula: {name} returned {predicted!r}, not a number."
    agree = abs(predicted - priced) <= 0.01 * abs(priced) + 1e-12
    return f"Your {name} says {_time(predicted)}" + (": the same." if agree else ". They should agree: which is wrong?")


def _most_sent(schedule, shares):
    sent = [0.0] * schedule.world_size
    for round in schedule.rounds:
        for transfer in round:
            sent[transfer.src] += shares[transfer.chunk]
    return max(sent)


def _nothing():
    pass


def _number(value, default):
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1
    return value if usable else default


def _bytes(size):
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def _time(seconds):
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if abs(seconds) >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs"
