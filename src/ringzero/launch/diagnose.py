"""Why a call is stuck, in one sentence: who waits where, and who is missing.

Works on plain data, after the fact: what each rank recorded (``records``), whether it had returned, and where its
Python stack was. Three observations carry it. Collectives of a group must be the same on all its ranks, one by one:
the first that is not is the fault. A message needs both ends: the k-th send from a to b meets b's k-th receive from a.
Where ranks wait for one another in circles, the fewest without whom no circle is left are those that differ.
"""

from dataclasses import dataclass
from functools import cached_property, partial

POINT_TO_POINT = ("send", "recv")
SAME_SIZE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")  # bytes must agree on all ranks
OFTEN_SAME_SIZE = ("gather", "all_to_all")  # where they do not and a rank crashed, that is why
RINGZERO = "ringzero collective"
UNKNOWN = object()
SHOWN = 8  # ranks of which a sentence says what they do


@dataclass(frozen=True)
class RankState:
    """One rank when the call ended. ``state`` is "running", "returned" or "gone"; ``operations`` are its records.

    ``where`` is the innermost of the caller's own lines on its stack, ``functions`` the names of torch's functions
    above it.
    """

    state: str
    operations: list
    where: str = "an unknown place"
    functions: tuple = ()

    @cached_property
    def stuck_in(self):
        """The operation this rank waits for now, or None."""
        if self.state != "running":
            return None
        waiting = [op for op in self.operations if op["wait"] is not None and op["end"] is None]
        return waiting[-1] if waiting else None

    @cached_property
    def calls(self):
        """The operations as the caller made them: one, with its ``parts``, for the many messages of a collective of
        ringzero's own.
        """
        calls, of_ringzero = [], {}
        for op in self.operations:
            if op["call"] is None:
                calls.append(op)
            elif op["call"] in of_ringzero:
                of_ringzero[op["call"]]["parts"].append(op)
            else:
                of_ringzero[op["call"]] = call = {**op, "kind": RINGZERO, "peer_rank": None, "parts": [op]}
                calls.append(call)
        return calls

    @cached_property
    def collectives(self):
        """``{(group, *its ranks): calls}``, the ranks too since groups that ranks made differently may share a name."""
        groups = {}
        for call in self.calls:
            if _is_collective(call):
                groups.setdefault((call["group"], *call["members"]), []).append(call)
        return groups

    @cached_property
    def stuck_call(self):
        """The call this rank waits in now, or None."""
        stuck_in = self.stuck_in
        calls = reversed(self.calls) if stuck_in is not None else ()
        return next((call for call in calls if any(op is stuck_in for op in call.get("parts", (call,)))), None)


def diagnose(ranks):
    """The sentence for ``ranks``, a list of RankState; None when nothing recorded explains it."""
    explanations = (
        _group_created_by_some,
        _out_of_step,
        disagreement,
        _lines_disagree,
        _never_waited,
        _waiting_for_one_another,
        _handle_dropped,
        _not_communicating,
    )
    return next(filter(None, (explain(ranks) for explain in explanations)), None)


def disagreement(ranks):
    """The sentence for ranks that called different things, which cannot end well; else None."""
    return _collectives_disagree(ranks) or _messages_disagree(ranks)


def difference(ranks):
    """The same for ranks of which one has failed for it: where they first differed, even if it did no harm there."""
    return _out_of_step(ranks) or disagreement(ranks)


def deadlocked(ranks):
    """Whether no running rank can ever get on: all wait, and by the records nobody is left to end any of the waits."""
    running = [r for r, rank in enumerate(ranks) if rank.state == "running"]
    if not running or any(ranks[r].stuck_in is None for r in running):
        return False
    hopeless = _never_waited(ranks) or disagreement(ranks)
    return hopeless is not None or not any(_may_end(ranks, r) for r in running)


def _may_end(ranks, r):
    """Whether the operation that rank ``r`` waits in has all it needs from other ranks, so that it may just be slow."""
    op = ranks[r].stuck_in
    if op["kind"] in POINT_TO_POINT:
        return op["peer_rank"] is None or _is_met(ranks, r)
    if op["kind"] == "header":  # both ends write one

        def headers(a, b):
            return [o for o in ranks[a].operations if o["kind"] == "header" and o["peer_rank"] == b]

        mine, theirs = headers(r, op["peer_rank"]), headers(op["peer_rank"], r)
        return len(theirs) > next(i for i, o in enumerate(mine) if o is op)
    for members, _, _, here in _rounds(ranks):
        if here.get(r) is op:
            return len(here) == len(members)
    return True


