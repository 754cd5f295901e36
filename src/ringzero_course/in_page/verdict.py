"""Whether N ranks have computed an all-reduce, and if not, why: in words, with the lines of the reader's code."""

from ringzero.costs.page.alpha_beta import all_reduce_lower_bound
from ringzero_course.in_page.contributions import finished, listed, number, ranks, what_is_wrong
from ringzero_course.in_page.requests import RECV, SEND, at
from ringzero_course.in_page.running import Arrival, Run

MIB = 64  # of a buffer, for an example in bytes


class Verdict:
    """``kind`` is "right", "wrong", "deadlock", "endless" or "error"; ``lines`` are those that the sentence names."""

    def __init__(self, kind: str, sentence: str, lines: list):
        self.kind, self.sentence, self.lines = kind, sentence, sorted({line for line in lines if line})


def judge(run: Run) -> Verdict:
    if run.error:
        return Verdict(run.error.kind, run.error.sentence, run.error.lines)
    if not all(run.ended):
        return _deadlock(run)
    wrong = wrong_chunks(run)
    if wrong:
        return _wrong(run, wrong)
    return Verdict(
        "right",
        f"Right: each of the {run.n} ranks holds all {run.n} chunks, and in each of them the contribution of each rank "
        "exactly once.",
        [],
    )


def wrong_chunks(run: Run) -> list:
    """``(rank, chunk)`` of all that do not hold each rank's contribution exactly once."""
    return [(r, c) for r in range(run.n) for c in range(run.n) if run.held[r][c] != finished(run.n, c)]


def traffic(run: Run) -> str:
    """What the busiest rank sent, beside what any all-reduce must send."""
    n, most, bound = run.n, max(run.chunks_sent), all_reduce_lower_bound(run.n)
    who = "Each rank" if min(run.chunks_sent) == most else f"The busiest rank, {run.chunks_sent.index(most)},"
    example = f"{number(MIB * most / n)} MiB if S is {MIB} MiB"
    sent = f"{who} sent {most} chunks of S/{n}, that is {number(most / n)} S: {example}."
    least, times = f"2(N−1)/N · S = {number(bound)} S", most / n / bound
    if times < 1 + 1e-9:
        return f"{sent} No all-reduce can send less than {least}."
    return f"{sent} The least that an all-reduce can do with is {least}; this is {number(times)} times as much."


# ---- a wrong sum


def _wrong(run, wrong):
    rank, chunk = wrong[0]
    said = f"Wrong: chunk {chunk} of rank {rank} {what_is_wrong(run.held[rank][chunk], run.n, chunk)}."
    also = f" {len(wrong)} of {run.n**2} chunks are wrong." if len(wrong) > 1 else ""
    first = first_trouble(run)
    if first:
        return Verdict("wrong", f"{said}{also} {_in_words(first)}", [first.send_line, first.line])
    done = [c for c in range(run.n) if any(run.held[r][c] == finished(run.n, c) for r in range(run.n))]
    if len(done) == run.n:
        hint = " Each chunk is finished on some rank, but not all ranks have received it."
    elif done:
        hint = ""
    else:
        hint = " No chunk is finished on any rank."
    return Verdict("wrong", said + also + hint, [])


def first_trouble(run: Run) -> Arrival | None:
    """The first arrival with which something may have gone wrong, or None."""
    troubled = [arrival for arrival in run.arrivals if arrival.trouble]
    return min(troubled, key=lambda arrival: (arrival.round, arrival.dst, arrival.chunk)) if troubled else None


def _in_words(first):
    begin = f"Look first at round {first.round} (× in the figure): rank {first.dst}"
    where = at(first.line)
    if first.trouble == "moved":
        sent = f"chunk {first.sent} of rank {first.src}{at(first.send_line)}"
        return f"{begin} receives {sent} as its own chunk {first.chunk}{where}."
    of, s = ranks(first.whose), "s" * (len(first.whose) > 1)
    if first.trouble == "twice":
        return (
            f"{begin} adds chunk {first.chunk} of rank {first.src} to its own{where}, and both already hold the "
            f"contribution{s} of {of}."
        )
    return (
        f"{begin} replaces its chunk {first.chunk} by that of rank {first.src}{where}, which lacks the "
        f"contribution{s} of {of}. Is `add=True` missing, or was that sum not finished?"
    )


# ---- a deadlock


def _deadlock(run):
    """Some rank waits for one that has ended, or else some wait for one another in a circle."""
    for requests in run.waiting:
        for request in requests:
            if run.ended[request.peer]:
                return _waits_for_the_ended(run, request)
    return _cycle(run)


def _waits_for_the_ended(run, request):
    met = run.messages.get(request.ends, 0)
    only = f"only {met} message{'s' * (met > 1)}" if met else "nothing"
    exchanged = "received" if request.kind == SEND else "sent"
    whom = f"{'from' if request.kind == SEND else 'to'} rank {request.rank}"
    others = [rank for rank in range(run.n) if run.waiting[rank] and rank != request.rank]
    also = f" R{ranks(others)[1:]} wait{'s' * (len(others) == 1)} too." if others else ""
    return Verdict(
        "deadlock",
        f"Deadlock: rank {request.rank} {_waits([request])}, but rank {request.peer} has ended: it {exchanged} {only} "
        f"{whom}.{also}",
        [request.line],
    )


def _cycle(run):
    cycle = shortest_cycle([sorted({request.peer for request in requests}) for requests in run.waiting])
    said, lines = [], []
    for place, rank in enumerate(cycle):
        next_rank = cycle[(place + 1) % len(cycle)]
        requests = [request for request in run.waiting[rank] if request.peer == next_rank]
        said.append(f"rank {rank} {_waits(requests)}")
        lines += [request.line for request in requests]
    kinds = {request.kind for rank in cycle for request in run.waiting[rank]}
    if kinds == {SEND}:
        why = "Nobody receives. Let every other rank receive first, or yield send and recv together."
    elif kinds == {RECV}:
        why = "Nobody sends."
    else:
        why = _missed(run, cycle[0], cycle[1])
    return Verdict("deadlock", f"Deadlock: {'; '.join(said)}: a cycle. {why}", lines)


def shortest_cycle(waits: list) -> list:
    """A circle of ranks that wait for one another, where ``waits[rank]`` lists those that a rank waits for.

    >>> shortest_cycle([[1], [2, 3], [1], [0]])
    [1, 2]
    """
    shortest: list = []
    for start in range(len(waits)):
        via, reached = {}, [start]  # via: by which rank each was reached
        for rank in reached:
            for other in waits[rank]:
                if other not in via:
                    via[other] = rank
                    reached.append(other)
        if start in via:
            cycle = [via[start]]
            while cycle[0] != start:
                cycle.insert(0, via[cycle[0]])
            shortest = cycle if not shortest or len(cycle) < len(shortest) else shortest
    return shortest


def _missed(run, rank, other):
    """What ``other`` does instead of what ``rank`` waits for."""
    request = next(request for request in run.waiting[rank] if request.peer == other)
    same = [end for end in run.waiting[other] if end.kind != request.kind]
    instead = listed([_does(end) for end in same or run.waiting[other]])
    return f"Rank {rank} {_does(request)}, but rank {other} {instead}."


def _does(request):
    return f"{'sends to' if request.kind == SEND else 'receives from'} rank {request.peer}"


def _waits(requests):
    """A line that two requests share is said once, after the last of them."""
    ends = []
    for place, request in enumerate(requests):
        same_line = place + 1 < len(requests) and requests[place + 1].line == request.line
        ends.append(f"to {request.action}{'' if same_line else at(request.line)}")
    return f"waits {listed(ends)}"
