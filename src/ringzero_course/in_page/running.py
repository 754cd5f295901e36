"""N ranks, each a generator that the reader wrote, send chunks of their buffers to one another.

Every rank's buffer has N chunks. A rank yields what it wants to do, and goes on when that is done:

    yield send(dst, chunk)                  until dst receives it
    yield recv(src, chunk, add=True)        until src sends; what arrives is added to the rank's own chunk
    yield send(dst, c), recv(src, d)        both begin at once; until both are done

Nothing is kept on the way: a send waits for its receive, as NCCL's do. A chunk is a number, or several, which travel as
one message. The k-th send from one rank to another meets the k-th receive there, whatever their chunks are. A rank
sends what it held when it yielded.
"""

from ringzero_course.in_page.contributions import added, at_start, lacking, overlap
from ringzero_course.in_page.program import lines_of, names_of
from ringzero_course.in_page.requests import RECV, SEND, Maker, RefusedError, Request, at, beginning, checked

LIMIT = 2000  # yields of all ranks together
PRINTED_AT_MOST = 50  # lines


class RunError(Exception):
    """The run cannot go on: ``kind`` is "error" or "endless", ``lines`` are the reader's lines that are to blame."""

    def __init__(self, kind: str, sentence: str, lines: list):
        super().__init__(sentence)
        self.kind, self.sentence, self.lines = kind, sentence, [line for line in lines if line]


class Arrival:
    """Chunk ``sent`` of rank ``src`` came to rank ``dst`` in ``round`` (from 1), which added it to its chunk ``chunk``
    or replaced that by it. ``trouble`` is what may be wrong with it, ``whose`` the ranks whose contributions suffer:

    None; "moved", to a chunk with another number; "twice", added to a sum that has it already; "lost", replaced.
    """

    def __init__(self, send: Request, recv: Request, place: int, held: dict):
        self.src, self.dst = send.ends
        self.round, self.add = recv.round or 0, recv.add
        self.sent, self.chunk, self.send_line, self.line = send.chunks[place], recv.chunks[place], send.line, recv.line
        value = send.values[place]
        self.whose = overlap(held, value) if recv.add else lacking(value, held)
        self.trouble = "moved" if self.sent != self.chunk else ("twice" if recv.add else "lost") if self.whose else None