def _group_created_by_some(ranks):
    """Where new_group is not recorded, its stack shows who waits there, but not for whom."""
    inside = [r for r, rank in enumerate(ranks) if not rank.stuck_in and "new_group" in rank.functions]
    outside = [r for r in range(len(ranks)) if r not in inside]
    if inside and outside:
        return (
            f"{_names(inside)} {_verb(inside, 'waits', 'wait')} in new_group, {ranks[inside[0]].where}; "
            f"{_absent(ranks, outside)}. Every rank must call new_group, also those that the group leaves out."
        )
    return None


def _collectives(ranks):
    """``(members, {rank: its collectives})`` of each group."""
    for group, *members in dict.fromkeys(group for rank in ranks for group in rank.collectives):
        yield members, {r: ranks[r].collectives.get((group, *members), []) for r in members}


def _rounds(ranks, incomplete=False):
    """Each group's collectives side by side: ``(members, {rank: its collectives}, index, {rank: its index-th})``.

    With ``incomplete`` only those to which some member has not come.
    """
    for members, called in _collectives(ranks):
        counts = [len(calls) for calls in called.values()]
        for index in range(min(counts, default=0) if incomplete else 0, max(counts, default=0)):
            yield members, called, index, {r: calls[index] for r, calls in called.items() if index < len(calls)}


def _out_of_step(ranks):
    """A rank that left a collective out, or made one more, and whose next ones passed for those of the others.

    The lines tell: from the first that differs they are those of the others, moved by one.
    """
    for members, called in _collectives(ranks):
        lines = {r: [op["line"] for op in called[r]] for r in members}
        for r in members:
            others = sorted(set(members) - {r}, key=lambda o: len(lines[o]))
            mine, theirs = lines[r], lines[others[-1]] if others else []
            at = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
            if at is None or any(lines[o] != theirs[: len(lines[o])] for o in others):
                continue
            rest = _names(sorted(others))
            if _overlap(mine[at:], theirs[at + 1 :]):
                return (
                    f"rank {r} left out {_numbered(called[others[-1]], at)}; {rest} called it, {theirs[at]}; rank {r} "
                    f"called the next one in its place, {mine[at]}."
                )
            if _overlap(mine[at + 1 :], theirs[at:]):
                return (
                    f"rank {r} called {_numbered(called[r], at)}, {mine[at]}, once more than {rest}; {rest} called the "
                    f"next one in its place, {theirs[at]}."
                )
    return None


def _overlap(a, b):
    """Whether two lists are the same as far as both go, which is not nothing."""
    return bool(a and b) and all(x == y for x, y in zip(a, b, strict=False))


def _collectives_disagree(ranks):
    """The first place where ranks of a group did not call the same collective in the same way."""
    crashed = any(rank.state == "gone" for rank in ranks)
    different = (_different(here, called, index, crashed) for _, called, index, here in _rounds(ranks))
    return min(filter(None, different), default=(0, None))[1]


def _different(here, called, index, crashed):
    """``(time, sentence)`` where the ranks that made their ``index``-th collective did not make the same one."""
    if len({(op["kind"], op["peer_rank"], op["bytes"], op["dtype"], id(op.get("parts"))) for op in here.values()}) == 1:
        return None  # the same in all respects, as nearly always
    for name, of in (("kind", _kind), ("root", _root), ("size", lambda op: _size(op, crashed))):
        values = _by_value(here, of)
        if len(values) > 1:
            text = _apart(values, here, partial(_described, called, index, name), index)
            return min(op["start"] for op in here.values()), text
    return None


def _lines_disagree(ranks):
    """All have called a collective of ringzero's and do not get out: which one each called, only its line tells."""
    stuck = [rank.stuck_call for rank in ranks if rank.stuck_call and rank.stuck_call["kind"] == RINGZERO]
    for members, called, index, here in _rounds(ranks) if stuck else ():
        values = _by_value(here, lambda op: op["line"])
        if len(here) == len(members) and len(values) > 1 and any(op is call for op in here.values() for call in stuck):
            return _apart(values, here, partial(_described, called, index, "line"), index)
    return None


def _by_value(here, of):
    """The ranks in groups that agree on ``of(operation)``, the largest group last."""
    values = {}
    for r, op in here.items():
        if (value := of(op)) is not UNKNOWN:
            values.setdefault(value, []).append(r)
    return sorted(values.values(), key=len)


