"""Whether the ranks call the same collective, checked before any of its data is sent.

Each rank sends a header, which says what it calls and brings, to the ranks that it will send data to. Without it a
mismatch would be a hang or worse: gloo ends the process when a larger buffer arrives in a smaller one, and says nothing
the other way round. A header takes a third of the time of a small message, so a call is checked the first time it is
made in a group. A rank that later makes another call hangs, and ``ringzero.launch`` says why.
"""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary
from zlib import crc32

import torch
import torch.distributed as dist

from ringzero.collectives.program import Program
from ringzero.collectives.schedule import Schedule
from ringzero.record.wire import HEADER_TAG

HEADER_BYTES = 128

_agreed: WeakKeyDictionary[dist.ProcessGroup, set["Header"]] = WeakKeyDictionary()  # calls checked in each group


class Header(NamedTuple):
    """What a rank calls, and how many ``elements`` it brings, or sends to the rank that gets the header.

    ``algorithm`` is a number that differs where the algorithm, its root or its number of chunks does.
    """

    called: str
    algorithm: str
    elements: str
    dtype: str

    @classmethod
    def of(cls, schedule: Schedule, op: str, elements: int, dtype: torch.dtype) -> "Header":
        called = f'{schedule.collective}(op="{op}")' if "reduce" in schedule.collective else schedule.collective
        first = schedule.rounds[0] if len(schedule.rounds) else ""
        chosen = f"{schedule.name} {schedule.chunks} {schedule.root} {len(schedule.rounds)} {first}"
        return cls(called, str(crc32(chosen.encode())), str(elements), str(dtype))

    def packed(self) -> torch.Tensor:
        text = "\n".join(self).encode().ljust(HEADER_BYTES, b"\0")
        return torch.frombuffer(bytearray(text), dtype=torch.uint8)

    @classmethod
    def unpacked(cls, packed: torch.Tensor) -> "Header":
        return cls(*bytes(packed.tolist()).rstrip(b"\0").decode().split("\n"))


def check_headers(
    messenger: Any,
    group: dist.ProcessGroup,
    mine: Header,
    program: Program,
    splits: tuple[tuple[int, ...], tuple[int, ...]] | None,
) -> None:
    """Raise ValueError unless every rank that this one receives from calls what it calls.

    With ``splits`` (see ``run.run``) each link carries another number of elements, so each call is checked.
    """
    agreed = _agreed.setdefault(group, set())
    if mine in agreed or not (program.sends_to or program.receives_from):
        return

    def of(direction, peer):
        return mine._replace(elements=str(splits[direction][peer])) if splits else mine

    arrived = {peer: torch.empty(HEADER_BYTES, dtype=torch.uint8, device="cpu") for peer in program.receives_from}
    works = [messenger.recv([header], peer, HEADER_TAG) for peer, header in arrived.items()]
    works += [messenger.send([of(0, peer).packed()], peer, HEADER_TAG) for peer in program.sends_to]
    for work in works:
        work.wait()
    for peer, packed in arrived.items():
        expected, theirs = of(1, peer), Header.unpacked(packed)
        if theirs != expected:
            raise ValueError(_difference(group.rank(), expected, peer, theirs))
    if not splits:
        agreed.add(mine)


def _difference(rank, mine, peer, theirs):
    """In words, how two headers differ."""
    if mine[:2] != theirs[:2]:
        more = ", but with another algorithm, root or number of chunks" if mine.called == theirs.called else ""
        return (
            f"rank {peer} of the group called {theirs.called}, rank {rank} called {mine.called}{more}; every rank must "
            "make the same calls in the same order"
        )
    if mine.called == "all_to_all":
        return (
            f"rank {peer} of the group sends {theirs.elements} elements of {theirs.dtype}, rank {rank} expects "
            f"{mine.elements} of {mine.dtype}; input_split_sizes on the one must be output_split_sizes on the other"
        )
    return (
        f"rank {peer} of the group brought {theirs.elements} elements of {theirs.dtype}, rank {rank} brought "
        f"{mine.elements} of {mine.dtype}; every rank must pass a tensor of the same size and dtype"
    )
