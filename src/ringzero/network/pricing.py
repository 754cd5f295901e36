"""The price of a schedule on a topology: alpha, beta and gamma, with links that messages share.

    price(ring_all_reduce(16), 64e6, torus((4, 4), alpha=1e-6, bandwidth=50e9)).seconds

Rounds follow each other. A round takes the alphas along its slowest route, plus the time that its busiest link needs
for all the bytes that cross it, plus the time that the busiest rank needs to reduce what it receives. Switches cut
through: they pass a message on while it arrives, so its alphas add up and its bytes cross all its links at once.

Each of the three is a straight line over the size of the buffer, and so is the price. All chunks count as equal in
size. In this model no rank begins a round before all ranks have ended the round before; ``critical_path`` is the time
where each rank waits only for what it needs.
"""

from dataclasses import dataclass, replace

import numpy as np

from ringzero.collectives.schedule import Schedule, is_number
from ringzero.network.topology import NO_LINK, Topology, switch

SAME = 1e-12  # relative: times that differ by no more differ by rounding


@dataclass(frozen=True)
class Step:
    """``times`` equal rounds in a row. One takes ``latency + (transfer + reduction) * size`` seconds."""

    times: int
    latency: float  # s: the alphas along the slowest route
    transfer: float  # s a byte of the buffer, on the busiest link
    reduction: float  # s a byte of the buffer, on the rank that reduces most
    busiest: int  # that link, or NO_LINK
    share: float  # of the buffer that crosses it

    def seconds(self, size: float) -> float:
        """Seconds of all ``times`` rounds for a buffer of ``size`` bytes."""
        return self.times * (self.latency + (self.transfer + self.reduction) * size)


@dataclass(frozen=True)
class Price:
    """What ``algorithm`` costs for a buffer of ``size`` bytes, step by step and in all."""

    algorithm: str
    size: float
    topology: Topology
    steps: tuple[Step, ...]

    @property
    def seconds(self) -> float:
        """Seconds of all steps together, for ``size`` bytes."""
        return sum((step.seconds(self.size) for step in self.steps), 0.0)

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """Seconds of latency, and for each byte of the buffer seconds of transfer and of reduction."""
        return tuple(
            sum(s.times * getattr(s, part) for s in self.steps) for part in ("latency", "transfer", "reduction")
        )

    def at(self, size: float) -> "Price":
        """The same for a buffer of ``size`` bytes. Nothing is counted again."""
        return replace(self, size=size)

    def table(self) -> list[dict[str, object]]:
        """A row for each step: ``rounds``, their ``seconds``, the ``busiest`` link and its ``bytes`` a round."""
        return [
            {
                "rounds": step.times,
                "seconds": step.seconds(self.size),
                "busiest": "none" if step.busiest == NO_LINK else self.topology.label(step.busiest),
                "bytes": step.share * self.size,
            }
            for step in self.steps
        ]


def price(schedule: Schedule, size: float, topology: Topology) -> Price:
    """The ``Price`` of ``schedule`` for a buffer of ``size`` bytes on ``topology``.

    Raises ValueError when the two have different numbers of ranks, and for a size that is no number of bytes.
    """
    check_size(size)
    steps = []
    for traffic, crossed, latency, transfer, reduction in _rounds(schedule, topology):
        worst = np.unravel_index(transfer.argmax(), transfer.shape)
        busiest = int(crossed[worst])
        share = transfer[worst] * topology.bandwidth[busiest] if busiest != NO_LINK else 0.0
        slowest, most = float(latency.max()), float(reduction.max() * topology.gamma)
        steps.append(Step(traffic.times, slowest, float(transfer[worst]), most, busiest, float(share)))
    return Price(schedule.name, size, topology, tuple(steps))


def coefficients(schedule: Schedule) -> tuple[float, float, float]:
    """Messages that follow each other, and how often they send and reduce the buffer: what ``page.alpha_beta`` takes.

    It is the price where every rank has one link in and one out, and alpha, bandwidth and gamma are 1.

    >>> from ringzero.collectives.ring import ring_all_reduce
    >>> coefficients(ring_all_reduce(8))
    (14.0, 1.75, 0.875)
    """
    return price(schedule, 0, switch(schedule.world_size, 1, 1, 1)).coefficients