def _apart(values, here, describe, index):
    """What each group of ranks called, and who differs from most."""
    *few, most = values
    said = [
        f"{_names(group)} called {describe(group[0])}, {_lines(here[r] for r in group)}"
        for group in sorted(values, key=lambda group: (-len(group), group))
    ]
    apart = _stands_apart(sorted(r for group in few for r in group)) if len(few[-1]) < len(most) else ""
    return f"{apart}the ranks disagree on collective #{index + 1}: {'; '.join(said)}."


def _messages(operations):
    """Sends and receives by channel: ``{(src, dst, group, tag): (sends, receives)}`` in the order they were posted.

    ``operations`` are those of each rank.
    """
    channels = {}
    for r, posted in enumerate(operations):
        for op in posted:
            if op["kind"] in POINT_TO_POINT and op["peer_rank"] is not None:
                ends = (r, op["peer_rank"]) if op["kind"] == "send" else (op["peer_rank"], r)
                pair = channels.setdefault((*ends, op["group"], op["tag"]), ([], []))
                pair[op["kind"] == "recv"].append(op)
    return channels


def _messages_disagree(ranks):
    """A message larger than the room for it, which gloo does not survive. It lets a smaller one pass."""
    for (src, dst, *_), (sends, receives) in _messages(rank.operations for rank in ranks).items():
        for sent, received in zip(sends, receives, strict=False):
            if sent["bytes"] > received["bytes"]:
                return (
                    f"rank {src} sent {sent['bytes']} bytes to rank {dst}, {sent['line']}; rank {dst} made room for "
                    f"{received['bytes']}, {received['line']}."
                )
    return None


def _unwaited(ranks):
    """Messages that have both ends, of which one was never waited for: ``(rank, end, other rank, its end)``."""
    for (src, dst, *_), (sends, receives) in _messages(rank.calls for rank in ranks).items():
        for sent, received in zip(sends, receives, strict=False):
            if sent["wait"] is None and received["wait"] is not None:
                yield src, sent, dst, received
            if received["wait"] is None and sent["wait"] is not None:
                yield dst, received, src, sent


def _never_waited(ranks):
    """A rank waits for a message whose other end was posted by one that returned without waiting for it."""
    for r, op, other, answer in _unwaited(ranks):
        if ranks[r].state == "returned" and ranks[other].stuck_in is answer:
            return (
                f"rank {r} posted a {op['kind']}, {op['line']}, and returned without waiting for it, which cancels it; "
                f"rank {other} {_doing(answer)}, {answer['line']}."
            )
    return None


def _handle_dropped(ranks):
    """The same for a rank that went on: its handle may still be there, so this comes after all other explanations."""
    for r, op, other, answer in sorted(_unwaited(ranks), key=lambda ends: ends[1]["start"])[:1]:
        return (
            f"rank {r} posted a {op['kind']}, {op['line']}, and never waited for it: dropping its handle cancels it; "
            f"rank {other} posted the other end, {answer['line']}."
        )
    return None


def _waits_for(ranks):
    """``{rank: the ranks it waits for and that have not come}``. One that has returned waits for all to return."""
    unfinished = {r for r, rank in enumerate(ranks) if rank.state != "returned"}
    waits = {r: set() if r in unfinished else unfinished for r in range(len(ranks))}
    for r, rank in enumerate(ranks):
        op = rank.stuck_in
        if op is not None and op["kind"] in POINT_TO_POINT and not _is_met(ranks, r):
            waits[r] = set(op["members"]) - {r} if op["peer_rank"] is None else {op["peer_rank"]}
    for members, _, _, here in _rounds(ranks, incomplete=True):
        for r, op in here.items():
            if ranks[r].stuck_call is op:
                waits[r] = set(members) - here.keys()
    return waits


def _left_out(ranks, r):
    """How many ranks say that ``r`` left a collective out: they got through it before they came to where ``r`` is now.

    Some get through a collective for which others wait, such as all but a few in a broadcast.
    """
    rounds = [(members, here) for members, _, _, here in _rounds(ranks, incomplete=True)]
    now = next((here for _, here in rounds if here.get(r) is ranks[r].stuck_call), {})
    returned = ranks[r].state == "returned"
    return sum(
        returned or (other in now and op["start"] < now[other]["start"])
        for members, here in rounds
        for other, op in here.items()
        if r in members and r not in here and ranks[other].stuck_call is not op
    )


