"""What a check can claim about a run: each function here takes a ``Run`` and returns None, or why it does not hold.

Values are compared exactly: inputs are whole numbers whose sums have one exact result. Traffic is what the ranks' own
records say (``ringzero.launch.trace``), so a right answer reached by other messages is told from the right one.
"""

import torch


def equal(what, got, expected):
    """Why ``got[r]`` is not the tensor ``expected[r]`` on some rank r, or None. ``what`` names it in the sentence."""
    for rank, (mine, right) in enumerate(zip(got, expected, strict=True)):
        where = f"on rank {rank} {what}"
        if not isinstance(mine, torch.Tensor):
            return f"{where} is {mine!r}, not a tensor"
        if tuple(mine.shape) != tuple(right.shape):
            return f"{where} has shape {tuple(mine.shape)}, expected {tuple(right.shape)}"
        wrong = (mine.to(right.dtype) != right).nonzero().flatten().tolist()
        if wrong:
            i = wrong[0]
            got_there, right_there = mine[i].item(), right[i].item()
            return (
                f"{where} is wrong in {_count(wrong, right.numel())}: [{i}] is {got_there:g}, expected {right_there:g}"
            )
    return None


def _count(wrong, numel):
    first, last = wrong[0], wrong[-1]
    if len(wrong) == numel:
        return "every element"
    if len(wrong) == 1:
        return f"element {first} of {numel}"
    return f"{len(wrong)} of {numel} elements, from {first} to {last}"


def number(what, got, expected, tolerance=1e-9):
    """Why the number ``got`` is not ``expected`` within the relative ``tolerance``, or None."""
    if isinstance(got, torch.Tensor) and got.numel() == 1:
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        return f"{what} is {got!r}, not a number"
    if not abs(got - expected) <= tolerance * abs(expected):
        hint = f" ({got / expected:.3g} times it)" if expected else ""
        return f"{what} is {got:.6g}, expected {expected:.6g}{hint}"
    return None


def left_everything_else_alone(run):
    """The function wrote nothing outside its tensor."""
    for rank, kept in enumerate(run.guards_kept):
        if not kept:
            return f"rank {rank} wrote past the end of its tensor"
    return None


def neighbours_only(run):
    """Every message goes one step along the ring."""
    n = run.world_size
    for rank, op in run.sends():
        if (op["peer"] - rank) % n not in (1, n - 1):
            return f"rank {rank} sent {op['bytes']} bytes to rank {op['peer']}, which is not its neighbour"
    return None


def sends_as_little_as(make_schedule):
    """A claim: each rank sends as in ``make_schedule(N)``, give or take two elements if N does not divide."""

    def claim(run):
        schedule = make_schedule(run.world_size)
        expected = schedule.bytes_sent(run.numel, run.element_size).tolist()
        slack = 2 * run.element_size if run.numel % schedule.chunks else 0  # the other way round differs by that
        for rank, (sent, right) in enumerate(zip(run.bytes_sent(), expected, strict=True)):
            if abs(sent - right) > slack:
                size = run.numel * run.element_size
                return (
                    f"rank {rank} sent {sent} bytes of a buffer of {size}, expected {right}: "
                    f"{sent / size:.3g} times the buffer and not {right / size:.3g}"
                )
        return None

    return claim


def cannot_deadlock(run):
    """The order of sends and receives works when a send waits for its receive, and one operation for the one before.

    That is what NCCL may do with messages too large for its buffers; gloo forgives more. The operations of one
    ``batch_isend_irecv`` start together.
    """
    for rank, ops in enumerate(run.operations):
        if any(op["kind"] == "recv" and op["peer"] is None for op in ops):
            return f"rank {rank} receives from whoever comes first, which NCCL cannot do; name the rank with src="
    stuck = _rendezvous([_program(ops) for ops in run.operations])
    if not stuck:
        return None
    waits = "; ".join(f"rank {rank} to {_verb(kind)} rank {peer}" for rank, kind, peer in stuck)
    return (
        f"if a send waits until its receive has started, no rank gets further: {waits}. "
        "Start the send and the receive of a round together, with dist.batch_isend_irecv"
    )


def _verb(kind):
    return "send to" if kind == "send" else "receive from"


def _program(operations):
    """One rank's operations as a list of steps; the ``(kind, peer)`` of one step start together."""
    steps, batch = [], None
    for op in operations:
        if op["kind"] not in ("send", "recv"):
            continue
        if op["batch"] is None or op["batch"] != batch:
            steps.append([])
        steps[-1].append((op["kind"], op["peer"]))
        batch = op["batch"]
    return steps


def _rendezvous(programs):
    """Play the programs with unbuffered messages; the first pending operation of each rank that is stuck, or []."""
    programs = [[list(step) for step in program] for program in programs]
    moved = True
    while moved:
        moved = False
        for rank, program in enumerate(programs):
            for operation in list(program[0]) if program else []:
                kind, peer = operation
                if kind != "send" or not programs[peer] or ("recv", rank) not in programs[peer][0]:
                    continue
                program[0].remove(operation)
                programs[peer][0].remove(("recv", rank))
                moved = True
        for program in programs:
            while program and not program[0]:
                program.pop(0)
    return [(rank, *program[0][0]) for rank, program in enumerate(programs) if program]


def forwards_while_receiving(pieces):
    """A claim: a rank that passes ``pieces`` pieces on sends piece k before it has received piece k + 2."""

    def claim(run):
        for rank, ops in enumerate(run.operations):
            received = [op for op in ops if op["kind"] == "recv"]
            sent = [op for op in ops if op["kind"] == "send"]
            for some, did in ((received, "received"), (sent, "sent")):
                if some and len(some) != pieces:
                    return f"rank {rank} {did} {len(some)} message{'s' * (len(some) != 1)}, expected {pieces} pieces"
            if not received:
                continue  # the root: it has every piece from the start
            for k, op in enumerate(sent):
                if k + 2 < pieces and not _before(op, received[k + 2]):
                    return (
                        f"rank {rank} had received {k + 3} of {pieces} pieces before it passed on piece {k + 1}: "
                        "the next rank waits for no reason"
                    )
        return None

    return claim


def _before(send, received):
    """Whether the send started before the receive was complete."""
    if received["end"] is None:
        return send["sequence"] < received["sequence"]
    return send["start"] < received["end"]


def traffic_is(schedule):
    """A claim: from each rank to each other go exactly the bytes that ``schedule`` sends there."""

    def claim(run):
        counted = [[0] * run.world_size for _ in range(run.world_size)]
        for rank, op in run.sends():
            counted[rank][op["peer"]] += op["bytes"]
        expected = schedule.link_bytes(run.numel, run.element_size).tolist()
        for src, dst in ((s, d) for s in range(run.world_size) for d in range(run.world_size)):
            if counted[src][dst] != expected[src][dst]:
                return f"rank {src} sent {counted[src][dst]} bytes to rank {dst}, expected {expected[src][dst]}"
        return None

    return claim
