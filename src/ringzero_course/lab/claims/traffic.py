"""Claims about what the ranks of a run sent: to whom, how much, in how many rounds, in what order.

Each takes a ``Run`` and returns None, or why it does not hold; some are made by a function here. What was sent is read
from the ranks' records (``ringzero.record``), so a right result that was reached by other messages is noticed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

from ringzero.collectives import ALGORITHMS
from ringzero_course.lab.claims.collectives import all_of
from ringzero_course.lab.runs import Claim, Run

Traffic = list[tuple[str, Claim]]  # what must hold of the messages, each with its words


def log2_rounded_up(n: int) -> int:
    """The rounds in which one rank reaches ``n`` if in each every rank that was reached reaches another."""
    return (n - 1).bit_length()


def operations_are(expected: Callable, among: Callable = lambda run, rank: run.operations[rank]) -> Claim:
    """A claim: each rank makes the operations ``expected(run)``, ``(kind, bytes)`` each, in any order, and no more.

    Only those that are ``among(run, rank)`` count. A single rank may leave them out: nobody is there to talk to.
    """

    def claim(run):
        if run.world_size == 1:
            return None
        right = Counter(expected(run))
        for rank in range(run.world_size):
            made = Counter((op.kind, op.bytes) for op in among(run, rank))
            for kind, size in sorted(made | right):
                if made[kind, size] != right[kind, size]:
                    on = f" on {size} bytes" if size else ""
                    times = f"{made[kind, size]} time{'s' * (made[kind, size] != 1)}"
                    return f"rank {rank} called {kind}{on} {times}, expected {right[kind, size]}"
        return None

    return claim


def neighbours_only(run: Run) -> str | None:
    """Every message goes one step along the ring."""
    n = run.world_size
    for op in run.sends():
        if op.peer_rank is not None and (op.peer_rank - op.rank) % n not in (1, n - 1):
            return f"rank {op.rank} sent {op.bytes} bytes to rank {op.peer_rank}, which is not its neighbour"
    return None


def sends_at_most(due: Callable[[Run], Sequence[float]]) -> Claim:
    """A claim: rank r sends no more than ``due(run)[r]`` bytes."""

    def claim(run):
        for rank, (sent, enough) in enumerate(zip(run.bytes_sent(), due(run), strict=True)):
            if sent > enough:
                why = f"rank {rank} sent {sent:,} bytes, where {enough:,.0f} would do"
                size = run.numel and run.numel * run.element_size
                return f"{why}: {sent / size:.3g} times the buffer and not {enough / size:.3g}" if size else why
        return None

    return claim


def sends_as_little_as(collective: str, algorithm: str) -> Claim:
    """A claim: no rank sends more bytes than in that algorithm, but for an element a message if N does not divide."""

    def due(run):
        schedule = ALGORITHMS[collective][algorithm](run.world_size)
        # The other way round differs by two elements; chunks may all be as long as the longest.
        slack = 2 * run.world_size * run.element_size if run.numel % schedule.chunks else 0
        return schedule.bytes_sent(run.numel, run.element_size) + slack

    return sends_at_most(due)


def cannot_deadlock(run: Run) -> str | None:
    """The order of sends and receives works even if each send waits until its receive has started.

    NCCL does that with messages too large for its buffers; gloo forgives more. Each operation waits for the one before
    it, and the operations of one ``batch_isend_irecv`` start together.
    """
    stuck = _rendezvous([_program(ops) for ops in run.operations])
    if not stuck:
        return None
    waits = "; ".join(f"rank {rank} to {_verb(kind)} rank {peer}" for rank, kind, peer in stuck)
    return (
        f"if operations wait for those before them, and sends for their receives, no rank gets further: {waits}. "
        "Start the send and the receive of a round together, with dist.batch_isend_irecv"
    )


def nobody_waits_for_all(run: Run) -> str | None:
    """No rank called barrier, in which all ranks wait for each other."""
    barriers = (op for operations in run.operations for op in operations if op.kind == "barrier")
    return next((f"rank {op.rank} called barrier ({op.line}): there it waits for all others" for op in barriers), None)


# ---- the traffic of algorithms

NO_DEADLOCK = ("the order of sends and receives cannot deadlock", cannot_deadlock)


def ring(collective: str) -> Traffic:
    """In N−1 rounds, or twice so many, each rank sends a chunk to its neighbour while it receives one."""
    rounds = 2 if collective == "all_reduce" else 1
    times = "2(N−1)" if collective == "all_reduce" else "N−1"
    share = f"{times}/N" if collective == "all_reduce" else "(N−1)/N"
    least = all_of(sends_as_little_as(collective, "ring"), no_rank_has_more_messages_than(lambda n: rounds * (n - 1)))
    return [
        ("every message goes to a neighbour on the ring", neighbours_only),
        (f"each rank sends {share} of the buffer in {times} messages, the least there is", least),
        (
            "it cannot deadlock, and all ranks send at the same time",
            all_of(cannot_deadlock, all_send_at_once(lambda n: rounds * (n - 1))),
        ),
    ]


def chain() -> Traffic:
    """A broadcast in pieces along the ring, as many as the option ``chunks`` says."""
    return [
        ("each link of the chain carries the buffer once, and no other link is used", is_that_of("broadcast", "ring")),
        ("a rank passes pieces on while others are still coming", forwards_while_receiving),
        NO_DEADLOCK,
    ]


def flat(collective: str) -> Traffic:
    """``gather`` or ``scatter``: each chunk crosses one link."""
    one_link = {
        "gather": "each rank sends its chunk to the root, and nothing else is sent",
        "scatter": "the root sends each rank its chunk, and nothing else is sent",
    }
    return [(one_link[collective], is_that_of(collective, "flat")), NO_DEADLOCK]


def once() -> Traffic:
    """The tensor goes to each of the others once, or comes from each once."""
    return [("N−1 messages in all, each with the tensor once", one_message_for_each_other), NO_DEADLOCK]


def tree() -> Traffic:
    """``once``, and in each round every rank that has the tensor passes it on."""
    few = all_of(no_rank_has_more_messages_than(log2_rounded_up), rounds_at_most(log2_rounded_up))
    return [*once(), ("⌈log₂ N⌉ rounds, and no rank sends more often", few)]


def nobody_in_the_middle(rounds: int = 1) -> Traffic:
    """No rank has more to do than in a ring that goes round so often."""
    times = f"{rounds}" if rounds > 1 else ""
    few = all_of(
        no_rank_sends_more_than(lambda n: rounds * (n - 1) / n),
        no_rank_has_more_messages_than(lambda n: rounds * (n - 1)),
    )
    return [(f"no rank sends more than {times}(N−1)/N of the buffer, in {times}(N−1) messages", few), NO_DEADLOCK]


def _verb(kind):
    return "send to" if kind == "send" else "receive from"


def _program(operations):
    """One rank's operations as a list of steps; the ``(kind, peer)`` of one step start together."""
    steps, batch = [], None
    for op in operations:
        if op.kind not in ("send", "recv"):
            continue
        if op.batch is None or op.batch != batch:
            steps.append([])
        steps[-1].append((op.kind, op.peer))
        batch = op.batch
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


