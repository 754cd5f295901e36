"""One clock for all ranks, from the collectives they were in together.

Nobody leaves an all-reduce before everybody has entered it, and all leave it at about the same time. So the difference
between two ranks' ends of the same collective is how far one clock is ahead of the other, give or take what they left
apart. The median over many of them is the offset; how it grows from the first to the last is the drift. Entering and
leaving also bound the offset from both sides. No message is sent for it, unlike Cristian's method, and nothing but the
traces is needed.
"""

import math
import statistics
from collections.abc import Hashable
from itertools import combinations
from typing import NamedTuple

from ringzero.profiles.profile import SYNCHRONISING, Profile
from ringzero.record.operation import Operation

ENOUGH = 8  # collectives from which on a drift can be told from ranks that leave a little apart
SURE = 5  # standard errors
MOST = 120  # collectives a drift is taken from: all pairs of them are compared

SLACK = 1e-3  # seconds by which a rank may seem to leave before another enters: drift, and how exactly events are timed
ON_ONE_MACHINE = 0.01  # seconds by which torch's profiler may date the events of two processes differently

Pair = tuple[Operation, Operation]


class Clock(NamedTuple):
    """How far ``rank``'s clock was ahead of that of ``reference``, in seconds, when it said ``at``.

    ``drift``   seconds by which that grows in a second; 0.0 if it is too small to be told
    ``apart``   how far apart the two ranks left a collective, once on one clock: nine of ten left closer together
    ``common``  collectives in which both were; ``moved``, whether the rank's times were put on the reference's clock
    ``fits``    whether some offset lets everybody enter before anybody leaves; else the collectives are not the same
                ones, because events are missing or the profiles began in different steps
    """

    rank: int
    reference: int
    offset: float
    drift: float
    at: float
    apart: float
    common: int
    moved: bool
    fits: bool


def align(profiles: list[Profile]) -> tuple[list[list[Profile]], list[Clock]]:
    """Profiles on one clock, in islands that no collective joins, and what was found about each rank but the first.

    Ranks of one machine, and those of one record of this package, have one clock: their times are left as they are.
    """
    islands: list[list[Profile]] = []
    clocks: list[Clock] = []
    left = list(profiles)
    while left:
        island = [left.pop(0)]
        candidates = list(left)
        nearest = {profile.rank: (0, island[0]) for profile in candidates}  # in how many both were, and with whom
        joined = island[0]
        while candidates:
            for profile in candidates:
                nearest[profile.rank] = max(nearest[profile.rank], (_shared(joined, profile), joined), key=_first)
            profile = max(candidates, key=lambda profile: nearest[profile.rank][0])
            pairs = _common(nearest[profile.rank][1], profile)
            if not pairs:
                break
            clock = _compare(nearest[profile.rank][1], profile, pairs)
            clocks.append(clock)
            candidates.remove(profile)
            if clock.fits:
                left.remove(profile)
                joined = profile.on_clock(clock.offset, clock.drift, clock.at) if clock.moved else profile
                island.append(joined)
        islands.append(sorted(island, key=lambda profile: profile.rank))
    return islands, sorted(clocks)


def _first(pair):
    return pair[0]


def _shared(one: Profile, other: Profile) -> int:
    """How many collectives and messages both were in."""
    return len(one.meetings.keys() & other.meetings.keys())


def _common(one: Profile, other: Profile) -> list[Pair]:
    """Their parts in the collectives that nobody leaves before all have entered, in order of the first one's ends."""
    names: set[Hashable] = one.meetings.keys() & other.meetings.keys()
    pairs = ((one.meetings[name], other.meetings[name]) for name in names)
    return sorted(
        (pair for pair in pairs if pair[0].kind in SYNCHRONISING and None not in (pair[0].end, pair[1].end)),
        key=lambda pair: pair[0].last,
    )


def _compare(reference: Profile, profile: Profile, pairs: list[Pair]) -> Clock:
    at = pairs[0][1].last  # drifts count from here: a small error of one is a large one where clocks are hours apart
    ahead = [(theirs.last - at, theirs.last - ours.last) for ours, theirs in pairs]
    drift = _drift(ahead)
    offset = statistics.median(difference - drift * time for time, difference in ahead)
    # Entered before the other left, on one clock: bounds of the offset that hold whatever the ranks did.
    least = max(theirs.start - drift * (theirs.start - at) - ours.last for ours, theirs in pairs)
    most = min(theirs.last - drift * (theirs.last - at) - ours.start for ours, theirs in pairs)
    fits = least <= most + SLACK
    offset = min(max(offset, min(least, most)), max(least, most))
    rest = sorted(abs(difference - drift * time - offset) for time, difference in ahead)
    apart = rest[int(0.9 * (len(rest) - 1))]
    one_machine = None not in (reference.host, profile.host) and reference.host == profile.host
    if reference.file == profile.file or one_machine or (not drift and abs(offset) <= apart):
        if max(least, -most) <= SLACK:  # one clock, as it should be, or as far as can be told
            offset, drift = 0.0, 0.0
            apart = sorted(abs(difference) for _, difference in ahead)[int(0.9 * (len(ahead) - 1))]
        elif one_machine:  # how torch's profiler converts times, or the collectives are not the same ones
            fits = fits and abs(offset) <= ON_ONE_MACHINE
    return Clock(profile.rank, reference.rank, offset, drift, at, apart, len(pairs), offset != 0.0, fits)


def _drift(ahead: list[tuple[float, float]]) -> float:
    """The median slope between any two (Theil-Sen), or 0.0 where chance may have made it."""
    if len(ahead) < ENOUGH or ahead[-1][0] <= ahead[0][0]:
        return 0.0
    some = ahead[:: -(-len(ahead) // MOST)]
    drift = statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(some, 2) if b[0] > a[0])
    middle = statistics.median(difference - drift * time for time, difference in ahead)
    deviation = 1.48 * statistics.median(abs(difference - drift * time - middle) for time, difference in ahead)
    error = deviation * math.sqrt(12 / len(some)) / (ahead[-1][0] - ahead[0][0])  # of a slope through even times
    return drift if abs(drift) > SURE * error else 0.0
