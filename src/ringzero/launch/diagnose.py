"""Why a call is stuck, in one sentence: who waits where, and who is missing.

Works on plain data, after the fact: what each rank recorded (``trace``), whether it had returned, and where its Python
stack was. Two observations carry it. Collectives of a group must be the same on all its ranks, one by one: the first
that is not is the fault. A message needs both ends: the k-th send from a to b meets b's k-th receive from a.
"""

from dataclasses import dataclass, field

POINT_TO_POINT = ("send", "recv")
SAME_SIZE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")  # bytes must agree on all ranks


@dataclass(frozen=True)
class RankState:
    """One rank when the call ended. ``state`` is "running", "returned" or "gone"; ``operations`` are its records.

    ``where`` is the innermost of the caller's own lines on its stack, ``functions`` the names of torch's functions
    above it. ``groups`` maps a group's name to its ranks.
    """

    state: str
    operations: list
    where: str = "an unknown place"
    functions: tuple = ()
    groups: dict = field(default_factory=dict)

    @property
    def stuck_in(self):
        """The operation this rank waits for now, or None."""
        if self.state != "running":
            return None
        waiting = [op for op in self.operations if op["wait"] is not None and op["end"] is None]
        return waiting[-1] if waiting else None


def diagnose(ranks):
    """The sentence for ``ranks``, a list of RankState; None when nothing recorded explains it."""
    explanations = (
        _group_created_by_some,
        disagreement,
        _collective_not_entered,
        _message_cycle,
        _message_alone,
        _never_waited,
        _not_communicating,
    )
    return next(filter(None, (explain(ranks) for explain in explanations)), None)


def disagreement(ranks):
    """The sentence for ranks that called different things, whether or not that left any of them stuck; else None."""
    ranks = [ranks[r] for r in sorted(ranks)] if isinstance(ranks, dict) else ranks
    return _collectives_disagree(ranks) or _messages_disagree(ranks)


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
    inside = [r for r, rank in enumerate(ranks) if rank.state == "running" and "new_group" in rank.functions]
    outside = [r for r in range(len(ranks)) if r not in inside]
    if inside and outside:
        return (
            f"{_names(inside)} {_verb(inside, 'waits', 'wait')} in new_group, {ranks[inside[0]].where}; "
            f"{_absent(ranks, outside)}. Every rank must call new_group, also those the group leaves out."
        )
    return None


def _rounds(ranks):
    """Each group's collectives side by side: ``(members, {rank: its collectives}, index, {rank: its index-th})``."""
    groups = {}
    for rank in ranks:
        groups.update(rank.groups)
    for group, members in groups.items():
        called = {r: [op for op in ranks[r].operations if op["group"] == group and _is_collective(op)] for r in members}
        for index in range(max(map(len, called.values()), default=0)):
            yield members, called, index, {r: ops[index] for r, ops in called.items() if index < len(ops)}


def _collectives_disagree(ranks):
    """The first place where ranks of a group did not call the same collective in the same way."""
    different = (_different(here, called, index) for _, called, index, here in _rounds(ranks))
    return next(filter(None, different), None)


def _collective_not_entered(ranks):
    """The first collective that some rank of its group never came to while others wait in it."""
    for members, called, index, here in _rounds(ranks):
        missing = [r for r in members if r not in here]
        waiting = [r for r in here if ranks[r].stuck_in is here[r]]
        if missing and waiting:
            return (
                f"{_names(missing)} never entered {_numbered(called[waiting[0]], index)}; {_names(waiting)} "
                f"{_verb(waiting, 'waits', 'wait')} there, {_lines(here[r] for r in waiting)}; "
                f"{_absent(ranks, missing)}."
            )
    return None


def _messages(ranks):
    """Sends and receives by channel: ``{(src, dst, tag): (sends, receives)}`` in the order they were posted."""
    channels = {}
    for r, rank in enumerate(ranks):
        for op in rank.operations:
            if op["kind"] in POINT_TO_POINT and op["peer_rank"] is not None:
                ends = (r, op["peer_rank"]) if op["kind"] == "send" else (op["peer_rank"], r)
                pair = channels.setdefault((*ends, op["group"], op["tag"]), ([], []))
                pair[op["kind"] == "recv"].append(op)
    return channels


def _messages_disagree(ranks):
    for (src, dst, *_), (sends, receives) in _messages(ranks).items():
        for sent, received in zip(sends, receives, strict=False):
            if sent["bytes"] != received["bytes"]:
                return (
                    f"rank {src} sent {sent['bytes']} bytes to rank {dst}, {sent['line']}, which made room for "
                    f"{received['bytes']}, {received['line']}."
                )
    return None


def _never_waited(ranks):
    """A receive whose message was posted by a rank that has returned without waiting for it."""
    for (src, dst, *_), (sends, receives) in _messages(ranks).items():
        for sent, received in zip(sends, receives, strict=False):
            if ranks[dst].stuck_in is received and ranks[src].state == "returned" and sent["wait"] is None:
                return (
                    f"rank {dst} waits to receive from rank {src}, {received['line']}; rank {src} posted that send, "
                    f"{sent['line']}, but returned without waiting for it: a send whose handle is dropped is cancelled."
                )
    return None


