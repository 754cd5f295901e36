"""Step through a schedule in a page with no kernel: who sends what to whom in a round, and what each rank then holds.

    stepper("all_reduce", chunks=2)             every algorithm, 2 to 16 ranks; pipelined ones in 2 pieces

The page gets the schedules themselves, proved and in short (``written``). One script (``book/_page/stepper.js``) plays
them back and knows no algorithm: a message that adds joins two sets of contributions, one that replaces copies a set.
Without the script the page shows the space-time diagram of the schedule to start with.
"""

from html import escape
from itertools import groupby

from ringzero.collectives.algorithms import ALGORITHMS, options, world_sizes
from ringzero.collectives.proof import verify
from ringzero.drawing import palette
from ringzero.drawing.figure import Figure
from ringzero_course.figures.controls import PLAY, menu, widget
from ringzero_course.figures.space_time import spacetime

LIMIT, DIGITS = 16, "0123456789abcdef"  # of ranks; a digit for each
BUTTONS = ("First", "Back", "Next", "Last")


def stepper(
    collective: str = "all_reduce",
    *,
    start: tuple[str, int] | None = None,
    caption: str | None = None,
    **choices: int | str,
) -> Figure:
    """Let the reader choose an algorithm and a number of ranks, and go through the rounds.

    Each algorithm of ``ALGORITHMS[collective]`` is there for every number of ranks from 2 to 16 that it takes.
    ``start``: the algorithm and ranks to begin with. ``choices`` go to the algorithms that take them, as ``chunks=2``.

    Raises ValueError for a collective that is not known, a start that is not there, and a choice that none takes.
    """
    if collective not in ALGORITHMS:
        raise ValueError(f"collective is {collective!r}; it is one of {', '.join(ALGORITHMS)}")
    known = {key for name in ALGORITHMS[collective] for key in options(collective, name)}
    if unknown := sorted(set(choices) - known):
        raise ValueError(f"no algorithm of {collective} takes {unknown[0]!r}; they take {sorted(known)}")
    schedules = {name: _schedules(collective, name, choices) for name in ALGORITHMS[collective]}
    name, ranks = start or (next(iter(schedules)), 4)
    if ranks not in schedules.get(name, ()):
        raise ValueError(f"start is {start!r}; name one of {', '.join(schedules)}, and ranks it takes up to {LIMIT}")
    whole = spacetime(schedules[name][ranks])
    data: dict[str, list] = {
        "colors": [*palette.FILLS],
        "start": [list(schedules).index(name), ranks],
        "algorithms": [
            {"name": name.replace("_", " "), "schedules": [_as_data(schedule) for schedule in sizes.values()]}
            for name, sizes in schedules.items()
        ],
    }
    names = menu([algorithm["name"] for algorithm in data["algorithms"]], name.replace("_", " "))
    buttons = "".join(f'<button type="button">{word}</button>' for word in BUTTONS)
    inside = (
        f'<div class="rz-controls" hidden><label>algorithm {names}</label>'
        '<label>ranks N <input type="range" min="0" step="1"> <output></output></label>'
        f'<label>round <input type="range" min="0" step="1"> <output></output></label>{PLAY}'
        f"<span>{buttons}</span></div>"
        f'<div class="rz-view">{whole.html}</div>'
        f'<p class="rz-status" aria-live="polite">{escape(whole.alt)}.</p>'
    )
    return Figure(widget("stepper", inside, data, caption), whole.alt)


def written(round):
    """A round in short. "01+0-2 10=7": rank 0 sends rank 1 chunks 0 to 2 to add, and gets 7 to replace its own.

    >>> written(ALGORITHMS["all_reduce"]["rabenseifner"](4).rounds[0])
    '02+2-3 13+2-3 20+0-1 31+0-1'
    """
    messages = groupby(
        sorted(round, key=lambda t: (t.src, t.dst, t.reduce, t.chunk)), key=lambda t: (t.src, t.dst, t.reduce)
    )
    return " ".join(
        f"{DIGITS[src]}{DIGITS[dst]}{'+' if reduce else '='}{_runs([t.chunk for t in transfers])}"
        for (src, dst, reduce), transfers in messages
    )


def _runs(chunks):
    """[0, 1, 2, 7] as "0-2,7"."""
    runs = []
    for chunk in chunks:
        if runs and chunk == runs[-1][1] + 1:
            runs[-1][1] = chunk
        else:
            runs.append([chunk, chunk])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def _schedules(collective, name, choices):
    """``{ranks: schedule}``, each proved."""
    choices = {key: value for key, value in choices.items() if key in options(collective, name)}
    sizes = [n for n in world_sizes(collective, name, LIMIT) if n > 1]
    schedules = {n: ALGORITHMS[collective][name](n, **choices) for n in sizes}
    for schedule in schedules.values():
        verify(schedule)
    return schedules


def _as_data(schedule):
    data = {"ranks": schedule.world_size, "chunks": schedule.chunks, "rounds": list(map(written, schedule.rounds))}
    origin, target = _origin(schedule), _target(schedule)
    return data | ({} if origin is None else {"origin": origin}) | ({} if target is None else {"target": target})


def _origin(schedule):
    """The rank that brings each chunk; None where all bring one, to be summed."""
    if schedule.collective in ("broadcast", "scatter"):
        return [schedule.root] * schedule.chunks
    if schedule.collective in ("all_gather", "gather"):
        return schedule.owner.tolist()
    if schedule.collective == "all_to_all":
        return [chunk // schedule.world_size for chunk in range(schedule.chunks)]
    return None


def _target(schedule):
    """The rank that is promised each chunk; None where all are."""
    if schedule.collective in ("reduce", "gather"):
        return [schedule.root] * schedule.chunks
    if schedule.collective in ("reduce_scatter", "scatter", "all_to_all"):
        return schedule.owner.tolist()
    return None
