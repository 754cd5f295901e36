"""Run a student's function on ranks, on fresh inputs, and bring back what it returned and what it sent.

Several cases travel in one launch. Each rank leaves a file for each case it finished, so a case that raises or hangs
loses only itself: the cases after it run in a launch of their own. Nothing of the student's is called in this process.
"""

import re
import tempfile
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch

import ringzero
from ringzero.collectives import chunk_bounds
from ringzero.lab import budget
from ringzero.lab.play import is_harness, play
from ringzero.launch import RankError, RankTimeout, plain

HUNG_SHARE = 0.85  # of a call's time: a case that had less of it gets another call
LARGEST = {  # inputs are whole numbers up to this, so that every order of summation gives the same exact sum
    torch.float32: 2**20,
    torch.float64: 2**49,
    torch.bfloat16: 2**4,
    torch.float16: 2**7,
    torch.int32: 2**27,
    torch.int64: 2**59,
}


@dataclass(frozen=True)
class Case:
    """One call on every rank: ``function([tensor,] *args, **options)``. No tensor when ``numel`` is None."""

    ranks: int
    numel: int | None
    dtype: torch.dtype
    args: tuple
    options: dict
    seed: int = 0
    watched: bool = False  # the input says of each element where it is and whose: see ``codes``

    def __str__(self):
        words = [_short(value) for value in self.args]
        words += [f"{name}={_short(value)}" for name, value in self.options.items()]
        if self.numel is None:
            return f"{_count(self.ranks, 'rank')}, " * (self.ranks > 1) + f"({', '.join(words)})"
        kind = str(self.dtype).removeprefix("torch.")
        return ", ".join([_count(self.ranks, "rank"), _count(self.numel, f"{kind} number"), *words])

    def input(self, rank):
        """What ``rank`` brings: different on each rank, the same in every process that asks. Shape ``(numel,)``."""
        if self.watched:
            return codes(self.numel, rank)
        generator = torch.Generator("cpu").manual_seed(self.seed * 1024 + rank)
        largest = LARGEST[self.dtype]
        whole = torch.randint(-largest, largest, (self.numel,), generator=generator, dtype=torch.int64, device="cpu")
        return whole.to(self.dtype)


def codes(numel, rank):
    """Numbers that tell, however they are summed over ranks, which element they are and which ranks are in the sum."""
    return (torch.arange(numel, device="cpu") << 32) + (1 << rank)


def decode(code):
    """``(element, ranks in it)`` of a code or a sum of codes; None if it is neither."""
    ranks = [rank for rank in range(32) if code >> rank & 1]
    if not ranks or (code >> 32) % len(ranks):
        return None
    return (code >> 32) // len(ranks), ranks


@dataclass
class Run:
    """A case and what came of it. ``problem`` says why there are no results, else it is None.

    ``returned``, ``after`` (the tensor after the call) and ``operations`` (records of ``ringzero.launch.trace``,
    with ``batch``: which ``batch_isend_irecv`` of the rank it was part of, or None) have one entry for each rank.
    """

    case: Case
    problem: str | None = "not run yet"
    returned: list = field(default_factory=list)
    after: list = field(default_factory=list)
    guards_kept: list = field(default_factory=list)
    operations: list = field(default_factory=list)
    printed: list = field(default_factory=list)
    device: str = "cpu"

    @property
    def world_size(self):
        return self.case.ranks

    @property
    def numel(self):
        return self.case.numel

    @property
    def element_size(self):
        return self.case.dtype.itemsize

    @cached_property
    def inputs(self):
        return [self.case.input(rank) for rank in range(self.world_size)]

    def total(self):
        """The sum over ranks of the inputs, exact (float64 or int64). Shape ``(numel,)``."""
        wide = torch.float64 if self.case.dtype.is_floating_point else torch.int64
        return torch.stack([x.to(wide) for x in self.inputs]).sum(0)

    def part(self, tensor, index):
        """Chunk ``index`` of the N chunks of ``tensor``, as ``ringzero.collectives.chunk_bounds`` cuts it."""
        start, stop = chunk_bounds(tensor.numel(), self.world_size)[index : index + 2].tolist()
        return tensor[start:stop]

    def sends(self):
        """``(rank, record)`` of every send, rank by rank, in the order of the calls."""
        return [(rank, op) for rank, ops in enumerate(self.operations) for op in ops if op["kind"] == "send"]

    def bytes_sent(self):
        return [sum(op["bytes"] for op in ops if op["kind"] == "send") for ops in self.operations]


