"""The answer to a program that a reader wrote: a verdict, what it sent, and the space-time diagram, as plain data."""

from ringzero.drawing import svg
from ringzero_course.in_page.contributions import listed, number
from ringzero_course.in_page.running import Run
from ringzero_course.in_page.space_time import space_time
from ringzero_course.in_page.verdict import first_trouble, judge, traffic, wrong_chunks

ROUNDS_DRAWN = 40
WORLD_SIZES = (2, 3, 4, 5, 6, 7, 8)


def answer(source: str, n: int) -> dict:
    """What the page shows for ``rank(r, n)`` of ``source`` on ``n`` ranks.

    ``kind``, ``sentence`` and ``lines`` are the verdict's, ``notes`` more sentences, ``head`` and ``rows`` a table,
    ``printed`` what the program printed, ``svg`` a space-time diagram and ``alt`` the same in words.
    """
    run = Run(source, n)
    verdict, rounds = judge(run), _rounds(run)
    said = {"kind": verdict.kind, "sentence": verdict.sentence, "lines": verdict.lines, "printed": run.printed}
    said["notes"] = _notes(run, verdict, len(rounds))
    said["head"] = ["rank", "messages sent", "chunks sent", "bytes sent", "chunks right"]
    said["rows"] = _rows(run)
    notes = {rank: _stuck(requests) for rank, requests in enumerate(run.waiting) if requests}
    first = first_trouble(run) if verdict.kind == "wrong" else None
    marked = (first.round - 1, first.src, first.dst, first.chunk) if first else None
    width, height, parts = space_time(n, rounds[:ROUNDS_DRAWN], None, notes, marked)
    alt = _description(run, rounds, notes)
    said["svg"], said["alt"] = svg.image(width, height, "What was sent", alt, parts, 11), alt
    return said


def _rounds(run):
    """The run's arrivals as a schedule: ``(src, dst, chunk, reduce)``, in rounds."""
    rounds = [[] for _ in range(max([arrival.round for arrival in run.arrivals], default=0))]
    for arrival in run.arrivals:
        rounds[arrival.round - 1].append((arrival.src, arrival.dst, arrival.chunk, arrival.add))
    return [sorted(round) for round in rounds]


def with_other_sizes(source: str, n: int) -> str:
    """Whether a program that is right on ``n`` ranks is right on others too; if not, its first other verdict."""
    others = [size for size in WORLD_SIZES if size != n]
    for size in others:
        verdict = judge(Run(source, size))
        if verdict.kind != "right":
            return f"But not with {size} ranks. {verdict.sentence}"
    return f"It is also right with {listed([str(size) for size in others])} ranks."


def _notes(run, verdict, rounds):
    notes = []
    if verdict.kind == "right":
        notes.append(f"{traffic(run)} It took {rounds} rounds.")
    if rounds > ROUNDS_DRAWN:
        notes.append(f"The figure shows the first {ROUNDS_DRAWN} of {rounds:,} rounds.")
    return notes


def _rows(run):
    wrong, rows = wrong_chunks(run), []
    for rank in range(run.n):
        messages = sum([run.messages[ends] for ends in run.messages if ends[0] == rank])
        chunks, right = run.chunks_sent[rank], run.n - sum([1 for at, _ in wrong if at == rank])
        rows.append([str(rank), str(messages), str(chunks), f"{number(chunks / run.n)} S", f"{right} of {run.n}"])
    return rows


def _stuck(requests):
    return f"waits to {listed([request.action for request in requests])}"


def _description(run, rounds, notes):
    added = sum([1 for arrival in run.arrivals if arrival.add])
    said = f"{run.n} ranks, {len(rounds)} rounds, {len(run.arrivals)} chunks arrive: {added} are added, "
    said += f"{len(run.arrivals) - added} replace"
    return said + "".join([f"; rank {rank} {notes[rank]}" for rank in sorted(notes)])
