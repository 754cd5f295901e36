"""All that traces say about a training step: one clock, where each rank's time went, and for whom they waited."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from ringzero.drawing import Figure, table, timeline
from ringzero.profiles.accounts import Account, accounts, meetings, total
from ringzero.profiles.clocks import Clock, align
from ringzero.profiles.profile import Profile, of_operations
from ringzero.profiles.reading import read
from ringzero.profiles.stragglers import Straggler, ms, straggler
from ringzero.record.operation import COMPUTE, Operation
from ringzero.record.spans import Spans, both, length, union

HEAD = ("rank", "step (ms)", "computing", "idle", "exposed", "hidden", "moving", "waited")
DRAWN = 3  # steps in a figure, unless one is chosen
NEXT_TO_NOTHING, MOSTLY = 0.1, 0.9  # of the time
STRIPES = 200  # in the figure's width
STRIPE = "a share of this time"  # what a stripe is called
BARS = 1000  # parts of the figure's width: gaps in computing that are shorter are not drawn
NOT_NUMBERED = (
    "Neither steps nor collectives have numbers in these traces. If the profiles began in different steps, it is that "
    "and not the clocks that was taken off; profile.step() numbers the steps."
)


class Island(NamedTuple):
    """Profiles on one clock, and what they say together; most often there is one island, of all ranks."""

    profiles: list[Profile]
    accounts: list[Account]
    straggler: Straggler | None


@dataclass(frozen=True, repr=False)
class Report:
    """What ``report`` found. It shows itself in a notebook: sentences, table and timeline."""

    islands: list[Island]
    clocks: list[Clock]

    @property
    def profiles(self) -> list[Profile]:
        """Of all islands, by rank."""
        return sorted((profile for island in self.islands for profile in island.profiles), key=lambda p: p.rank)

    @property
    def accounts(self) -> list[Account]:
        """Of all islands, by rank and step."""
        return sorted((account for island in self.islands for account in island.accounts), key=lambda a: a.rank)

    def rows(self) -> list[tuple[str, ...]]:
        """A row under ``HEAD`` for each rank: milliseconds of its mean step."""
        return [
            (f"{mean.rank}", *(ms(getattr(mean, what)) for what in ("seconds", *HEAD[2:])))
            for mean in (_mean([a for a in self.accounts if a.rank == p.rank]) for p in self.profiles)
        ]

    def sentences(self) -> list[str]:
        """What was read, what is missing or odd, whose clock was moved, and the straggler."""
        profiles = self.profiles
        said = [_what_was_read(profiles), *(note for profile in profiles for note in profile.notes)]
        said += [*_missing(profiles), *_without_communication(profiles), *_unmet(self.islands)]
        fitting = [clock for clock in self.clocks if clock.fits]
        said += [_not_the_same(clock) for clock in self.clocks if not clock.fits]
        said += [*_one_clock(fitting), *(_moved_clock(clock) for clock in fitting if clock.moved)]
        if any(clock.moved for clock in fitting) and not any(_is_numbered(profile) for profile in profiles):
            said.append(NOT_NUMBERED)
        if len(self.islands) > 1:
            parts = "; ".join(_ranks([p.rank for p in island.profiles]) for island in self.islands)
            said.append(
                f"No collective joins these: {parts}. (One is found by its number, or by its place in a step of which "
                "all ranks have as many.) So their clocks cannot be compared, each is read alone, and nothing is said "
                "about who of one waits for another."
            )
        for island in self.islands:
            where = f"Among {_ranks([p.rank for p in island.profiles])}: " if len(self.islands) > 1 else ""
            said += [where + _straggler(island.straggler)] if island.straggler else []
        return said

    def figures(self, step: int | None = None) -> list[Figure]:
        """A timeline of each island: the steps if they are few, else the slowest, or the one with this number.

        Raises ValueError for a step that is not there.
        """
        return [_drawn(island, step) for island in self.islands]

    def as_json(self) -> dict[str, Any]:
        """Everything but the operations, as plain data; times in seconds."""
        return {
            "sentences": self.sentences(),
            "ranks": {str(profile.rank): profile.file for profile in self.profiles},
            "clocks": [clock._asdict() for clock in self.clocks],
            "accounts": [account._asdict() for account in self.accounts],
            "stragglers": [island.straggler._asdict() for island in self.islands if island.straggler],
        }

    def _repr_html_(self):
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())
        return said + table(self.rows(), HEAD).html + "".join(figure.html for figure in self.figures())

    def __repr__(self):
        rows = [HEAD, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
        return "\n".join([*self.sentences(), "", *lines])


def report(what: Iterable[str | Path | Operation]) -> Report:
    """Read traces, given as files and folders or as the operations of ``Ranks.trace``.

    Raises ValueError as ``read`` does, and for no operations.
    """
    what = list(what)
    operations = [each for each in what if isinstance(each, Operation)]
    if operations:
        profiles = of_operations(operations)
        begin = min(profile.span[0] for profile in profiles)
        profiles = [profile.on_clock(begin) for profile in profiles]
    else:
        profiles = read([each for each in what if not isinstance(each, Operation)])
    islands, clocks = align(profiles)
    return Report([_island(island) for island in islands], clocks)


def _island(profiles: list[Profile]) -> Island:
    of_all = accounts(profiles)
    return Island(profiles, of_all, straggler(profiles, of_all))


def _mean(steps: Sequence[Account]) -> Account:
    whole = total(steps)
    return Account(whole.rank, None, *(seconds / len(steps) for seconds in whole[2:]))


# ---- sentences


def _what_was_read(profiles: list[Profile]) -> str:
    steps = sorted({number for profile in profiles for number in profile.steps})
    if not steps:
        how = "no step has a name (profile.step() gives them one), so all of it counts as one"
    else:
        how = f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} steps, {steps[0]} to {steps[-1]}"
        how += ": milliseconds of the mean step"
    return f"Traces of {_ranks([profile.rank for profile in profiles])}, {how}."


def _missing(profiles: list[Profile]) -> list[str]:
    world_size = max((profile.world_size or 0 for profile in profiles), default=0)
    missing = sorted({*range(world_size)} - {profile.rank for profile in profiles})
    if not missing:
        return []
    return [f"Of {world_size} ranks, no trace of {_ranks(missing)}: what is waited for them counts as moving."]


def _without_communication(profiles: list[Profile]) -> list[str]:
    silent = [profile.rank for profile in profiles if not profile.communication]
    if not silent:
        return []
    return [f"No communication in the trace of {_ranks(silent)}: there, only computing and idle time can be told."]


def _unmet(islands: list[Island]) -> list[str]:
    said = []
    for island in islands:
        met = {id(op) for ops in meetings(island.profiles).values() for op in ops}
        for profile in island.profiles:
            alone = [op for op in profile.communication if id(op) not in met]
            if alone and len(island.profiles) > 1:
                kinds = ", ".join(sorted({op.kind for op in alone}))
                said.append(
                    f"{len(alone)} of rank {profile.rank}'s {len(profile.communication)} communications ({kinds}) have "
                    "no counterpart in another trace; they count as moving."
                )
    return said


def _is_numbered(profile: Profile) -> bool:
    """Whether a collective's name has a number that all ranks give it: of the step, or NCCL's own."""
    return any("Seq" in str(name) for name in profile.meetings) or bool(profile.steps)


def _one_clock(clocks: list[Clock]) -> list[str]:
    same = [clock for clock in clocks if not clock.moved]
    if not same:
        return []
    ranks = sorted({rank for clock in same for rank in (clock.reference, clock.rank)})
    return [f"One clock for {_ranks(ranks)}: {_how_close(same)}."]


def _not_the_same(clock: Clock) -> str:
    return (
        f"Ranks {clock.reference} and {clock.rank} seem to have {clock.common} collectives in common, but on no clock "
        "do these fit: one rank would leave before the other enters. Events are missing, or the profiles began in "
        "different steps; profile.step() gives steps their names."
    )


def _moved_clock(clock: Clock) -> str:
    which = "ahead of" if clock.offset >= 0 else "behind"
    size = f"{abs(clock.offset):.6f} s" if abs(clock.offset) >= 1 else f"{ms(abs(clock.offset))} ms"
    drifts = f" and drifts by {clock.drift * 1e6:+.1f} µs a second" if clock.drift else ""
    return (
        f"Rank {clock.rank}'s clock is {size} {which} rank {clock.reference}'s{drifts}. That is taken off; then "
        f"{_how_close([clock])}."
    )


def _how_close(clocks: list[Clock]) -> str:
    common, apart = min(clock.common for clock in clocks), max(clock.apart for clock in clocks)
    return f"nine of ten of the {common} collectives in common end within {ms(apart)} ms of each other"


def _straggler(found: Straggler) -> str:
    last = (
        f"It enters {found.last_in} of {found.out_of} collectives last, {ms(found.late)} ms after the others (median)"
    )
    cost = f"the others wait for it alone in {found.of_the_time:.1%} of the time"
    if not found.named:
        return f"Straggler: none. Rank {found.rank} comes nearest. {last}; {cost}."
    return (
        f"Straggler: rank {found.rank}. {last}; {cost}, which is {found.share:.0%} of all waiting for a last rank. "
        f"{found.why}."
    )


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if list(ranks) == list(range(ranks[0], ranks[-1] + 1)) and len(ranks) > 2:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


# ---- the figure


def _drawn(island: Island, step: int | None) -> Figure:
    begin, end = _window(island, step)
    bars = [_bars(profile, begin, end) for profile in island.profiles]
    striped = (
        "Stripes: computing with gaps too short to be drawn; the filled share is the share of the time it computes."
    )
    caption = striped if any(op.called == STRIPE for of_rank in bars for op in of_rank) else None
    return timeline([op for of_rank in bars for op in of_rank], begin=begin, span=end - begin, caption=caption)


def _window(island: Island, step: int | None) -> tuple[float, float]:
    windows: dict[int, list[tuple[float, float]]] = {}
    for profile in island.profiles:
        for number, window in profile.steps.items():
            windows.setdefault(number, []).append(window)
    if step is not None and step not in windows:
        there = ", ".join(map(str, sorted(windows))) or "none: nobody called profile.step()"
        raise ValueError(f"step is {step}; the traces have {there}")
    if step is None and len(windows) > DRAWN:
        step = max(windows, key=lambda number: max(end - begin for begin, end in windows[number]))
    some = windows[step] if step is not None else [profile.span for profile in island.profiles]
    return min(begin for begin, _ in some), max(end for _, end in some)


def _bars(profile: Profile, begin: float, end: float) -> list[Operation]:
    """Its operations in that time; computing of one kind with gaps too short to be seen as one bar, or as stripes."""
    inside = [op for op in profile.operations if op.start <= end and op.last >= begin]
    runs: list[list[Operation]] = []
    for op in (op for op in inside if op.stream == COMPUTE):
        until = max((each.last for each in runs[-1]), default=0.0) if runs else 0.0
        if runs and runs[-1][0].kind == op.kind and op.start - until <= (end - begin) / BARS:
            runs[-1].append(op)
        else:
            runs.append([op])
    bars = [bar for run in runs for bar in _bars_of_run(run, (end - begin) / STRIPES)]
    computing = both(profile.computing, [(begin, end)])
    return bars + [_with_its_wait(op, computing) for op in inside if op.stream != COMPUTE]


def _bars_of_run(run: list[Operation], width: float) -> list[Operation]:
    """One bar, or if the run has many short gaps a stripe in each ``width`` seconds, as long as was computed there."""
    busy = union((op.start, op.last) for op in run)
    start, end = busy[0][0], busy[-1][1]
    if length(busy) >= MOSTLY * (end - start):
        return [run[0]._replace(start=start, end=end)]
    places = [(start + n * width, min(start + (n + 1) * width, end)) for n in range(ceil((end - start) / width))]
    filled = ((place[0], length(both(busy, [place]))) for place in places)
    return [run[0]._replace(start=at, end=at + share, called=STRIPE) for at, share in filled if share]


def _with_its_wait(op: Operation, computing: Spans) -> Operation:
    """A profiler does not say from when on the rank waited: it is when it computed next to nothing to the end."""
    if op.wait is not None or op.end is None:
        return op
    beside = both(computing, [(op.start, op.end)])
    for time in (op.start, *(end for _, end in beside)):
        if length(both(beside, [(time, op.end)])) <= NEXT_TO_NOTHING * (op.end - time):
            return op._replace(wait=time)
    return op._replace(wait=op.end)
