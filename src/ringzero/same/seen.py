"""What was seen of the runs: the notes of N ranks and of one process, and where they first differ."""

from collections.abc import Iterable
from typing import NamedTuple

import torch

Tensors = dict[str, torch.Tensor]
EXACT = 1e-6  # below this tolerance all elements must agree
AFTER_ADAM = 0.9  # above it so many: Adam moves an element by its rate whatever its gradient's size, so noise is enough
SMALL = 1e-3  # of the largest element of all: tensors whose elements are smaller count as this large


class Cause(NamedTuple):
    """What is the case, by name, and in a sentence that says what to do."""

    name: str
    sentence: str


class Difference(NamedTuple):
    """The first place where runs differ: in which event, in which of its tensors, and that in words."""

    event: int | None
    what: str
    names: list[str]
    words: str


class Seen:
    """The notes of ``many`` ranks and of ``one`` process, and to what part of the largest element they should agree.

    ``shares``: for each rank the notes of one process that had that rank's samples in the step that differs.
    """

    def __init__(self, many: list[dict], one: dict, tolerance: float):
        self.many, self.one, self.tolerance = many, one, tolerance
        self.shares: list[dict] = []
        self.ranks = len(many)

    def differing(self, mine: Tensors, theirs: Tensors, most: float = 1.0) -> list[str]:
        """The names whose tensors differ, or which only one of the two has. ``most`` of the elements must agree."""
        largest = max((_size(t) for t in theirs.values()), default=0.0)
        return [
            name
            for name in mine.keys() | theirs.keys()
            if name not in mine or name not in theirs or not self._close(mine[name], theirs[name], largest, most)
        ]

    def _close(self, a, b, largest, most):
        if a.shape != b.shape:
            return False
        unknown = ~(a.isfinite() & b.isfinite())
        if unknown.any() and not (a[unknown].isnan() == b[unknown].isnan()).all():
            return False
        off = (a - b)[~unknown].abs()
        most = 1.0 if self.tolerance < EXACT else most
        return not off.numel() or off.quantile(most).item() <= self.tolerance * max(_size(b), SMALL * largest)

    def alike(self, mine: Tensors, theirs: Tensors) -> bool:
        return not self.differing(mine, theirs)

    def first_difference(self) -> Difference | None:
        """Where a rank first differs from the one process, or two ranks from each other."""
        if bad := sorted({name for note in self.many for name in self.differing(note["start"], self.one["start"])}):
            return Difference(None, "start", bad, f"before the first step: {listed(bad)} differ.")
        step = 0
        for i, expected in enumerate(self.one["events"]):
            step += expected["kind"] == "step"
            for rank, note in enumerate(self.many):
                kind = note["events"][i]["kind"] if i < len(note["events"]) else ""
                if kind != expected["kind"]:
                    number = step + (kind == "step")  # one process left this step out
                    return Difference(
                        i, "order", [], f"step {max(number, 1)}: rank {rank} did not do what one process does."
                    )
            for what in ("rates", "raw", "final", "state", "parameters", "buffers"):
                for rank, note in enumerate(self.many):
                    if what not in expected:
                        continue
                    found = note["events"][i]
                    due = these(expected[what], found["held"]) if what in ("raw", "final") else expected[what]
                    if bad := self._off(what, found[what], due):
                        after = "after " * (expected["kind"] == "call")
                        words = f"{after}step {max(step, 1)}: {WORDS[what]} of {listed(bad)} on rank {rank} differ"
                        return Difference(i, what, bad, f"{words} from one process's.")
        for rank, note in enumerate(self.many):
            if len(note["events"]) > len(self.one["events"]):
                return Difference(len(self.one["events"]), "order", [], f"rank {rank} did more steps than one process.")
        return None

    def _off(self, what, mine, theirs):
        if what == "rates":
            return [] if mine == theirs else ["the optimizer"]
        if what == "state":  # a sharded optimizer has some of it on each rank
            mine, theirs = these(mine, theirs), these(theirs, mine)
        return sorted(self.differing(mine, theirs, AFTER_ADAM if what in ("state", "parameters") else 1.0))

    def before(self, event: int) -> int:
        """How many batches were taken before the step of this event began."""
        events = self.one["events"]
        if events[min(event, len(events) - 1)]["kind"] == "call":
            calls = [e["taken"] for e in events[:event] if e["kind"] == "call"]
            return calls[-1] if calls else 0
        earlier = [e["taken"] for e in events[:event] if e["kind"] == "step"]
        return earlier[-1] if earlier else 0

    # Of the event that differs

    def observed(self, event: int, what: str) -> list[Tensors]:
        return [note["events"][event][what] for note in self.many]

    def expected(self, event: int, what: str) -> Tensors:
        return self.one["events"][event][what]

    def own(self, event: int, what: str) -> list[Tensors]:
        """What each rank's samples alone give, in one process; nothing where that is not known."""
        if any(len(note["events"]) <= event or what not in note["events"][event] for note in self.shares):
            return []
        return [note["events"][event][what] for note in self.shares]


WORDS = {
    "rates": "the learning rates", "raw": "the gradients", "final": "the clipped gradients", "state": "the averages",
    "parameters": "the parameters", "buffers": "the buffers",
}  # fmt: skip


def scaled(tensors: Tensors, times: float) -> Tensors:
    return {name: tensor * times for name, tensor in tensors.items()}


def factor(mine: Tensors, reference: Tensors, names: Iterable[str]) -> float | None:
    """The number by which the reference is multiplied, if it is one: by least squares."""
    names = [name for name in names if name in mine and name in reference]
    a, b = (flat({name: t[name] for name in names}, dict.fromkeys(names)) for t in (mine, reference))
    below = (b @ b).item()
    return (a @ b).item() / below if below else None


def flat(tensors: Tensors, names: Iterable[str]) -> torch.Tensor:
    parts = [tensors[name] for name in names if name in tensors]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)


def only(tensors: Tensors, name: str) -> Tensors:
    return {name: tensors[name]} if name in tensors else {}


def these(tensors: Tensors, names: Iterable[str]) -> Tensors:
    return {name: tensors[name] for name in names if name in tensors}


def _size(tensor):
    finite = tensor[tensor.isfinite()]
    return finite.abs().max().item() if finite.numel() else 0.0


def is_close_to(value: float, expected: float) -> bool:
    return abs(value - expected) <= 1e-3 * max(abs(expected), 1e-12)


def listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def counted(ranks: list[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
