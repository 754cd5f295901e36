"""Where the time of each rank went: computing, moving bytes, waiting for a rank that has not come.

A collective has two parts on a rank: until the last rank enters it, the rank waits for that rank; from then on bytes
move. Both can be hidden by computing, or exposed.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from ringzero.profiles.profile import Profile
from ringzero.record.operation import Operation
from ringzero.record.spans import Spans, both, length, union, without


class Account(NamedTuple):
    """Seconds of one rank. ``seconds`` = ``computing`` + ``exposed`` + ``idle``.

    ``moving``    in a collective or message that all its ranks have entered; ``waited``, in one that some rank has not,
                  and in none that moves. Together they are all its communication, which is also
    ``exposed``   communication while it does not compute, and ``hidden``, communication while it does
    ``idle``      neither: on a GPU, nothing to do; on a CPU, Python and whatever torch does not see
    ``step``      the number of the ``ProfilerStep#``, or None for all of the trace
    """

    rank: int
    step: int | None
    seconds: float
    computing: float
    moving: float
    waited: float
    exposed: float
    hidden: float
    idle: float


Meetings = dict[Hashable, list[Operation]]


def meetings(profiles: Iterable[Profile]) -> Meetings:
    """Collectives and messages of which at least two ranks' parts are known, each in order of entering."""
    parts: Meetings = {}
    for profile in profiles:
        for name, op in profile.meetings.items():
            parts.setdefault(name, []).append(op)
    return {name: sorted(ops, key=lambda op: op.start) for name, ops in parts.items() if len(ops) > 1}


def accounts(profiles: list[Profile]) -> list[Account]:
    """An ``Account`` for each rank and step; of a rank without steps, one. The profiles are on one clock."""
    met = meetings(profiles)
    return [account for profile in profiles for account in _of_rank(profile, met)]


def _of_rank(profile: Profile, met: Meetings) -> list[Account]:
    entered = {name: ops[-1].start for name, ops in met.items()}
    all_in = {id(op): entered[name] for name, op in profile.meetings.items() if name in entered}
    communication = profile.communication
    communicating = union((op.start, op.last) for op in communication)
    moving = union((max(op.start, all_in.get(id(op), op.start)), op.last) for op in communication)
    steps: list[tuple[int | None, tuple[float, float]]] = [*profile.steps.items()] or [(None, profile.span)]
    return [_account(profile, number, window, communicating, moving) for number, window in steps]


def _account(
    profile: Profile, number: int | None, window: tuple[float, float], communicating: Spans, moving: Spans
) -> Account:
    inside = [window]
    seconds, computing = length(inside), both(profile.computing, inside)
    communicating, moving = both(communicating, inside), both(moving, inside)
    if profile.waiting is None:
        exposed = without(communicating, computing)
    else:
        exposed = both(communicating, both(profile.waiting, inside))
        computing = without(computing, exposed)
    busy = union([*computing, *exposed])
    return Account(
        profile.rank, number, seconds, length(computing), length(moving), length(without(communicating, moving)),
        length(exposed), length(communicating) - length(exposed), seconds - length(busy),
    )  # fmt: skip


def total(some: Iterable[Account]) -> Account:
    """All of one rank's steps together. Raises ValueError for accounts of several ranks."""
    some = list(some)
    ranks = sorted({account.rank for account in some})
    if len(ranks) != 1:
        raise ValueError(f"the accounts are of ranks {ranks}; add up those of one rank")
    return Account(ranks[0], None, *(sum(column) for column in list(zip(*some, strict=True))[2:]))