def _needed_by(ranks, waited_by):
    """``waited_by``, and the ranks that have posted messages without another end, for which they may wait later."""
    needed_by = {r: set(others) for r, others in waited_by.items()}
    for (src, dst, *_), (sends, receives) in _messages(rank.calls for rank in ranks).items():
        if len(sends) > len(receives):
            needed_by[dst].add(src)
        elif len(receives) > len(sends):
            needed_by[src].add(dst)
    return needed_by


def _waiting_for_one_another(ranks):
    """Who keeps the others waiting: a rank that waits for nobody, or else the fewest without whom no circle is left.

    Where these may be one or another, it is who left out what others did, and then whom most others need.
    """
    waits = _waits_for(ranks)
    waited_by = {r: {w for w in waits if r in waits[w]} for r in waits}
    if idle := [r for r, rank in enumerate(ranks) if waited_by[r] and rank.state != "returned" and not rank.stuck_in]:
        return _never_came(ranks, waits, idle)
    parties = {}
    for r in waits:
        parties.setdefault((frozenset(waits[r]), frozenset(waited_by[r])), []).append(r)
    breaking = [party for party in parties.values() if not _in_circles(waits, without=party)]
    if not breaking or not _in_circles(waits):
        return None
    fewest = [party for party in breaking if len(party) == min(map(len, breaking))]
    left_out, needed_by = {r: _left_out(ranks, r) for r, *_ in fewest}, _needed_by(ranks, waited_by)
    culprits = max(fewest, key=lambda p: (left_out[p[0]], len(needed_by[p[0]]), ranks[p[0]].state == "returned"))
    sure = len(fewest) == 1 or left_out[culprits[0]] > 0
    if all(ranks[w].state == "returned" for r in culprits for w in waited_by[r]):
        return _waits_alone(ranks, waits, culprits, sure)
    if sure or ranks[culprits[0]].state == "returned":
        return _never_came(ranks, waits, culprits)
    return _cycle(ranks, waits, culprits[0])


def _in_circles(waits, without=()):
    """What is left of ``waits`` when, again and again, those who wait for nobody are taken out."""
    waits = {r: others for r, others in waits.items() if r not in without}
    while free := [r for r, others in waits.items() if not others & waits.keys()]:
        for r in free:
            del waits[r]
    return waits


def _never_came(ranks, waits, culprits):
    """What the culprits did not come to, and where they are instead."""
    waiting = [r for r in waits if waits[r] and waits[r] <= set(culprits) and ranks[r].stuck_in is not None]
    waiting = waiting or [r for r in waits if waits[r] & set(culprits) and ranks[r].stuck_in is not None]
    if not waiting:
        return None
    first = min(waiting, key=lambda r: ranks[r].stuck_call["start"])
    call = ranks[first].stuck_call
    if call["kind"] in POINT_TO_POINT:
        ends = [r for r in waiting if ranks[r].stuck_call["kind"] in POINT_TO_POINT]
        return f"{_not_exchanged(ranks, first)}; {_absent(ranks, [*ends, *culprits])}."
    for members, called, index, here in _rounds(ranks, incomplete=True):
        if here.get(first) is call:
            there = [r for r in here if ranks[r].stuck_call is here[r]]
            missing = [r for r in members if r not in here]
            return (
                f"{_names(missing)} never entered {_numbered(called[first], index)}; {_names(there)} "
                f"{_verb(there, 'waits', 'wait')} there, {_lines(here[r] for r in there)}; {_absent(ranks, missing)}."
            )
    return None


def _waits_alone(ranks, waits, culprits, sure):
    """All others have returned, so nobody can come any more."""
    call = ranks[culprits[0]].stuck_call
    if call["kind"] in POINT_TO_POINT:
        others = _absent(ranks, sorted(waits[culprits[0]]))
        return f"rank {culprits[0]} {_doing(call)}, {call['line']}, but {_not_exchanged(ranks, culprits[0])}; {others}."
    sentence = _never_came(ranks, waits, sorted(waits[culprits[0]]))
    return sentence and (_stands_apart(culprits) if sure else "") + sentence


def _cycle(ranks, waits, start):
    """Ranks that wait for one another in a circle, beginning with ``start``: the shortest."""
    via, reached = {}, [start]
    for r in reached:
        for other in sorted(waits[r] - via.keys()):
            via[other] = r
            reached.append(other)
    if start not in via:
        return None
    cycle = [via[start]]
    while cycle[0] != start:
        cycle.insert(0, via[cycle[0]])
    kinds = {ranks[r].stuck_call["kind"] for r in cycle if ranks[r].stuck_call}
    others = [
        r for r in waits if waits[r] == {start} and r not in cycle and ranks[r].stuck_call["kind"] in POINT_TO_POINT
    ]
    advice = " Let every other rank receive first, or use isend." if kinds == {"send"} else ""
    return f"a cycle: {_absent(ranks, [*cycle, *others], waits)}.{advice}"


