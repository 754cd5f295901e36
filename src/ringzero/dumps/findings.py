"""What dumps say: one sentence about the cause, the next thing to look at, a table, and a timeline."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ringzero.drawing import Figure, table, timeline
from ringzero.dumps.entries import Issued
from ringzero.dumps.job import Job, read
from ringzero.explain import diagnose
from ringzero.explain.behind import BehindOthers
from ringzero.explain.diagnose import Cause
from ringzero.explain.disagreements import Disagreement, LeftOut, OnceMore, TooLarge, disagreement
from ringzero.explain.partial import AllThere, NoRecord, Passed, Unseen, all_there, passed
from ringzero.explain.waits import Alone, Cycle, MessageMissing, NeverEntered
from ringzero.explain.words import names, verb, with_peer
from ringzero.record.operation import Operation

HEAD = ("ranks", "group", "waits in", "collective_seq_id", "state", "line")
DRAWN = 8  # ranks in a figure
BEFORE = 6  # operations of a rank that are drawn before the one it waits in
ALL_ENDED = "Every operation in these dumps has ended, and the ranks of each group called the same."
NO_MESSAGES = (
    "gloo's recorder keeps no sends and receives: a rank may wait in one of those, and its dump does not show it."
)
NOTHING = (
    "No dump holds an operation. Was the recorder on? TORCH_FR_BUFFER_SIZE=2000, before torch 2.9 "
    "TORCH_NCCL_TRACE_BUFFER_SIZE=2000."
)
ONE_ORDER = "Make all ranks of a group call the same collectives in one order, whatever they decide for themselves"


@dataclass(frozen=True, repr=False)
class Report:
    """What ``explain`` found. ``cause`` is None where nothing is wrong. It shows itself in a notebook."""

    job: Job
    cause: Cause | None

    @property
    def sentence(self) -> str:
        """The cause, in words; or that there is none."""
        if self.cause is not None:
            return self.cause.sentence(self.job.states)
        if not any(self.job.calls.values()):
            return NOTHING
        return _open(self.job) or ALL_ENDED

    @property
    def is_wrong(self) -> bool:
        """Whether there is a cause, or an operation that has not ended."""
        return self.cause is not None or bool(_open(self.job))

    @property
    def ranks(self) -> list[int]:
        """Those to look at first."""
        return _to_blame(self.cause)

    @property
    def next(self) -> str:
        """What to look at next; empty where nothing is wrong."""
        return _advice(self.cause, self.job)

    def notes(self) -> list[str]:
        """What the dumps lack."""
        job = self.job
        by_reason: dict[str, list[int]] = {}
        for rank, why in job.missing.items():
            by_reason.setdefault(why, []).append(rank)
        said = [f"No dump of {names(ranks)}: {why}." for why, ranks in by_reason.items()]
        if job.cut:
            said.append(
                "The recorder kept the last operations only, so groups are compared from the first collective that all "
                "their ranks still have."
            )
        if "gloo" in job.backends:
            said.append(NO_MESSAGES)
        return said

    def rows(self) -> list[tuple[str, ...]]:
        """A row under ``HEAD`` for the ranks that stand at one place, those to look at first."""
        places: dict[tuple[str, ...], list[int]] = {}
        for rank, calls in self.job.calls.items():
            places.setdefault(_place(self.job, rank, calls), []).append(rank)
        first = sorted(places.items(), key=lambda each: (not set(each[1]) & set(self.ranks), each[1]))
        return [(names(ranks).partition(" ")[2], *place) for place, ranks in first]

    def figure(self) -> Figure:
        """A timeline of the last operations: of the ranks to look at, and of some others.

        Raises ValueError if the dumps hold no operation.
        """
        with_calls = [rank for rank, calls in self.job.calls.items() if calls]
        others = [rank for rank in with_calls if rank not in self.ranks]
        some = sorted([*[rank for rank in with_calls if rank in self.ranks][: DRAWN // 2], *others][:DRAWN])
        drawn = [op for rank in some for op in _last([call.operation for call in self.job.calls[rank]])]
        left = f" ({len(with_calls) - len(some)} other ranks are left out)" if len(with_calls) > len(some) else ""
        caption = f"The last operations{left}, from the call to its end as the recorder saw it; dashed: never ended."
        return timeline(drawn, key=False, caption=caption)

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "cause": None if self.cause is None else type(self.cause).__name__,
            "sentence": self.sentence,
            "ranks": self.ranks,
            "next": self.next,
            "notes": self.notes(),
            "where": [dict(zip(HEAD, row, strict=True)) for row in self.rows()],
            "missing": {str(rank): why for rank, why in self.job.missing.items()},
            "files": {str(rank): str(file) for rank, file in self.job.files.items()},
        }

    def _repr_html_(self):
        said = "".join(
            f"<p>{escape(sentence)}</p>" for sentence in (self.sentence, self.next, *self.notes()) if sentence
        )
        figure = self.figure().html if any(self.job.calls.values()) else ""
        return said + table(self.rows(), HEAD).html + figure

    def __repr__(self):
        rows = [HEAD, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*filter(None, [self.sentence, self.next]), *self.notes(), "", *lines])


def explain(paths: Iterable[str | Path], world_size: int | None = None) -> Report:
    """Why a job hung, from the dumps of its ranks: files, or the folder that holds them.

    ``world_size`` is how many ranks the job had; by default what the dumps and the names of the files say.
    Raises ValueError for paths without a dump that can be read.
    """
    job = read(paths, world_size)
    return Report(job, _cause(job))


def _cause(job: Job) -> Cause | None:
    states, without_dump = job.states, NoRecord([*job.missing]) if job.missing else None
    if not any(op.end is None for state in states for op in state.operations):
        return disagreement(states) or without_dump or passed(states)
    groups = {id(group): group for known in job.groups.values() for group in known.values()}.values()
    unseen = {(group.name, *group.members): Unseen(group.without_dump, group.perhaps) for group in groups}
    there = all_there(states, unseen)
    found = diagnose.cause(states, diagnose.OF_OTHERS)
    if isinstance(found, NeverEntered):
        idle = [rank for rank in found.missing if states[rank].stuck_in is None]
        call = found.entered.call
        gone = unseen.get((call.group, *call.members), Unseen()).without_record
        # Where a rank ends, gloo ends what others wait in: these are not to blame.
        if gone and idle == found.missing and job.backends == ["gloo"]:
            return AllThere(found.there, found.entered, found.lines, Unseen(gone))
        if len(found.there) < len(found.missing) == len(idle):  # the few that wait called once more than all others
            found = found._replace(apart=found.there)
        elif 0 < len(idle) < len(found.missing):  # the others may wait for these
            return found._replace(apart=idle)
    if there is not None and any(there.unseen) and _they_wait_for_the_unseen(there, found):
        return there
    return found or without_dump or there


def _they_wait_for_the_unseen(there: AllThere, found: Cause | None) -> bool:
    """Whether those who came to nothing else may be waiting for ranks of which nothing is known; else one is known."""
    if isinstance(found, NeverEntered):
        waiting, missing = set(there.waiting), set(found.missing)
        return waiting <= missing or (missing <= waiting and bool(there.unseen.without_record))
    return found is None or isinstance(found, Cycle)


def _to_blame(cause: Cause | None) -> list[int]:
    match cause:
        case NeverEntered():
            return cause.apart or cause.missing
        case Passed() | NoRecord():
            return cause.missing
        case LeftOut() | OnceMore():
            return [cause.rank]
        case Disagreement():
            return cause.apart or sorted(rank for party in cause.parties for rank in party.ranks)
        case AllThere():
            return list(cause.unseen.without_record or cause.unseen.members or cause.waiting)
        case MessageMissing():
            return cause.apart or cause.absent
        case TooLarge():
            return [cause.sent.rank, cause.received.rank]
        case Cycle():
            return cause.cycle
        case Alone():
            return [cause.missing.rank]
        case BehindOthers():
            return sorted({op.rank for op, *_ in cause.waits} | {end.rank for _, end, _ in cause.waits})
    return []


def _advice(cause: Cause | None, job: Job) -> str:
    """The next thing to look at."""
    ranks = _to_blame(cause)
    if isinstance(cause, NeverEntered) and cause.apart == cause.there:
        return f"Next: why {names(ranks)} went on where the others ended: has it more batches, or another branch?"
    if isinstance(cause, NeverEntered | Passed):
        return (
            f"Next: what {names(ranks)} did {_after(job, ranks[0])}: a branch, a loop that ends earlier, an error, or "
            "a wait outside of collectives. Its log and `py-spy dump` show it."
        )
    if isinstance(cause, Disagreement) and cause.about in ("size", "root"):
        return f"Next: what made the tensors of these ranks differ in {cause.about}, at the lines named."
    if isinstance(cause, Disagreement | LeftOut | OnceMore):
        return f"Next: what made the ranks differ before these lines. {ONE_ORDER}."
    if isinstance(cause, NoRecord) or (isinstance(cause, AllThere) and cause.unseen.without_record):
        return f"Next: the log of {names(ranks)} and its host: did {verb(ranks, 'it', 'they')} end, or could not write?"
    if isinstance(cause, AllThere) and cause.unseen.members:
        return (
            f"Next: who belongs to this group, and where {names(ranks)} {verb(ranks, 'is', 'are')}, by `py-spy dump`."
        )
    if isinstance(cause, AllThere):
        return "Next: the root at these lines, then the backend's own log (NCCL_DEBUG=INFO) and the hosts' network."
    stuck = [job.states[rank].stuck_call for rank in ranks]
    if isinstance(cause, Cycle) and not any(call is not None and call.is_message for call in stuck):
        return f"Next: in which order these ranks call the collectives of their groups. {ONE_ORDER}."
    return (
        "" if cause is None else "Next: the other ends of these messages, in the order in which both ranks post them."
    )


def _after(job, rank):
    """Between which of its operations a rank left the others: after the last that ended."""
    operations = [call.operation for call in job.calls.get(rank, ())]
    ended = [op for op in operations if op.end is not None]
    after = f"after its {ended[-1].kind}, {ended[-1].line}" if ended else "after it began"
    waits = job.states[rank].stuck_in
    return after if waits is None else f"{after}, and before its {waits.kind}, {waits.line}"


def _open(job):
    """Who waits, where that has no explanation; empty if nobody does."""
    stuck = [state.stuck_call for state in job.states if state.stuck_call is not None]
    if not stuck:
        return ""
    said = "; ".join(f"rank {call.rank} waits in {with_peer(call)}, {call.line}" for call in stuck[:DRAWN])
    return f"Some operations have not ended, and the dumps do not show why: {said}."


def _place(job: Job, rank: int, calls: list[Issued]) -> tuple[str, ...]:
    """Where a rank stands, in the columns of ``HEAD`` after the first."""
    waits_in: Operation | None = job.states[rank].stuck_in
    for call in calls:
        if call.operation is waits_in:
            group = job.groups[rank][call.operation.group]
            name = f"{group.name} ({group.description})" if group.description not in ("", "undefined") else group.name
            place = "" if call.operation.is_message else str(call.place)
            return (name, with_peer(call.operation), place, call.state, call.operation.line)
    if not calls:
        return ("", "nothing recorded", "", "", "")
    last = calls[-1].operation
    return ("", f"nothing, after {with_peer(last)}", str(calls[-1].place), "ended", last.line)


def _last(operations: list[Operation]) -> list[Operation]:
    """The operations that have not ended, and some before them; each ends where the rank's next one began, at least."""
    begin = next((i for i, op in enumerate(operations) if op.end is None), len(operations))
    some = operations[max(begin - BEFORE, 0) : begin + BEFORE]
    after = [op.start for op in some[1:]] + [some[-1].start]
    return [
        op._replace(end=following) if op.end is not None and op.end <= op.start else op
        for op, following in zip(some, after, strict=True)
    ]
