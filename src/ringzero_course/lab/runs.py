"""A call that a check makes on every rank (``Case``), and what came of it (``Run``)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import torch

from ringzero.collectives import chunk_bounds
from ringzero.record.operation import Operation, bytes_sent, pairs

NOT_RUN = "not run yet"
# Of what a function may be built: sends and receives, or also what the library's collectives are made of.
BY_HAND, LIBRARY = ("send", "recv"), "ringzero's collectives"
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
    watched: bool = False  # each element of the input says where it is and which rank's it is: see ``codes``
    strict: bool = False  # communication has NCCL's rules, on the CPU

    def __str__(self):
        words = [_short(value) for value in self.args]
        words += [f"{name}={_short(value)}" for name, value in self.options.items()]
        if self.numel is None:
            return f"{_count(self.ranks, 'rank')}, " * (self.ranks > 1) + f"({', '.join(words)})"
        kind = str(self.dtype).removeprefix("torch.")
        return ", ".join([_count(self.ranks, "rank"), _count(self.numel, f"{kind} number"), *words])

    def input(self, rank: int) -> torch.Tensor:
        """What ``rank`` brings: different on each rank, the same in every process that asks. Shape ``(numel,)``."""
        assert self.numel is not None
        if self.watched:
            return codes(self.numel, rank)
        generator = torch.Generator("cpu").manual_seed(self.seed * 1024 + rank)
        largest = LARGEST[self.dtype]
        whole = torch.randint(-largest, largest, (self.numel,), generator=generator, dtype=torch.int64, device="cpu")
        return whole.to(self.dtype)


def codes(numel: int, rank: int) -> torch.Tensor:
    """Numbers that tell, however they are summed over ranks, which element they are and which ranks are in the sum."""
    return (torch.arange(numel, device="cpu") << 32) + (1 << rank)


def decode(code: int) -> tuple[int, list[int]] | None:
    """``(element, ranks in it)`` of a code or a sum of codes; None if it is neither."""
    ranks = [rank for rank in range(32) if code >> rank & 1]
    if not ranks or (code >> 32) % len(ranks):
        return None
    return (code >> 32) // len(ranks), ranks


@dataclass
class Run:
    """A case and what came of it. ``problem`` says why there are no results, else it is None.

    ``returned``, ``after`` (the tensor after the call), ``moved`` (whether the function gave its tensor other memory),
    ``views`` (at which element of the tensor the returned one begins, None if it is no view of it), ``operations`` and
    ``printed`` have one entry for each rank.
    """

    case: Case
    problem: str | None = NOT_RUN
    returned: list = field(default_factory=list)
    after: list = field(default_factory=list)
    views: list = field(default_factory=list)
    moved: list = field(default_factory=list)
    operations: list[list[Operation]] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    device: str = "cpu"
    twin: "Run | None" = None  # the same call on gloo, of a strict one
    patience: float = 1.0  # how many times the usual time it gets: more after a call that a busy machine made too slow
    tried_again: bool = False  # after a failure that the machine may have caused
    wrong_on_gloo: str | None = None  # why the claim did not hold there; then this one is not made

    @property
    def world_size(self) -> int:
        return self.case.ranks

    @property
    def numel(self) -> int | None:
        return self.case.numel

    @property
    def element_size(self) -> int:
        return self.case.dtype.itemsize

    def option(self, name: str, default: Any = None) -> Any:
        """The option ``name`` of the call, or ``default`` where the call left it out."""
        return self.case.options.get(name, default)

    @cached_property
    def reports(self) -> list[SimpleNamespace]:
        """The dicts that a harness returned, one for each rank, their entries as attributes."""
        return [SimpleNamespace(**entries) for entries in self.returned]

    @cached_property
    def inputs(self) -> list[torch.Tensor]:
        return [self.case.input(rank) for rank in range(self.world_size)]

    def total(self) -> torch.Tensor:
        """The sum over ranks of the inputs, exact (float64 or int64). Shape ``(numel,)``."""
        wide = torch.float64 if self.case.dtype.is_floating_point else torch.int64
        return torch.stack([x.to(wide) for x in self.inputs]).sum(0)

    def part(self, tensor: torch.Tensor, index: int) -> torch.Tensor:
        """Chunk ``index`` of the N chunks of ``tensor``, as ``ringzero.collectives.chunk_bounds`` cuts it."""
        return part(tensor, self.world_size, index)

    def sends(self) -> list[Operation]:
        """Every send, rank by rank, in the order of the calls."""
        return [op for operations in self.operations for op in operations if op.kind == "send"]

    def messages(self) -> list[tuple[Operation, Operation]]:
        """``(send, receive)`` of every message: the k-th send of a channel meets its k-th receive."""
        return [message for both in pairs(self.operations).values() for message in zip(*both, strict=False)]

    def bytes_sent(self) -> list[int]:
        """Bytes that each rank sent."""
        return [bytes_sent(operations) for operations in self.operations]


Claim = Callable[[Run], str | None]  # why it does not hold, or None


def part(vector: torch.Tensor, ranks: int, rank: int) -> torch.Tensor:
    """A rank's chunk of a vector that is cut among so many ranks: a view."""
    start, stop = chunk_bounds(vector.numel(), ranks)[rank : rank + 2].tolist()
    return vector[start:stop]


def _short(value):
    if _is_named(value):
        return f"{type(value).__name__}({_short(value[0])}, …)"
    if isinstance(value, (list, tuple)) and len(value) > 3:
        return f"[{_short(value[0])}, {_short(value[1])}, … {len(value)} values]"
    if isinstance(value, list) and any(map(_is_named, value)):
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _is_named(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _count(number, of_what):
    return f"{number} {of_what}{'' if number == 1 else 's'}"