def _not_communicating(ranks):
    """Nobody waits for a message that will not come, yet somebody is not done."""
    busy = [r for r, rank in enumerate(ranks) if rank.state == "running" and rank.stuck_in is None]
    if busy:
        return f"{_names(busy)} {_verb(busy, 'is', 'are')} in no communication and not done: {_absent(ranks, busy)}."
    return None


def _is_met(ranks, r):
    """Whether the other end of the message rank ``r`` waits for has been posted."""
    op = ranks[r].stuck_in
    for sends, receives in _messages(rank.operations for rank in ranks).values():
        mine, theirs = (sends, receives) if op["kind"] == "send" else (receives, sends)
        for number, each in enumerate(mine):
            if each is op:
                return len(theirs) > number
    return False


def _is_collective(op):
    return op["kind"] not in POINT_TO_POINT


def _kind(op):
    return op["kind"]


def _root(op):
    return op["peer_rank"]


def _size(op, crashed):
    if op["kind"] == RINGZERO:  # the tag of its data stands for its size and type
        return next(((part["tag"], part["dtype"]) for part in op["parts"] if part["kind"] != "header"), UNKNOWN)
    compared = op["kind"] in SAME_SIZE or (crashed and op["kind"] in OFTEN_SAME_SIZE)
    return (op["bytes"], op["dtype"]) if compared else None


def _numbered(operations, index):
    """ "all_reduce #3": the third all_reduce of the group."""
    kind = operations[index]["kind"]
    return f"{kind} #{sum(1 for op in operations[: index + 1] if op['kind'] == kind)}"


def _described(called, index, what, r):
    op = called[r][index]
    text = _numbered(called[r], index)
    if what == "root":
        return f"{text} with root {op['peer_rank']}"
    if what == "size" and op["kind"] == RINGZERO:
        return f"{text}, {op['called']}"
    if what == "size":
        return f"{text} on {op['bytes']} bytes of {op['dtype']}"
    return text


def _doing(op):
    if op["kind"] not in POINT_TO_POINT:
        return f"waits in {op['kind']}"
    if op["peer_rank"] is None:
        return "waits to receive from any rank"
    return f"waits to {'send to' if op['kind'] == 'send' else 'receive from'} rank {op['peer_rank']}"


def _not_exchanged(ranks, r):
    """How many of the messages that rank ``r`` waits for its peer sent or received."""
    op = ranks[r].stuck_call
    other, did = ("send", "sent") if op["kind"] == "recv" else ("recv", "received from")
    peers = range(len(ranks)) if op["peer_rank"] is None else [op["peer_rank"]]
    count = sum(1 for peer in peers for o in ranks[peer].calls if (o["kind"], o["peer_rank"]) == (other, r))
    so_far = f"only {_count(count, 'message')}" if count else "nothing"
    return f"{_names(peers) if len(peers) == 1 else 'all ranks'} {did} rank {r} {so_far}"


def _absent(ranks, which, waits=None):
    """What ranks that did not come are doing instead; with ``waits``, also for whom they wait."""
    parts = []
    for r in which[:SHOWN]:
        rank, call = ranks[r], ranks[r].stuck_call
        if rank.state in ("returned", "gone"):
            parts.append(f"rank {r} had {'returned' if rank.state == 'returned' else 'ended'}{last_call(rank)}")
        elif call is None:
            parts.append(f"rank {r} is at {rank.where}")
        else:
            whom = f" for {_names(sorted(waits[r]))}" if waits and waits[r] and _is_collective(call) else ""
            parts.append(f"rank {r} {_doing(call)}{whom}, {call['line']}")
    return "; ".join(parts) + (" …" if len(which) > SHOWN else "")


def last_call(rank):
    """What the rank did last, as the end of a clause."""
    return f", last in {rank.calls[-1]['kind']}, {rank.calls[-1]['line']}" if rank.calls else ""


def _lines(operations):
    return " and ".join(dict.fromkeys(op["line"] for op in operations))


def _stands_apart(ranks):
    return f"{_names(ranks)} {_verb(ranks, 'stands', 'stand')} apart: "


def _names(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _verb(ranks, one, many):
    return one if len(ranks) == 1 else many


def _count(number, what):
    return f"{number} {what}" + "s" * (number != 1)