def _different(here, called, index):
    """Whether the ranks that made their ``index``-th collective made the same one."""
    for name, of in (("kind", _kind), ("root", _root), ("size", _size)):
        values = {}
        for r, op in here.items():
            values.setdefault(of(op), []).append(r)
        if len(values) > 1:
            said = [
                f"{_names(group)} called {_described(called[group[0]], index, name)}, {here[group[0]]['line']}"
                for group in values.values()
            ]
            return f"the ranks disagree on collective #{index + 1}: {'; '.join(said)}."
    return None


def _message_cycle(ranks):
    """Ranks that wait for one another in a circle, each in a send or a receive."""
    waits_for = {
        r: rank.stuck_in["peer_rank"]
        for r, rank in enumerate(ranks)
        if rank.stuck_in is not None and rank.stuck_in["kind"] in POINT_TO_POINT and not _is_met(ranks, r)
    }
    for start in waits_for:
        path = [start]
        while waits_for.get(path[-1]) is not None and waits_for[path[-1]] not in path:
            path.append(waits_for[path[-1]])
        if waits_for.get(path[-1]) == start and len(path) > 1:
            steps = [f"rank {r} {_doing(ranks[r].stuck_in)}, {ranks[r].stuck_in['line']}" for r in path]
            advice = (
                "Let every other rank receive first, or use isend."
                if all(ranks[r].stuck_in["kind"] == "send" for r in path)
                else "Each waits for the next."
            )
            return f"a cycle: {'; '.join(steps)}. {advice}"
    return None


def _message_alone(ranks):
    """A send or a receive whose other end never came."""
    for r, rank in enumerate(ranks):
        op = rank.stuck_in
        if op is None or op["kind"] not in POINT_TO_POINT or op["peer_rank"] is None or _is_met(ranks, r):
            continue
        peer = op["peer_rank"]
        other, did = ("send", "sent") if op["kind"] == "recv" else ("recv", "received from")
        count = sum(1 for o in ranks[peer].operations if o["kind"] == other and o["peer_rank"] == r)
        so_far = f"only {_count(count, 'message')}" if count else "nothing"
        return (
            f"rank {r} {_doing(op)}, {op['line']}, but rank {peer} {did} rank {r} {so_far}; {_absent(ranks, [peer])}."
        )
    return None


def _not_communicating(ranks):
    """Nobody waits for a message that will not come, yet somebody is not done."""
    busy = [r for r, rank in enumerate(ranks) if rank.state == "running" and rank.stuck_in is None]
    if busy:
        return f"{_names(busy)} {_verb(busy, 'is', 'are')} in no communication and not done: {_absent(ranks, busy)}."
    return None


def _is_met(ranks, r):
    """Whether the other end of the message rank ``r`` waits for has been posted."""
    op = ranks[r].stuck_in
    for sends, receives in _messages(ranks).values():
        mine, theirs = (sends, receives) if op["kind"] == "send" else (receives, sends)
        for number, each in enumerate(mine):
            if each is op:
                return len(theirs) > number
    return False


def _is_collective(op):
    return op["kind"] not in POINT_TO_POINT and op["kind"] != "header"


def _kind(op):
    return op["kind"]


def _root(op):
    return op["peer_rank"]


def _size(op):
    return (op["bytes"], op["dtype"]) if op["kind"] in SAME_SIZE else None


def _numbered(operations, index):
    """ "all_reduce #3": the third all_reduce of the group."""
    kind = operations[index]["kind"]
    return f"{kind} #{sum(1 for op in operations[: index + 1] if op['kind'] == kind)}"


def _described(operations, index, what):
    op = operations[index]
    text = _numbered(operations, index)
    if what == "root":
        return f"{text} with root {op['peer_rank']}"
    if what == "size":
        return f"{text} on {op['bytes']} bytes of {op['dtype']}"
    return text


def _doing(op):
    if op["peer_rank"] is None:
        return "waits to receive from any rank"
    return f"waits to {'send to' if op['kind'] == 'send' else 'receive from'} rank {op['peer_rank']}"


def _absent(ranks, which):
    """What the ranks that did not come are doing instead."""
    parts = []
    for r in which[:4]:
        rank = ranks[r]
        if rank.state == "returned":
            parts.append(f"rank {r} had returned")
        elif rank.state == "gone":
            parts.append(f"rank {r} had ended")
        elif rank.stuck_in is not None:
            op = rank.stuck_in
            doing = _doing(op) if op["kind"] in POINT_TO_POINT else f"waits in {op['kind']}"
            parts.append(f"rank {r} {doing}, {op['line']}")
        else:
            parts.append(f"rank {r} is at {rank.where}")
    return "; ".join(parts) + (" …" if len(which) > 4 else "")


def _lines(operations):
    return " and ".join(dict.fromkeys(op["line"] for op in operations))


def _names(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _verb(ranks, one, many):
    return one if len(ranks) == 1 else many


def _count(number, what):
    return f"{number} {what}" + "s" * (number != 1)