def critical_path(schedule: Schedule, size: float, topology: Topology) -> float:
    """Seconds until the last rank is done when each does its rounds in order, without waiting for the other ranks.

    A rank sends its next message when the bytes of its last message have left and what it must send has arrived. The
    bytes of a message arrive after those of the message before. Never more than ``price(...).seconds``, and optimistic:
    messages of different rounds count as if they never shared a link between the ranks. Errors as for ``price``.
    """
    check_size(size)
    clock = np.zeros(topology.world_size)
    for traffic, _, latency, transfer, reduction in _rounds(schedule, topology):
        leave, src, dst = transfer.max(axis=0) * size, traffic.src, traffic.dst
        done = leave + reduction * topology.gamma * size
        if _is_permutation(src, topology) and _is_permutation(dst, topology):  # as in a ring: one expression for all
            by_src, by_dst = np.argsort(src), np.argsort(dst)
            columns = leave[by_src], src[by_dst], latency[by_dst], done[by_dst]
            clock = _after_rounds(clock, traffic.times, *columns)
            continue
        for _ in range(traffic.times):
            start, ready, clock = clock[src], clock[dst], clock.copy()
            np.maximum.at(clock, src, start + leave)
            np.maximum.at(clock, dst, np.maximum(start + latency, ready) + done)
    return float(clock.max())


def _after_rounds(clock, left, leave, src, latency, done):
    """The ranks' clocks after ``left`` equal rounds, in which rank r hears from rank ``src[r]``.

    Once all clocks are by one time later than ``count`` rounds before, every ``count`` rounds make them later by that
    time, so those rounds need not be followed (Brent's way to find a cycle).
    """
    earlier, count, most = clock, 0, 1
    while left:
        clock = np.maximum(clock + leave, np.maximum(clock[src] + latency, clock) + done)
        left, count = left - 1, count + 1
        later = clock - earlier
        if np.ptp(later) <= SAME * later.max():
            clock, left = clock + left // count * later, left % count
        if count == most:
            earlier, count, most = clock, 0, 2 * most
    return clock


def check_size(size: float) -> None:
    """Raise ValueError unless ``size`` is a number of bytes."""
    if not is_number(size) or not 0 <= size < np.inf:
        raise ValueError(f"size is {size!r}; give a number of bytes, 0 or more")


def _is_permutation(ranks, topology):
    return len(ranks) == len(np.unique(ranks)) == topology.world_size


def _rounds(schedule, topology):
    """Yield, for each ``Traffic`` of the schedule, its messages with the links they cross and what they cost.

    ``(traffic, links crossed, alphas in all, seconds a byte of the buffer on each link crossed, share of the buffer
    that its receiver reduces)``; shapes ``(hops, messages)`` and ``(messages,)``.
    """
    if schedule.world_size != topology.world_size:
        raise ValueError(
            f"{schedule.name} is for {schedule.world_size} ranks and {topology.name} {topology.shape} has "
            f"{topology.world_size}; make both for the same number"
        )
    # One more entry than there are links, for NO_LINK (-1), which costs nothing.
    alpha, beta = np.append(topology.alpha, 0.0), np.append(1 / topology.bandwidth, 0.0)
    load, reduced = np.zeros(len(alpha)), np.zeros(topology.world_size)
    for traffic in schedule.traffic():
        if len(traffic.src) == 0:
            continue  # a round in which nobody sends takes no time
        crossed = topology.links_crossed(traffic.src, traffic.dst)
        # Flat, because np.add.at reads past the end of values that it has to broadcast (NumPy 2.4).
        np.add.at(load, crossed.ravel(), np.broadcast_to(traffic.share, crossed.shape).ravel())
        np.add.at(reduced, traffic.dst, traffic.reduced)
        yield traffic, crossed, alpha[crossed].sum(axis=0), load[crossed] * beta[crossed], reduced[traffic.dst]
        load[crossed], reduced[traffic.dst] = 0.0, 0.0