def forwards_while_receiving(run: Run) -> str | None:
    """A rank that passes pieces on, as many as the option ``chunks`` says, sends piece k before it has piece k + 2."""
    pieces = run.option("chunks")
    for rank, ops in enumerate(run.operations):
        received = [op for op in ops if op.kind == "recv"]
        sent = [op for op in ops if op.kind == "send"]
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


def _before(send, received):
    """Whether the send started before the receive was complete."""
    if received.end is None:
        return send.sequence < received.sequence
    return send.start < received.end


def is_that_of(collective: str, algorithm: str) -> Claim:
    """A claim: from each rank to each other go exactly the bytes that this algorithm sends there, in as few messages.

    It is given the run's options, such as ``root``. Where nothing goes in this algorithm, no empty message goes either.
    """

    def schedule_of(run):
        return ALGORITHMS[collective][algorithm](run.world_size, **run.case.options)

    def in_few_messages(run):
        messages = Counter((op.rank, op.peer_rank) for op in run.sends())
        most = Counter((move.src, move.dst) for moves in schedule_of(run).rounds for move in moves)
        for (src, dst), sent in sorted(messages.items()):
            if not most[src, dst]:
                return f"rank {src} sent an empty message to rank {dst}: nothing is to go there"
            if sent > most[src, dst]:
                return f"rank {src} sent {sent} messages to rank {dst}, where {most[src, dst]} would do"
        return None

    carried = each_link_carries(lambda run: schedule_of(run).link_bytes(run.numel, run.element_size).tolist())
    return all_of(carried, in_few_messages)


def each_link_carries(due: Callable[[Run], list[list[int]]]) -> Claim:
    """A claim: from each rank to each other go exactly the bytes ``due(run)[source][destination]``."""

    def claim(run):
        sent, expected = [[0] * run.world_size for _ in range(run.world_size)], due(run)
        for op in run.sends():
            sent[op.rank][op.peer_rank] += op.bytes
        for src, dst in product(range(run.world_size), repeat=2):
            if sent[src][dst] != expected[src][dst]:
                return f"rank {src} sent {sent[src][dst]} bytes to rank {dst}, expected {expected[src][dst]}"
        return None

    return claim


