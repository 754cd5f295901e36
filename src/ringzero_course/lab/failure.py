"""Why a run proves nothing, in sentences: what a rank raised, where the ranks wait, which messages were left over."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ringzero.explain.report import SLOW
from ringzero.ranks import RankError
from ringzero.record import sources
from ringzero.record.operation import pairs
from ringzero_course.lab.handle import Handle
from ringzero_course.lab.runs import BY_HAND, LIBRARY, Run

_GLOO_PLACE = re.compile(r"\[(?:enforce fail at )?[^\]\s]*\.(?:cc|cpp|h):\d+\] ?")  # "[…/gloo/tcp/pair.cc:537] "
_TYPE_OF_GRADIENT = re.compile(r"assign a gradient with dtype '(\w+)' to a tensor with grad_dtype '(\w+)'")


def not_written(name: str) -> str:
    """The reason where a function still raises NotImplementedError."""
    return f"{name} is not written yet"


def nothing_proved(run: Run, built_from: tuple[str, ...]) -> str | None:
    """Why a run that came back counts for nothing: it did not do the work itself, or left some undone; else None."""
    rule = f"build it from {' and '.join(built_from)}" if built_from else "it is to send nothing"
    library = ("send", "recv", "header") if LIBRARY in built_from else ()
    whose = "torch's " if library else ""
    # Who builds with collectives may wait for all, in vain mostly; who builds collectives is to build that, too.
    waits = () if built_from == BY_HAND else ("barrier",)
    for rank, operations in enumerate(run.operations):
        for op in operations:
            if op.call is not None and not library:
                return f"rank {rank} used a collective of ringzero; {rule}"
            if op.kind not in (*built_from, *library, *waits):
                return f"rank {rank} called {whose}{op.kind}; {rule}"
    if True in run.moved:
        rank = run.moved.index(True)
        return f"rank {rank} gave its tensor other memory; write into that which it has: its caller looks there"
    kinds = {op.kind for operations in run.operations for op in operations}
    if (run.numel or 0) >= run.world_size > 1 and not kinds & {*built_from, *library}:
        return "no rank sent anything"
    return unwaited(run) or unmatched(run)


def is_clean(run: Run) -> bool:
    """Whether every message sent was received, and everything asynchronous was waited for."""
    return run.problem is None and unmatched(run) is None and unwaited(run) is None


def unmatched(run: Run) -> str | None:
    """A sentence about messages sent and never received, or the reverse; None if there are none."""
    for rank, operations in enumerate(run.operations):
        if any(op.kind == "recv" and op.peer is None for op in operations):
            return f"rank {rank} receives from whoever comes first, which NCCL cannot do; name the rank with src="
    for (src, dst, *_), (sends, receives) in sorted(pairs(run.operations).items(), key=lambda item: item[0]):
        if len(sends) != len(receives):
            many = f"{len(sends)} message{'s' * (len(sends) != 1)}"
            return f"rank {src} sent {many} to rank {dst}, which received {len(receives)}"
        for number, (send, receive) in enumerate(zip(sends, receives, strict=True), 1):
            if send.bytes != receive.bytes:
                sizes = f"is {send.bytes} bytes, received into {receive.bytes}"
                return f"message {number} from rank {src} to rank {dst} {sizes}"
    return None


def unwaited(run: Run) -> str | None:
    """A sentence about the first operation nobody waited for; None if there is none."""
    if run.case.strict:
        return None  # the rules of NCCL say it themselves
    for rank, operations in enumerate(run.operations):
        for op in operations:
            if op.end is None and not op.given:  # torch's own DDP waits where no record shows it
                alike = [other.end is None for other in operations if (other.kind, other.peer) == (op.kind, op.peer)]
                what = f"its {op.kind}" if all(alike) else f"{sum(alike)} of its {len(alike)} {op.kind}s"
                direction = {"send": f" to rank {op.peer}", "recv": f" from rank {op.peer}"}.get(op.kind, "")
                return (
                    f"rank {rank} never called wait() on {what}{direction}, {op.line}: "
                    "the data may not be there yet, or may be overwritten on its way"
                )
    return None


def same_everywhere(reports: list) -> str | None:
    """The name of the error that all ranks raised, if it is one."""
    kinds = {report.get("error") for report in reports if report}
    return kinds.pop() if len(kinds) == 1 else None


ENDLESS = re.compile(r"(sent and received|computed for) [\d.,e+]+ (times|s) and came to no end: is this loop endless\?")
HINTS = {  # by words of an error's message, what a beginner cannot see in them
    "'NoneType' object has no attribute 'wait'": "a collective without async_op=True waits itself and returns None",
    "object has no attribute 'work'": "wait() was called, and launch() was not",
    "storage of size 0": "memory that was freed is used here, and not gathered again into the same storage",
    "shapes cannot be multiplied": "if a hook of yours returns something, that takes the place of the layer's inputs",
    "not allocated yet": "memory that was freed is used here, and not gathered again into the same storage",
}


def raised(rank: int, report: dict, student: Handle) -> str:
    """What ``rank`` raised and the line, from its report; where a function of the lab raised it, also who called that.

    A loop without an end is said in its own words.
    """
    if report["error"] == RecursionError.__name__ and report["frames"]:
        frame, _ = Counter(map(tuple, report["frames"])).most_common(1)[0]
        text = f"{frame[2]} calls itself more often than Python allows: if it comes to an end, write a loop"
        return f"rank {rank} raised RecursionError: {text} · {_line(*frame)}"
    endless = report.get("endless") and ENDLESS.fullmatch(report["message"])  # a rank may write any report
    text = f"rank {rank} {report['message']}" if endless else f"rank {rank} raised {report['error']}"
    if report["message"] and not endless:
        text += f": {_plainly(report['message'])}"
    text += next((f" ({hint})" for words, hint in HINTS.items() if words in report["message"]), "")
    inward = report["frames"][::-1]
    if inward:
        text += f" · {_line(*inward[0])}"
    if (caller := _caller(inward, student)) is not None:
        text += f" · called in {_function(caller, student)}, {_line(*caller)}"
    return text


def _plainly(message):
    """A message without gloo's own places; what it says of a rank that is its own neighbour, in words.

    Of a gradient of another type than its parameter, the two types: torch adds three sentences to them.
    """
    if "Pair is not connected" in message and "[none]" in message:
        return "a rank sends to itself, or receives from itself, which gloo cannot do"
    if types := _TYPE_OF_GRADIENT.search(message):
        return f"the new .grad is {types[1].lower()}, its parameter is {types[2].lower()}: give both one dtype"
    message = message.replace("value['returned']", "value")  # its place in the report is no student's affair
    return one_line(_GLOO_PLACE.sub("", message))


def _line(label, line, _, source=""):
    return f"{label}, line {line}" + (f": {source}" if source else "")


def _caller(frames: Sequence[Sequence[Any]], student: Handle) -> Sequence[Any] | None:
    """Of ``(label, line, function, ...)``, innermost first, the student's own; None if it is the innermost itself."""
    own = [frame for frame in frames if frame[2] == student.name] or [f for f in frames if f[0] in student.cells]
    return own[0] if own and own[0] is not frames[0] else None


