"""What a rank may yield: ``send(dst, chunk)``, ``recv(src, chunk, add=False)``, or several of them together."""

SEND, RECV = "send", "recv"
USE = {SEND: "send(dst, chunk)", RECV: "recv(src, chunk)` or `recv(src, chunk, add=True)"}


def at(line: int | None) -> str:
    """ " (line 4)", or nothing where the line is not known."""
    return f" (line {line})" if line else ""


def beginning(line: int | None) -> str:
    """ "Line 4", with which a sentence begins."""
    return f"Line {line}" if line else "Your code"


class RefusedError(ValueError):
    """A request that no rank may make, and its line where that is known. The message says what is wrong with it."""

    def __init__(self, message: str, line: int | None = None):
        super().__init__(message)
        self.line = line


class Request:
    """One end of a message, as it was asked for on ``line`` of the reader's code (None where that is not known).

    ``rank`` is None until it is yielded, ``round`` until it has met its other end. ``values`` are what the chunks of a
    send held when it was yielded.
    """

    def __init__(self, kind: str, peer: int, chunks: tuple, add: bool, line: int | None):
        self.kind, self.peer, self.chunks, self.add, self.line = kind, peer, chunks, add, line
        self.rank: int | None = None
        self.round: int | None = None
        self.values: list = []

    @property
    def action(self) -> str:
        return f"{'send to' if self.kind == SEND else 'receive from'} rank {self.peer}"

    @property
    def ends(self) -> tuple:
        """(who sends, who receives)."""
        return (self.rank, self.peer) if self.kind == SEND else (self.peer, self.rank)


class Maker:
    """What the reader calls ``send`` or ``recv``; ``send[7]`` is the one on line 7. ``made`` collects what is made."""

    def __init__(self, kind: str, made: list, line: int | None = None):
        self.kind, self.made, self.line = kind, made, line

    def __getitem__(self, line):
        return Maker(self.kind, self.made, line)

    def __call__(self, *given, **named):
        try:
            return (self._send if self.kind == SEND else self._recv)(*given, **named)
        except TypeError:
            raise RefusedError(f"call `{USE[self.kind]}`.") from None

    def _send(self, dst, chunk):
        return self._make(dst, chunk, False)

    def _recv(self, src, chunk, add=False):
        return self._make(src, chunk, bool(add))

    def _make(self, peer, chunk, add):
        chunks = tuple(chunk) if isinstance(chunk, (list, tuple, range)) else (chunk,)
        self.made.append(Request(self.kind, peer, chunks, add, self.line))
        return self.made[-1]


def checked(rank: int, n: int, wanted: object) -> list:
    """The requests in what ``rank`` of ``n`` yielded. Raises RefusedError for what it may not yield."""
    requests = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    for request in requests:
        if not isinstance(request, Request):
            raise RefusedError(f"rank {rank} yields {request!r}; yield what `send(…)` or `recv(…)` gives.")
        if request.rank is not None or sum([request is other for other in requests]) > 1:
            raise RefusedError(f"rank {rank} yields one `{request.kind}` a second time; call it again.", request.line)
        _check(rank, n, request)
    _check_replaced(rank, requests)
    return requests


def _check(rank, n, request):
    does = f"rank {rank} {'sends' if request.kind == SEND else 'receives'}"
    whom = f"{does} {'to' if request.kind == SEND else 'from'}"
    _check_number(request.peer, n, f"{whom} rank", "ranks", request.line)
    if request.peer == rank:
        raise RefusedError(f"{whom} itself.", request.line)
    if not request.chunks:
        raise RefusedError(f"{does} no chunk; name one or more.", request.line)
    for place, chunk in enumerate(request.chunks):
        _check_number(chunk, n, f"{does} chunk", "chunks", request.line)
        if chunk in request.chunks[:place]:
            raise RefusedError(f"{does} chunk {chunk} twice in one message.", request.line)


def _check_number(number, n, does, what, line):
    if isinstance(number, bool) or not isinstance(number, int):
        raise RefusedError(f"{does} {number!r}; {what} are whole numbers.", line)
    if not 0 <= number < n:
        raise RefusedError(f"{does} {number}; {what} are numbered 0 to {n - 1}. Is a `% n` missing?", line)


def _check_replaced(rank, requests):
    """A chunk that a receive replaces takes no other part in the same yield: nothing says what would come first."""
    for one in requests:
        for other in requests:
            both = [chunk for chunk in one.chunks if chunk in other.chunks]
            if one.kind == RECV and not one.add and one is not other and both:
                verb = "sends" if other.kind == SEND else "receives"
                said = f"rank {rank} replaces its chunk {both[0]} and {verb} chunk {both[0]} in one yield"
                raise RefusedError(f"{said}; either may come first.", one.line)
