"""Draw what a student's own collective did, from the messages its ranks sent.

The function runs on coded input (``runs.codes``), so each message tells which piece of the buffer it carries and whose
contributions are in it. Messages that waited for each other fall into different rounds. What comes out is a
``Schedule``, the same data the library's own algorithms are made of, and is drawn and priced like those.
"""

import html
from dataclasses import dataclass

import torch

from ringzero.collectives import Round, Schedule
from ringzero.lab import runs
from ringzero.lab.parameters import notebook_names

MOST_RANKS = 8
SIZES = [2**k for k in range(10, 31, 2)]  # bytes


class NothingToDrawError(Exception):
    """The function did not get far enough; the message is for the student."""


@dataclass(frozen=True)
class Note:
    """A sentence where a figure should be."""

    text: str

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return f"<p>{html.escape(self.text)}</p>"


def draw(function, *, world_size, numel=840, **options):
    """The space-time figure of ``function(tensor, **options)`` on ``world_size`` ranks, or why there is none.

    ``function`` is a name in the notebook or a function. It runs on the CPU, whatever the device of the lab.
    """
    from ringzero.figures import spacetime

    try:
        schedule, _ = observe(function, world_size, numel, options)
    except NothingToDrawError as nothing:
        return Note(str(nothing))
    return spacetime(schedule)


def observe(function, world_size, numel, options):
    """``(schedule, shares)`` of what the function did: ``shares[c]`` is the part of the buffer in chunk c."""
    name, function = _lookup(function)
    run = runs.Run(runs.Case(world_size, numel, torch.int64, (), options, watched=True))
    runs.execute(name, function, [run], "cpu")
    problem = run.problem or runs.unmatched(run)
    if problem:
        raise NothingToDrawError(f"Nothing to draw: {problem}" + ("" if problem.endswith(".") else "."))
    transfers = _transfers(run)
    starts = sorted({element for _, _, element, *_ in transfers})
    if not starts:
        collective = "broadcast" if "root" in options else "all_reduce"
        return Schedule(collective, name, world_size, 1, (), options.get("root")), [1.0]
    sizes = {}
    for _, _, element, count, _, _ in transfers:
        sizes[element] = max(count, sizes.get(element, 0))
    by_round = {}
    for src, dst, element, _, reduce, number in transfers:
        by_round.setdefault(number, []).append((src, dst, starts.index(element), reduce))
    rounds = tuple(Round(*zip(*by_round[number], strict=True)) for number in sorted(by_round))
    collective = "broadcast" if "root" in options else "all_reduce"
    schedule = Schedule(collective, name, world_size, len(starts), rounds, options.get("root"))
    return schedule, [sizes[element] / numel for element in starts]


def _transfers(run):
    """``(src, dst, first element, elements, reduce, round)`` of every message that is not empty, rounds from 1."""
    arrivals = {}  # (src, dst) -> receives in order
    for dst, ops in enumerate(run.operations):
        for op in ops:
            if op["kind"] == "recv":
                arrivals.setdefault((op["peer"], dst), []).append(op)
    received = [[] for _ in range(run.world_size)]  # (when complete, round) of what a rank has received
    last_sent, found = [0] * run.world_size, []
    for src, op in sorted(run.sends(), key=lambda each: each[1]["start"]):
        dst = op["peer"]
        arrival = arrivals[src, dst].pop(0)
        if not op["bytes"]:
            continue
        where = runs.decode(op["head"])
        if where is None:
            raise NothingToDrawError(
                f"Nothing to draw: rank {src} sent something to rank {dst} that is not a sum of the ranks' tensors."
            )
        before = [number for complete, number in received[src] if complete <= op["start"]]
        earlier = [number for _, number in received[dst]]
        number = 1 + max([0, last_sent[src], *before, *earlier])
        last_sent[src] = number
        received[dst].append((arrival["end"], number))
        element, contributors = where
        reduce = "root" not in run.case.options and len(contributors) < run.world_size
        found.append((src, dst, element, op["bytes"] // run.element_size, reduce, number))
    return found


def price(schedule, shares, size, alpha, beta):
    """Seconds for a buffer of ``size`` bytes if each round takes as long as its largest message."""
    return sum(alpha + max(shares[t.chunk] for t in round) * size * beta for round in schedule.rounds)


def explore(*, all_reduce, seconds, broadcast=None, alpha="alpha", beta="beta", world_size=4):
    """Sliders for ranks, pieces and size over a drawing of the student's own functions, priced by their own formula.

    Functions and numbers are given by name and looked up in the notebook at each change, so the newest definition
    shows. ``alpha`` and ``beta`` fill the two fields of that name once the notebook has them.
    """
    try:
        import ipywidgets as widgets
    except ImportError:
        return Note('The explorer needs ipywidgets: pip install "ringzero[labs]".')

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
    seen = {}  # what was drawn last: its key, schedule and shares

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
    from ringzero.figures import spacetime

    name, code = _lookup(function)
    key = (name, id(code), n, pieces if is_broadcast else None)
    if seen.get("key") != key:
        if n > max(started, seen.get("started", 0)):
            ringzero.launch(_nothing, world_size=MOST_RANKS, device="cpu")  # once, not again for each number
            seen["started"] = MOST_RANKS
        options = {"root": 0, "chunks": pieces} if is_broadcast else {}
        numel = 24 * pieces if is_broadcast else 840  # pieces alike, for any number of ranks up to 8
        seen["schedule"], seen["shares"] = observe(code, n, numel, options)
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
    name, function = _lookup(seconds)
    run = runs.Run(runs.Case(1, None, torch.float32, (size, n, alpha, beta), {}))
    runs.execute(name, function, [run], "cpu")
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


def _lookup(function):
    """``(name, function)`` from a name in the notebook or a function."""
    if callable(function):
        return getattr(function, "__name__", "the function"), function
    found = notebook_names().get(function)
    if not callable(found):
        raise NothingToDrawError(f"Nothing to draw: {function} is not defined. Run the cell that defines it first.")
    return function, found


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


def slide(description, options, draw):
    """A slider over ``options``, ``{label: value}``, above the figure ``draw(value)``, drawn anew at each change.

    What ``draw`` raises is shown in its place.
    """
    try:
        import ipywidgets as widgets
    except ImportError:
        return Note('The slider needs ipywidgets: pip install "ringzero[labs]".')

    class Slider(widgets.VBox):
        def __repr__(self):  # where there is no browser, this is what shows
            return self.summary

    slider = widgets.SelectionSlider(
        options=list(options.items()),
        description=description,
        continuous_update=False,
        style={"description_width": "initial"},
        layout=widgets.Layout(width="36em"),
    )
    shown = widgets.HTML()

    def redraw(_change=None):
        try:
            figure = draw(slider.value)
            box.summary, shown.value = f"{description} {slider.label}: {figure!r}", figure._repr_html_()
        except Exception as error:  # a callback's traceback would go to a log nobody reads
            said = str(error) or type(error).__name__
            if "NotImplementedError" in said:  # on a rank: then the message is the rank's traceback
                said = "it calls what is not written yet"
            text = f"Nothing to draw: {said}"
            box.summary, shown.value = text, f"<pre>{html.escape(text)}</pre>"

    box = Slider([slider, shown])
    slider.observe(redraw, names="value")
    redraw()
    return box