def _function(frame, student):
    """The name of the function of a frame; of a lambda or a comprehension, of what the student wrote around it."""
    return student.name if frame[2].startswith("<") else frame[2]


def ended(error: RankError, rank: int, student: Handle) -> str:
    """How a rank ended that left no report: killed by a signal, by ``os._exit``, or by gloo (a wrong size)."""
    said = str(error).split("\n\n")[0].splitlines()
    if said and said[0].endswith("failed:"):  # before the student's function was called: its code does not load there
        return one_line(f"rank {rank} raised {said[-1].strip()}")
    sizes = re.search(r"(\d+) vs (\d+)\. Received data size", error.output[rank] if rank < len(error.output) else "")
    if said and "disagree" in said[0]:
        text = one_line(said[0], longest=700)
    elif sizes:
        text = f"rank {rank} got a message of {sizes[1]} bytes and expected one of {sizes[2]}"
    else:
        text = one_line(said[0] if said else f"rank {rank} left no result")
    frames = _callers_frames("\n".join(said))
    if frames and "disagree" not in text:
        text += f" · {_line(*frames[0])} in {frames[0][2]}"
    if (caller := _caller(frames, student)) is not None:
        text += f" · called in {_function(caller, student)}, {_line(*caller)}"
    return text


def no_end(error: RankError, seconds: float, reports: list, student: Handle) -> str:
    """Why the ranks had not ended after ``seconds``: ``launch``'s sentence, or where each rank was if it has none.

    Where that is in what the student's function calls, such as a function of the lab, also the student's line.
    """
    why = why_stuck(error)
    if why in ("", SLOW):
        why = _places(error, reports)
    return f"no end after {seconds:.0f} s: {why}{called_in(error, student)}"


def called_in(error: RankError, student: Handle) -> str:
    """The student's line from which the first rank that is stuck came to a function of the lab; "" if it is in none."""
    for rank in range(len(error.output)):
        if (caller := _caller(_frames_of(error, rank), student)) is not None:
            return f" In {_function(caller, student)}, {_line(*caller)}."
    return ""


def _frames_of(error, rank):
    """``(label, line, function)`` of a stuck rank's stack, innermost first, without those of libraries."""
    block = re.search(rf"^rank {rank} was at((?:\n  File .*)*)", str(error), re.MULTILINE)
    return _callers_frames(block[1]) if block else []


def _callers_frames(text):
    frames = re.findall(r'^  File "?(.*?)"?, line (\d+) in (.*)', text, re.MULTILINE)
    return [frame for frame in frames if sources.is_callers(frame[0])]


def why_stuck(error: RankError) -> str:
    """The sentence that says why the ranks wait for one another, from the RankTimeout."""
    return one_line(str(error).splitlines()[0].partition(": ")[2], longest=700)


def _places(error, reports):
    """Where each rank was when the time was up: the innermost line that a student wrote."""
    found = []
    for rank, report in enumerate(reports):
        if report is not None and "error" not in report:
            found.append(f"rank {rank} had returned")
            continue
        file, line, name = (_frames_of(error, rank) or [("", "", "")])[0]
        found.append(f"rank {rank} was in {name} ({file}, line {line})" if name else f"rank {rank} did not return")
    return "; ".join(found)


def one_line(error: object, longest: int = 300) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