def execute(name, function, runs, device):
    """Fill ``runs`` (all with the same number of ranks) by calling ``function`` on ranks."""
    import cloudpickle

    try:
        code = cloudpickle.dumps(function)
    except Exception as error:
        return _fail(runs, f"{name} cannot be sent to the ranks ({_one_line(error)}): create what it needs inside it")
    known = budget.why_not_again(name, function, code)
    if known is not None:
        return _fail(runs, known)
    todo = list(runs)
    while todo:
        todo = _launch(name, function, code, todo, device)
    return None


def _launch(name, function, code, runs, device):
    """One launch of all ``runs``. Returns those that must be run again, in a launch of their own."""
    seconds, ranks = budget.call_seconds(), runs[0].world_size
    with tempfile.TemporaryDirectory(prefix="ringzero-lab-") as directory:
        start, error, printed = time.time(), None, []
        try:
            done = ringzero.launch(
                play, code, [run.case for run in runs], directory,
                world_size=ranks, device=device, timeout=seconds, trace=True,
            )  # fmt: skip
            printed = done.output
        except RankError as caught:
            error, printed = caught, caught.output
        except (RuntimeError, TypeError, ValueError) as caught:
            return _fail(runs, _one_line(caught))
        for index, run in enumerate(runs):
            reports = [_report(directory, index, rank) for rank in range(ranks)]
            run.printed = printed
            if all(report is not None and "returned" in report for report in reports):
                _fill(run, reports)
                start = max(report["time"] for report in reports)
                if not is_clean(run):  # a message left over would be received in the next case
                    return runs[index + 1 :]
                continue
            if error is None and index and not any(reports):
                return runs[index:]  # the ranks left before this case
            if isinstance(error, RankTimeout):  # an error left now is an echo of how the call was ended
                had = min(seconds, time.time() - start)
                if index and had < HUNG_SHARE * seconds and not error.deadlocked:
                    return runs[index:]
                run.problem = f"no end after {had:.0f} s: " + _where(error, reports)
                what = f"{name} hung with {run.case}"
                budget.hung(name, function, code, had, what)
                return _fail(runs[index + 1 :], f"not run: {what}")
            run.problem = _what_failed(error, reports)
            if _same_everywhere(reports) == "NotImplementedError":
                return _fail(runs[index:], not_written(name))
            return runs[index + 1 :]
    return []


def not_written(name):
    return f"{name} is not written yet"


def _fail(runs, problem):
    for run in runs:
        run.problem = problem
    return []


def _fill(run, reports):
    run.problem = None
    for attribute in ("returned", "after", "guards_kept", "operations"):
        setattr(run, attribute, [report[attribute] for report in reports])
    run.device = reports[0]["device"]


def is_clean(run):
    """Whether every message sent was received, and everything asynchronous was waited for."""
    return run.problem is None and unmatched(run) is None and unwaited(run) is None


