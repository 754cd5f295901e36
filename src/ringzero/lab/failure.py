"""Why a run proves nothing, in sentences: what a rank raised, where the ranks wait, which messages were left over."""

import re

from ringzero.explain.report import SLOW
from ringzero.lab.runs import Run
from ringzero.ranks import RankError
from ringzero.record import sources
from ringzero.record.operation import pairs


def not_written(name: str) -> str:
    """The reason where a function still raises NotImplementedError."""
    return f"{name} is not written yet"


def is_clean(run: Run) -> bool:
    """Whether every message sent was received, and everything asynchronous was waited for."""
    return run.problem is None and unmatched(run) is None and unwaited(run) is None


def unmatched(run: Run) -> str | None:
    """A sentence about messages sent and never received, or the reverse; None if there are none."""
    for (src, dst, *_), (sends, receives) in sorted(pairs(run.operations).items(), key=lambda item: item[0]):
        if len(sends) != len(receives):
            return f"rank {src} sent {len(sends)} messages to rank {dst}, which received {len(receives)}"
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
            if op.end is None:
                direction = {"send": f" to rank {op.peer}", "recv": f" from rank {op.peer}"}.get(op.kind, "")
                return (
                    f"rank {rank} never called wait() on its {op.kind}{direction}, {op.line}: "
                    "the data may not be there yet, or may be overwritten on its way"
                )
    return None


def same_everywhere(reports: list) -> str | None:
    """The name of the error that all ranks raised, if it is one."""
    kinds = {report.get("error") for report in reports if report}
    return kinds.pop() if len(kinds) == 1 else None


ENDLESS = "of computing and no end: does a loop never end?"  # the end of what a rank raises that computes for long


def is_endless(report: dict | None) -> bool:
    """Whether the rank of this report was ended because it computed for long."""
    return report is not None and report.get("error") == "TimeoutError" and report["message"].endswith(ENDLESS)


HINTS = {  # by words of an error's message, what a beginner cannot see in them
    "'NoneType' object has no attribute 'wait'": "a collective without async_op=True waits itself and returns None",
}


def raised(rank: int, report: dict, name: str = "") -> str:
    """What ``rank`` raised and the line, from its report; also the line of ``name`` that called what raised it."""
    text = f"rank {rank} raised {report['error']}"
    if report["message"]:
        text += f": {one_line(report['message'])}"
    text += next((f" ({hint})" for words, hint in HINTS.items() if words in report["message"]), "")
    if not report["frames"]:
        return text
    text += f" · {_line(report['frames'][-1])}"
    of_its_own = [frame for frame in report["frames"] if frame[2] == name]
    if of_its_own and of_its_own[-1] is not report["frames"][-1]:
        text += f" · called in {name}, {_line(of_its_own[-1])}"
    return text


def _line(frame):
    label, line, _, source = frame
    return f"{label}, line {line}" + (f": {source}" if source else "")


def ended(error: RankError, rank: int) -> str:
    """How a rank ended that left no report: killed by a signal, by ``os._exit``, or by gloo (a wrong size)."""
    said = _without_harness(str(error)).split("\n\n")[0].splitlines()
    place = next((line.strip() for line in said if line.startswith("  File ")), None)
    sizes = re.search(r"(\d+) vs (\d+)\. Received data size", error.output[rank] if rank < len(error.output) else "")
    if said and "disagree" in said[0]:
        return one_line(said[0], longest=700)
    if sizes:
        text = f"rank {rank} got a message of {sizes[1]} bytes and expected one of {sizes[2]}"
    else:
        text = said[0] if said else f"rank {rank} left no result"
    return one_line(text) + (f" · {place.removeprefix('File ')}" if place else "")


def no_end(error: RankError, seconds: float, reports: list, name: str = "") -> str:
    """Why the ranks had not ended after ``seconds``: ``launch``'s sentence, or where each rank was if it has none.

    Where that is in what ``name`` calls, such as a function of the lab, also the line of ``name``.
    """
    why = why_stuck(error)
    if why in ("", SLOW):
        why = _places(error, reports)
    return f"no end after {seconds:.0f} s: {why}{_called_in(error, name)}"


def _called_in(error, name):
    for rank in range(len(error.output)):
        own = _own_frames(error, rank)
        lines = [(file, line) for file, line, function in own if function == name]
        if lines and own[0][2] != name:
            file, line = lines[0]
            return f" In {name}, {file}, line {line}."
    return ""


def _own_frames(error, rank):
    """``(file, line, function)`` of a rank's stack, innermost first, without the library's."""
    block = re.search(rf"^rank {rank} was at((?:\n  File .*)*)", str(error), re.MULTILINE)
    frames = re.findall(r'File "?(.*?)"?, line (\d+) in (.*)', block[1]) if block else []
    return [frame for frame in frames if not sources.is_package_code(frame[0])]


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
        file, line, name = (_own_frames(error, rank) or [("", "", "")])[0]
        found.append(f"rank {rank} was in {name} ({file}, line {line})" if name else f"rank {rank} did not return")
    return "; ".join(found)


def is_harness(filename: str) -> bool:
    """Whether frames of this file are the lab's own: they are no part of what the student did."""
    return "/ringzero/lab/" in filename.replace("\\", "/")


def _without_harness(text):
    return "\n".join(line for line in text.splitlines() if not is_harness(line))


def one_line(error: object, longest: int = 300) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