def one_message_for_each_other(run: Run) -> str | None:
    """The ranks together send at most N − 1 messages."""
    sent, most = len(run.sends()), run.world_size - 1
    return f"the ranks sent {sent} message{'s' * (sent != 1)} in all, where {most} would do" if sent > most else None


def no_rank_sends_more_than(share: Callable[[int], float]) -> Claim:
    """A claim: each rank sends at most ``share(N)`` times the buffer, and N elements more if N does not divide it."""

    def due(run):
        n = run.world_size
        return [share(n) * run.numel * run.element_size + n * run.element_size * (run.numel % n > 0)] * n

    return sends_at_most(due)


def no_rank_has_more_messages_than(most: Callable[[int], int]) -> Claim:
    """A claim: no rank sends more than ``most(N)`` messages, and none receives more."""

    def claim(run):
        for kind, did in (("send", "sent"), ("recv", "received")):
            for rank, ops in enumerate(run.operations):
                count = sum(op.kind == kind for op in ops)
                if count > most(run.world_size):
                    return f"rank {rank} {did} {count} messages, where {most(run.world_size)} would do"
        return None

    return claim


def no_message_larger_than(size: int) -> Claim:
    """A claim: no message has more than ``size`` bytes."""

    def claim(run):
        large = (op for op in run.sends() if op.bytes > size)
        return next((f"rank {op.rank} sent {op.bytes} bytes to rank {op.peer_rank}" for op in large), None)

    return claim


def rounds_at_most(most: Callable[[int], int]) -> Claim:
    """A claim: the messages fit in ``most(N)`` rounds, in each of which a rank sends one message and receives one."""

    def claim(run):
        found, enough = rounds(run), most(run.world_size)
        return f"it takes {found} rounds, where {enough} would do" if found > enough else None

    return claim


def all_send_at_once(rounds_of: Callable[[int], int]) -> Claim:
    """A claim: in each of ``rounds_of(N)`` rounds all ranks send, and do not wait for their turn.

    Ranks may be of two kinds, of which one sends first and the other receives first; on an odd ring, of three.
    """

    def claim(run):
        n, found = run.world_size, rounds(run)
        if found <= rounds_of(n) * (2 + n % 2):
            return None
        return (
            f"it takes {found} messages one after another, where {rounds_of(n)} would do: ranks wait for their turn. "
            "Let all of them send and receive in each round, with dist.batch_isend_irecv"
        )

    return claim


def rounds(run: Run) -> int:
    """How many rounds the messages take if a rank sends one and receives one in each, in the order in which it did.

    A message that a rank sends after it has received another one is in a later round than that one.
    """
    messages = run.messages()
    number = [1] * len(messages)
    for _ in messages:  # no chain of messages is longer than this
        before = list(number)
        for i, (send, receive) in enumerate(messages):
            for j, (other_send, other_receive) in enumerate(messages):
                earlier = (
                    (other_send.rank == send.rank and other_send.sequence < send.sequence)
                    or (other_receive.rank == receive.rank and _when(other_receive) < _when(receive))
                    or (other_receive.rank == send.rank and _arrived(other_receive, send))
                )
                if earlier:
                    number[i] = max(number[i], number[j] + 1)
        if number == before:
            break
    return max(number, default=0)


def everyone_heard_from_everyone(run: Run) -> str | None:
    """Every rank got a message from every other before it returned, or one that was sent after such a message came.

    By the rules of NCCL a send that was issued later waits for it, in the queue of the communicator.
    """
    messages, arrived = run.messages(), _is_before if run.case.strict else _arrived
    heard = [{send.rank} for send, _ in messages]  # ranks whose arrival each message proves
    changed = True
    while changed:
        changed = False
        for i, (send, _) in enumerate(messages):
            for j, (_, receive) in enumerate(messages):
                if receive.rank == send.rank and not heard[j] <= heard[i] and arrived(receive, send):
                    heard[i], changed = heard[i] | heard[j], True
    for rank in range(run.world_size):
        known = {rank}.union(*(heard[i] for i, (_, receive) in enumerate(messages) if receive.rank == rank))
        missing = sorted(set(range(run.world_size)) - known)
        if missing:
            return f"rank {rank} returned without having heard from rank {missing[0]}, directly or through others"
    return None


def _when(receive):
    return (receive.end or 0.0, receive.sequence)


def _is_before(receive, send):
    """Whether a rank began its receive before its send, and not together with it."""
    return receive.sequence < send.sequence and (receive.batch is None or receive.batch != send.batch)


def _arrived(receive, send):
    """Whether a rank's receive was complete when it started its send."""
    if receive.end is None:  # on a GPU one handle stands for a whole batch
        return _is_before(receive, send)
    return receive.end <= send.start