class Run:
    """``n`` ranks that have run ``rank(r, n)`` of ``source`` as far as they come; ``error`` says what ended it early.

    ``held[rank][chunk]`` is what each then holds, ``waiting[rank]`` the requests that have not met their other end,
    ``ended[rank]`` says that its generator has ended. ``messages[src, dst]`` counts the messages that arrived,
    ``chunks_sent[rank]`` the chunks in them, and ``printed`` are the lines that the program printed.
    """

    def __init__(self, source: str, n: int, limit: int = LIMIT):
        self.n, self.limit, self.yields = n, limit, 0
        self.held = [[at_start(rank, chunk) for chunk in range(n)] for rank in range(n)]
        self.waiting: list = [[] for _ in range(n)]
        self.ended, self.chunks_sent = [False] * n, [0] * n
        self.messages: dict = {}
        self.arrivals: list = []
        self.printed: list = []
        self.error: RunError | None = None
        self._made: list = []  # all requests
        self._speaks: int | None = None  # whose code runs
        self._queues: dict = {}  # (src, dst): {SEND: [...], RECV: [...]}, ends of messages that have not met
        self._clock = [0] * n  # the last round in which each took part
        try:
            self._steps = self._generators(source)
            self._run()
        except RunError as error:
            self.error = error
        self.waiting = [[request for request in requests if request.round is None] for requests in self.waiting]

    # ---- the reader's code

    def _generators(self, source):
        """One for each rank; none has begun."""
        given = {SEND: Maker(SEND, self._made), RECV: Maker(RECV, self._made), "print": self._print}
        names = self._asked(lambda: names_of(source, given))
        if "rank" not in names:
            raise RunError("error", "There is no function `rank`. Begin with `def rank(r, n):`", [])
        steps = []
        for rank in range(self.n):
            self._speaks = rank
            steps.append(self._asked(lambda: names["rank"](self._speaks, self.n)))
            if not hasattr(steps[-1], "throw"):
                self._check_yielded()
                raise RunError("error", "`rank` never yields. Write `yield` before `send(…)` and `recv(…)`.", [])
        return steps

    def _asked(self, act):
        """What the reader's code gives; what it raises, as a RunError with the line."""
        try:
            return act()
        except Exception as error:
            raise self._raised(error) from None

    def _raised(self, error):
        known = [error.line] if isinstance(error, RefusedError) and error.line else []
        lines = known or lines_of(error)[-1:]
        where = beginning(lines[0] if lines else None)
        if isinstance(error, RefusedError):
            return RunError("error", f"{where}: {error}", lines)
        if isinstance(error, TypeError) and not lines:
            return RunError("error", "`rank` must take two arguments: `def rank(r, n):`", [])
        who = "" if self._speaks is None else f" (rank {self._speaks} of {self.n})"
        said = error.args[0] if isinstance(error, SyntaxError) else error  # CPython puts the line there once more
        return RunError("error", f"{where}: {type(error).__name__}: {said}{who}", lines)

    def _print(self, *values, **_):
        who = "" if self._speaks is None else f"rank {self._speaks}: "
        if len(self.printed) < PRINTED_AT_MOST:
            self.printed.append(who + " ".join([str(value) for value in values]))

    def _check_yielded(self):
        """A request that is made and not yielded does nothing."""
        for request in self._made:
            if request.rank is None:
                kind, where = request.kind, beginning(request.line)
                said = f"{where}: `{kind}(…)` without `yield` does nothing. Write `yield {kind}(…)`."
                raise RunError("error", said, [request.line])

    # ---- the scheduler

    def _run(self):
        """A rank runs until it waits. It is ready again when all that it waits for has met its other end."""
        ready = list(range(self.n))
        while ready:
            rank = ready.pop(0)
            if not self._resume(rank):
                continue
            for request in self.waiting[rank]:
                self._queue(request)[request.kind].append(request)
            touched = {rank} | {request.peer for request in self.waiting[rank] if self._meet(self._queue(request))}
            for each in sorted(touched):
                rounds = [request.round for request in self.waiting[each]]
                if None not in rounds:
                    self._clock[each] = max(rounds + [self._clock[each]])
                    self.waiting[each] = []
                    ready.append(each)
        self._check_yielded()

    def _resume(self, rank):
        """To the rank's next yield, which says what it waits for. False where there is none."""
        self._speaks, steps = rank, self._steps[rank]
        wanted = self._asked(lambda: next(steps, self))
        if wanted is self:
            self.ended[rank] = True
            return False
        try:
            self.waiting[rank] = checked(rank, self.n, wanted)
        except RefusedError as refused:
            raise self._refused(steps, refused) from None
        for request in self.waiting[rank]:
            request.rank = rank
            request.values = [self.held[rank][chunk] for chunk in request.chunks]
        self.yields += 1
        if self.yields > self.limit:
            line = self.waiting[rank][0].line if self.waiting[rank] else None
            said = f"Stopped after {self.limit:,} yields: rank {rank} still goes on{at(line)}. Does its loop end?"
            raise RunError("endless", said, [line])
        return True

    def _refused(self, steps, refused):
        """As a RunError. Thrown into the generator first, so that the trace has the line of its yield."""
        try:
            steps.throw(refused)
        except Exception as error:  # or what the reader's code made of it
            return self._raised(refused if refused.line else error)
        return self._raised(refused)

    def _queue(self, request):
        if request.ends not in self._queues:
            self._queues[request.ends] = {SEND: [], RECV: []}
        return self._queues[request.ends]

    def _meet(self, queue):
        """Bring ends of messages together, first to first. True if any met."""
        any_met = False
        while queue[SEND] and queue[RECV]:
            self._deliver(queue[SEND].pop(0), queue[RECV].pop(0))
            any_met = True
        return any_met

    def _deliver(self, send, recv):
        if len(send.chunks) != len(recv.chunks):
            raise RunError(
                "error",
                f"Rank {send.rank} sends {_chunks(send)} to rank {recv.rank}, which receives {_chunks(recv)}. "
                "Both must name equally many.",
                [send.line, recv.line],
            )
        send.round = recv.round = 1 + max(self._clock[send.rank], self._clock[recv.rank])
        self.messages[send.ends] = self.messages.get(send.ends, 0) + 1
        self.chunks_sent[send.rank] += len(send.chunks)
        mine = self.held[recv.rank]
        for place, chunk in enumerate(recv.chunks):
            self.arrivals.append(Arrival(send, recv, place, mine[chunk]))
            mine[chunk] = added(mine[chunk], send.values[place]) if recv.add else send.values[place]


def _chunks(request):
    """ "2 chunks (line 4)"."""
    return f"{len(request.chunks)} chunk{'s' * (len(request.chunks) > 1)}{at(request.line)}"