def unmatched(run):
    """A sentence about messages sent and never received, or the reverse; None if there are none."""
    sizes = {}
    for rank, ops in enumerate(run.operations):
        for op in ops:
            if op["kind"] in ("send", "recv") and op["peer"] is not None:
                pair = (rank, op["peer"]) if op["kind"] == "send" else (op["peer"], rank)
                sizes.setdefault(pair, {"send": [], "recv": []})[op["kind"]].append(op["bytes"])
    for (src, dst), both in sorted(sizes.items()):
        if len(both["send"]) != len(both["recv"]):
            return f"rank {src} sent {len(both['send'])} messages to rank {dst}, which received {len(both['recv'])}"
        if both["send"] != both["recv"]:
            i = next(i for i, (s, r) in enumerate(zip(both["send"], both["recv"], strict=True)) if s != r)
            return (
                f"message {i + 1} from rank {src} to rank {dst} is {both['send'][i]} bytes, "
                f"received into {both['recv'][i]}"
            )
    return None


def unwaited(run):
    """A sentence about the first operation nobody waited for; None if there is none."""
    if run.device == "cuda":
        return None  # there one handle stands for a whole batch, so the others look unwaited
    for rank, ops in enumerate(run.operations):
        for op in ops:
            if op["end"] is None:
                direction = {"send": f" to rank {op['peer']}", "recv": f" from rank {op['peer']}"}.get(op["kind"], "")
                return (
                    f"rank {rank} never called wait() on its {op['kind']}{direction}: "
                    "the data may not be there yet, or may be overwritten on its way"
                )
    return None


def _report(directory, index, rank):
    try:
        return plain.load(Path(directory) / f"{index}-{rank}")
    except (FileNotFoundError, OSError, ValueError):
        return None


def _same_everywhere(reports):
    kinds = {report.get("error") for report in reports if report}
    return kinds.pop() if len(kinds) == 1 else None


def _what_failed(error, reports):
    """The first failing rank, what it raised and the student's own line."""
    first = error.rank if error is not None else 0
    report = reports[first] if first < len(reports) else None
    if report is None or "error" not in report:
        return _how_it_ended(error, first) if error is not None else f"rank {first} left no result"
    text = f"rank {first} raised {report['error']}"
    if report["message"]:
        text += f": {_one_line(report['message'])}"
    return text + _at(report["frames"])


def _how_it_ended(error, rank):
    """A rank that left no report: killed by a signal, by ``os._exit``, or by gloo, which aborts on a wrong size."""
    said = _without_harness(str(error)).split("\n\n")[0].splitlines()
    place = next((line.strip() for line in said if line.startswith("  File ")), None)
    sizes = re.search(r"(\d+) vs (\d+)\. Received data size", error.output[rank] if rank < len(error.output) else "")
    if sizes:
        text = f"rank {rank} got a message of {sizes[1]} bytes and expected one of {sizes[2]}"
    else:
        text = said[0] if said else f"rank {rank} left no result"
    return _one_line(text) + (f" · {place.removeprefix('File ')}" if place else "")


def _at(frames):
    if not frames:
        return ""
    label, line, _, source = frames[-1]
    return f" · {label}, line {line}: {source}" if source else f" · {label}, line {line}"


def _where(error, reports):
    """Where each rank was when the time was up, from the RankTimeout."""
    places = []
    for rank, report in enumerate(reports):
        if report is not None and "error" not in report:
            places.append(f"rank {rank} had returned")
            continue
        block = re.search(rf"^rank {rank} was at((?:\n  File .*)*)", str(error), re.MULTILINE)
        frames = _without_harness(block[1]).strip().splitlines() if block else []
        place = re.match(r'File "?(.*?)"?, line (\d+) in (.*)', frames[0].strip()) if frames else None
        places.append(
            f"rank {rank} waits in {place[3]} ({place[1]}, line {place[2]})" if place else f"rank {rank} did not return"
        )
    return "; ".join(places)


def _without_harness(text):
    return "\n".join(line for line in text.splitlines() if not is_harness(line))


def _one_line(error, longest=300):
    text = " ".join(str(error).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _short(value):
    if isinstance(value, (list, tuple)) and len(value) > 3:
        return f"[{_short(value[0])}, {_short(value[1])}, … {len(value)} values]"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _count(number, of_what):
    return f"{number} {of_what}{'' if number == 1 else 's'}"
