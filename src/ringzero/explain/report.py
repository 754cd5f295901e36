"""The message of a call that failed: the first cause, in the caller's own lines, and what every rank was doing."""

import json
import re
import signal
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ringzero import processes
from ringzero.explain.aligned import aligned
from ringzero.explain.diagnose import diagnose, difference
from ringzero.explain.state import RankState
from ringzero.explain.words import last_call
from ringzero.record import sources, trace_file

QUEUES = "queues"  # the file in a call's folder that says: the ranks' operations go through queues, as on NCCL
OF_A_SCRIPT = "script"  # likewise: the ranks' records hold their last operations
ENDS = {"returned": "had returned", "gone": "was lost"}  # of a rank that was not running any more, in words
SLOW = "Every message had both its ends, so the ranks were slow rather than stuck"
WAITS_IN_TORCH = ("torch/autograd/graph.py", "torch/futures/__init__.py")  # the files from which its C++ code waits
FRAMES = 8  # of each rank's stack, innermost first


def failure(call: Path, exits: Mapping[int, int | None], world_size: int, lost: Mapping[int, str]) -> tuple[int, str]:
    """``(rank, message)``: the rank that failed first, and why; the others usually fail as an echo of it.

    ``call`` is the call's folder. ``exits`` maps a rank to its exit status, in the order in which the ranks ended;
    None where the process that watched over the rank ended with it: torchrun ends the rest when one is killed.
    ``lost`` are ranks that were allowed to end early, and what ended them.
    """
    reports = []
    states = cache(lambda: states_of(call, world_size))  # a rank that ran for long has left many records
    for order, (rank, status) in enumerate(exits.items()):
        if status == 0 and (call / f"{rank}.result").exists():
            continue
        if error := _error(call, rank):
            echo, communicating = _is_echo(error["message"]), _is_communication(error)
            reports.append((echo, 1, error["time"], rank, communicating, f"rank {rank} failed:\n{error['traceback']}"))
        else:
            text = f"rank {rank} {_how_it_ended(status)}{_stack_text(call, rank) or last_call(states()[rank])}"
            reports.append((False, 0, order, rank, status is None or status < 0, text))
    *_, rank, communicating, text = min(reports)
    why = (difference([*states().values()]) or _too_large(call, rank, states())) if communicating else None
    parts = [f"{why}\n{text}" if why else text]
    if printed := read(call / f"{rank}.out").strip():
        parts.append(f"rank {rank} had printed:\n{printed[-2000:]}")
    if lost:
        ends = ", ".join(f"rank {r} ({how})" for r, how in lost.items())
        parts.append(f"Lost before: {ends}. What a rank exchanges with a lost rank fails; the function must catch it.")
    if others := [r for r in range(world_size) if r != rank and r not in lost]:
        parts.append(f"The other ranks ({', '.join(map(str, others))}) were stopped because rank {rank} failed.")
    return rank, "\n\n".join(parts)


def reason(call: Path, world_size: int) -> str | None:
    """Why a communication failed, where that is what failed first; None if it was something else, or is not known.

    Over gloo a rank that waits for another gets an error when that one ends, and a rank that receives more than it made
    room for is ended without one.
    """
    errors = [error for rank in range(world_size) if (error := _error(call, rank))]
    if errors and not _is_communication(min(errors, key=lambda error: error["time"])):
        return None
    states = [*states_of(call, world_size).values()]
    return diagnose(states) if errors else difference(states)


def timeout(
    call: Path,
    running: Iterable[int],
    world_size: int,
    seconds: float,
    deadlocked: bool,
    if_slow: str = "; give the call a longer timeout",
) -> tuple[int, str]:
    """``(rank, message)`` for a call that had not ended after ``seconds``: the sentence, then where each rank was.

    ``deadlocked`` says that the call was ended before its time was up because its ranks could never return. ``if_slow``
    is what a user can do where nothing is wrong.
    """
    states = states_of(call, world_size)
    stuck = [rank for rank in running if states[rank].state == "running"]
    sentence = diagnose([states[rank] for rank in range(world_size)]) or f"{SLOW}{if_slow}."
    how = f"were stuck for good, seen after {seconds:.1f} s" if deadlocked else f"were not done after {seconds:g} s"
    lines = [f"{world_size} ranks {how}: {sentence}"]
    for rank, state in states.items():
        was_at = f"was at{_stack_text(call, rank) or ' an unknown place'}"
        lines.append(f"rank {rank} {ENDS.get(state.state, was_at)}")
    return (stuck or [0])[0], "\n".join(lines)


def _error(call, rank):
    """What ``rank`` wrote about its failure; None if it wrote nothing, or something else."""
    try:
        error = json.loads(read(call / f"{rank}.error"))
        return {"time": float(error["time"])} | {key: str(error[key]) for key in ("message", "traceback")}
    except (ValueError, LookupError, TypeError):
        return None


def read(path: Path) -> str:
    """A text file of a call; "" if there is none, or something else than a file."""
    try:
        with open(path, errors="replace", opener=processes.regular) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def states_of(call: Path, world_size: int) -> dict[int, RankState]:
    """``{rank: RankState}`` from the files the ranks left."""
    files = {rank: call / f"{rank}.trace" for rank in range(world_size)}
    if (call / OF_A_SCRIPT).exists():
        records, lacking = aligned([trace_file.read_last(file, rank) for rank, file in files.items()])
    else:
        records, lacking = [trace_file.read(file, rank) for rank, file in files.items()], {}
    states = {}
    for rank in range(world_size):
        stack = _stack(call, rank)
        own = [frame for frame in stack if not sources.is_package_code(frame[0])]
        own = own or [frame for frame in stack if not sources.is_plumbing(frame[0])]
        operations = records[rank]
        if is_in_torch(call, rank) or (call / f"{rank}.error").exists():  # a rank that failed had perhaps waited so
            operations = [op._replace(wait=op.start) if op.given and op.end is None else op for op in operations]
        finished = "returned" if (call / f"{rank}.result").exists() else "running"
        states[rank] = RankState(
            state="gone" if (call / f"{rank}.gone").exists() else finished,
            operations=operations,
            where=f"{own[0][2]}, {sources.place_of(_labelled(own[0][0]), own[0][1])}" if own else "an unknown place",
            functions=tuple(name for file, _, name in stack if sources.is_plumbing(file)),
            queued=(call / QUEUES).exists(),
            lacking=lacking,
        )
    return states


def is_in_torch(call: Path, rank: int) -> bool:
    """Whether the last stack of ``rank`` ends where torch's C++ code can wait for a future: in a backward pass, say."""
    innermost = next(iter(_stack(call, rank)), ("",))[0]
    return innermost.replace("\\", "/").endswith(WAITS_IN_TORCH)


def _stack(call, rank):
    """``[(file, line, function)]`` of the last stack faulthandler wrote for ``rank``, innermost first."""
    text = read(call / f"{rank}.stack").rsplit("most recent call first", 1)[-1]
    return [(file, int(line), name) for file, line, name in re.findall(r'File "(.*?)", line (\d+) in (.*)', text)]


def _stack_text(call, rank):
    own = [frame for frame in _stack(call, rank) if not sources.is_plumbing(frame[0])]
    lines = [f"\n  File {_labelled(file)}, line {line} in {name}" for file, line, name in own[:FRAMES]]
    return "".join(lines)


def _labelled(file):
    """ "cell [7]" for a notebook's cell; a file's name in quotes, as tracebacks have it."""
    label = {name: label for name, (label, _) in sources.collect().items()}.get(file)
    return label or f'"{file}"'


def _is_echo(message):
    words = ("closed by peer", "reset by peer", "Broken pipe", "Connection refused", "NCCL", "remote process")
    return any(word in message for word in words)


def _is_communication(error):
    """Whether the error came out of a communication rather than the caller's own code."""
    *_, innermost = re.findall(r'File "(.*?)"', error["traceback"]) or [""]
    return "gloo" in error["message"] or sources.is_collective(innermost)


def _too_large(call, rank, states):
    """A sentence from what gloo prints before it ends a rank that received more than it made room for; else None."""
    sizes = re.search(r"(\d+) vs (\d+)\. Received data size", read(call / f"{rank}.out"))
    if not (sizes and states[rank].calls):
        return None
    op = states[rank].calls[-1]
    text = f"rank {rank} made room for {sizes[2]} bytes in {op.kind}, {op.line}, and got {sizes[1]}"
    if op.kind == "scatter":  # the record has the size of the root's tensors, not of the room
        root = op.peer_rank
        lines = [sent.line for sent in states[root].calls if (sent.kind, sent.group) == ("scatter", op.group)]
        text += "".join(f"; rank {root} is the root, {line}" for line in lines[-1:])
    return f"{text}."


def _how_it_ended(status):
    if status is None:
        return "was killed together with the process that watched over it"
    if status < 0:
        return f"was ended by the signal {ended_by(status)} before it returned"
    return f"ended with exit status {status} before its function returned (os._exit or sys.exit inside it?)"


def ended_by(status: int | None) -> str:
    """What ended a rank whose exit status this is, None or negative: the name of a signal, if one is known."""
    if status is None:
        return "together with the process that watched over it"
    known = {number.value: number.name for number in signal.Signals}
    return known.get(-status, f"signal {-status}")
