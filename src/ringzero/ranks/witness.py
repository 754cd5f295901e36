"""What crossed the network between ranks in a box, seen from outside, and whether the ranks' records say the same.

A rank writes its own record, so its program could write what it likes. The kernel sees the packets (``tap``), and in
them gloo's messages. Every message on the wire is 48 bytes that say what it is (``Op`` in gloo/transport/tcp/pair.h),
and its data:

    bytes in all, opcode, slot, offset, bytes of data, remote offset        each 8 bytes, little-endian

A point-to-point message has its tag as slot. A message of a collective has a slot of 2^56 and more: which collective,
and the number of the collective in its group. So the wire says which rank sent how many bytes to which one under which
tag, and how many collectives of which kind a group made. ``contradiction`` compares this with the records.

What is not on the wire is not seen: what ranks compute, when, and what they tell each other through files.
"""

import os
import re
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ringzero.processes.tap import RETIRE_MS, Tap
from ringzero.record.operation import COMMUNICATION, HEADER, Operation
from ringzero.record.wire import HEADER_TAG

HELLO_BYTES = 8  # who connects says first as which of the other end's connections
PREAMBLE = struct.Struct("<6Q")
DATA, SEND_READY, RECEIVE_READY = 1, 2, 3  # opcodes; others do not come
COLLECTIVE = 2**56  # slots from here on are those of collectives
TCP, SYN, ACK = 6, 2, 16
LOOK_SECONDS = 1.0
FORGED = "the ranks' records are not what crossed the network"
ON_THE_WIRE = {"gather": 1, "all_gather": 2, "reduce": 3, "all_reduce": 4, "scatter": 5, "broadcast": 6, "barrier": 7,
               "all_to_all": 8, "reduce_scatter": 4}  # fmt: skip
# What the listening rank of n sends and receives in gloo's algorithms, in bytes for each byte that a rank puts in. The
# other collectives are trees: there it depends on where in the tree that rank is.
SHARE: dict[int, Callable[[int], float]] = {
    ON_THE_WIRE["all_reduce"]: lambda n: 4 * (n - 1) / n,
    ON_THE_WIRE["all_gather"]: lambda n: 2 * (n - 1),
}
ROUNDED = 64  # bytes a rank: pieces of a buffer are filled up

Ports = tuple[int, int]  # of a stream: whence and whereto


class Sent(NamedTuple):
    """A message: ``slot`` as above, ``bytes`` of data."""

    slot: int
    bytes: int


class Stream:
    """One direction of a connection, taken apart into gloo's messages."""

    def __init__(self, sequence: int, opened: bool):
        self.opened = opened  # whether this end connected; the other end listened
        self.sent: list[Sent] = []
        self.foreign = False  # whether something else than gloo's messages came
        self._next = sequence
        self._early: dict[int, bytes] = {}  # what overtook others
        self._skip = HELLO_BYTES if opened else 0
        self._head = b""

    def take(self, sequence: int, data: memoryview) -> None:
        """The next packet's data, which may come twice or too early."""
        ahead = (sequence - self._next + 2**31) % 2**32 - 2**31
        if ahead > 0:
            if len(data) > len(self._early.get(sequence, b"")):
                self._early[sequence] = bytes(data)
            return
        if ahead + len(data) <= 0:
            return  # again
        self._next = (self._next + ahead + len(data)) % 2**32
        self._parse(data[-ahead:])
        # What was early may begin before the place that is reached now: a packet sent again can be cut elsewhere.
        reached = [early for early in self._early if (early - self._next + 2**31) % 2**32 <= 2**31]
        for early in reached:
            if (again := self._early.pop(early, None)) is not None:
                self.take(early, memoryview(again))

    def _parse(self, data: memoryview) -> None:
        at = 0
        while at < len(data) and not self.foreign:
            skipped = min(self._skip, len(data) - at)
            self._skip -= skipped
            at += skipped
            wanted = PREAMBLE.size - len(self._head)
            self._head += data[at : at + wanted]
            at += wanted
            if len(self._head) == PREAMBLE.size:
                self._begin(*PREAMBLE.unpack(self._head))
                self._head = b""

    def _begin(self, whole: int, opcode: int, slot: int, offset: int, size: int, remote_offset: int) -> None:
        carried = size if opcode == DATA else 0
        if opcode not in (DATA, SEND_READY, RECEIVE_READY) or whole != PREAMBLE.size + carried:
            self.foreign = True
        elif opcode == DATA:
            self.sent.append(Sent(slot, size))
        self._skip = carried


@dataclass
class Wire:
    """What crossed in a call.

    ``messages``    ``{(src, dst): {(tag, bytes): how often}}``; None for a rank that could not be told
    ``collectives`` ``{ranks: {(kind on the wire, bytes): how often}}``, for each rank that listens and those that
                    connected to it: the bytes between them. The ranks are a group's, or the last ones of a larger group
    ``unplaced``    ``{kind on the wire: how many}`` in the group with most whose ranks could not be told: its
                    connections were closed before they were looked at
    ``foreign``     what went from one rank to another and was no message of gloo, in words
    ``is_whole``    whether all packets were seen
    """

    messages: dict[tuple[int | None, int | None], Counter] = field(default_factory=lambda: defaultdict(Counter))
    collectives: dict[tuple[int, ...], Counter] = field(default_factory=lambda: defaultdict(Counter))
    foreign: list[str] = field(default_factory=list)
    unplaced: Counter = field(default_factory=Counter)
    is_whole: bool = True


class Witness:
    """Watches the ranks whose process ids are ``pids``, in one network namespace. Raises OSError as ``Tap``."""

    def __init__(self, pids: list[int]):
        self._pids, self._tap, self._lock = pids, Tap(pids[0]), threading.Lock()
        self._streams: dict[Ports, Stream] = {}
        self._ranks: dict[Ports, int] = {}  # whose stream it is, where it was found out
        self._of_all = 0  # how many streams the group of all ranks has
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness of ranks", daemon=True)
        self._thread.start()

    def begin(self, ranks: int) -> None:
        """A call on so many ranks begins: what crossed before is forgotten."""
        with self._lock:
            self._of_all = ranks * (ranks - 1)
            self._take()
            self._streams, self._ranks = {}, {}
            self._tap.lost()

    def end(self, connections: Mapping[int, Iterable[Ports]], over: float) -> Wire:
        """What crossed since ``begin``. ``connections`` are each rank's streams of the group of all.

        ``over``: when the last rank had ended, by ``time.monotonic``.
        """
        handed_over = over + 2 * RETIRE_MS / 1000  # by the kernel
        self._closed.wait(max(0.0, handed_over - time.monotonic()))
        with self._lock:
            self._take()
            known = self._ranks | {ports: rank for rank, all_of_it in connections.items() for ports in all_of_it}
            wire = Wire(is_whole=not self._tap.lost())
            for (source, target), stream in self._streams.items():
                ends = known.get((source, target)), known.get((target, source))
                if stream.foreign and None not in ends and ends[0] != ends[1]:  # others look up names, or ask servers
                    wire.foreign.append(f"a connection of its own from rank {ends[0]}")
                for slot, size in stream.sent:
                    if slot < COLLECTIVE:
                        wire.messages[ends][slot, size] += 1
            _count_collectives(self._streams, known, wire)
        return wire

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._tap.close()

    def _watch(self) -> None:
        while not self._closed.is_set():
            self._tap.wait(LOOK_SECONDS)
            with self._lock:
                if self._closed.is_set():
                    return
                self._take()

    def _take(self) -> None:
        unknown = False
        for packet in self._tap.packets():
            unknown |= self._look_at(packet)
        if unknown:
            self._ranks |= _streams_of(self._pids)

    def _look_at(self, packet: memoryview) -> bool:
        """Take one packet; whether the system must be asked whose stream it is of.

        It takes milliseconds. It is asked for data of unknown streams, once there are more streams than the group of
        all ranks has: those the ranks name themselves.
        """
        if packet[0] >> 4 != 4 or packet[9] != TCP:  # gloo uses nothing else
            return False
        header = (packet[0] & 15) * 4
        source, target, sequence, _, words, flags = struct.unpack_from(">HHIIBB", packet, header)
        if flags & SYN:
            self._streams[source, target] = Stream((sequence + 1) % 2**32, opened=not flags & ACK)
            return False
        stream = self._streams.get((source, target))
        data = packet[header + (words >> 4) * 4 :]
        if stream is None or not data:  # a connection from before the call: torchrun's
            return False
        stream.take(sequence, data)
        return len(self._streams) > self._of_all and (source, target) not in self._ranks


def contradiction(wire: Wire, trace: list[Operation], world_size: int) -> tuple[int, str] | None:
    """A rank and what its record says otherwise than the wire, in a call that ended well; None if they agree.

    None also where the kernel had no room for all packets: then nobody can say.
    """
    if not wire.is_whole:
        return None
    if wire.foreign:
        return 0, f"{FORGED}: there was {wire.foreign[0]}"
    return _other_messages(wire, trace) or _other_collectives(wire, trace, world_size)


def _other_messages(wire: Wire, trace: list[Operation]) -> tuple[int, str] | None:
    """Every message that crossed is recorded, and every recorded one that is over has crossed."""
    recorded: dict[tuple, Counter] = defaultdict(Counter)
    over: dict[tuple, Counter] = defaultdict(Counter)
    headers: Counter = Counter()  # each end of one has a record
    for op in trace:
        if op.kind == "send":
            recorded[op.rank, op.peer_rank][op.tag, op.bytes] += 1
            over[op.rank, op.peer_rank][op.tag, op.bytes] += op.end is not None
        elif op.kind == HEADER:
            headers[frozenset((op.rank, op.peer_rank))] += 1
    unknown = sum((sent for ends, sent in wire.messages.items() if None in ends), Counter())
    for (source, target), sent in wire.messages.items():
        if source is None or target is None:
            continue
        for (tag, size), times in sent.items():
            allowed = recorded[source, target][tag, size]
            if tag == HEADER_TAG:
                allowed = headers[frozenset((source, target))]
            if times > allowed:
                return source, f"{FORGED}: rank {source} sent {size} bytes to rank {target}, and has no record of that"
    for (source, target), sent in over.items():
        for (tag, size), times in sent.items():
            missing = max(0, times - wire.messages[source, target][tag, size])
            if missing > unknown[tag, size]:
                return source, f"{FORGED}: no {size} bytes went from rank {source} to rank {target}, as it recorded"
            unknown[tag, size] -= missing
    left = sum(times for (tag, _), times in unknown.items() if tag != HEADER_TAG)
    return (0, f"{FORGED}: {left} messages more than were recorded") if left > 0 else None


def _other_collectives(wire: Wire, trace: list[Operation], world_size: int) -> tuple[int, str] | None:
    """A group made as many collectives of each kind as its ranks recorded, of as many bytes.

    One that nobody waited for may have crossed, in part or not at all.
    """
    most: Counter = Counter()  # by ranks of a group and kind on the wire
    least: Counter = Counter()
    volume: Counter = Counter()
    over: Counter = Counter()  # of the volume
    everyone = tuple(range(world_size))
    for members, ops in _by_group(trace, everyone).items():
        for kind, sizes, is_over in ops:
            code = ON_THE_WIRE[kind]
            # gloo makes n all-reduces of a reduce-scatter whose input is a list
            most[members, code] += len(members) if kind == "reduce_scatter" else 1
            least[members, code] += is_over and (any(sizes) or kind == "barrier")
            volume[members, code] += max(sizes)
            over[members, code] += max(sizes) * is_over
    found: Counter = Counter()
    carried: Counter = Counter()
    for ranks, seen in wire.collectives.items():
        for (code, size), times in seen.items():
            found[ranks, code] += times
            carried[ranks, code] += times * size
    names = {code: kind for kind, code in reversed(ON_THE_WIRE.items())}
    for (ranks, code), times in found.items():
        if times > sum(most[members, code] for members in {m for m, _ in most} if {*ranks} <= {*members}):
            return ranks[0], f"{FORGED}: ranks {_listed(ranks)} made a collective ({names[code]}) without a record"
    for code, times in wire.unplaced.items():
        if times > sum(most[members, kind] for members, kind in most if kind == code):
            return 0, f"{FORGED}: some ranks made a collective ({names[code]}) without a record"
    if wire.unplaced:
        return None
    for (members, code), times in least.items():
        if found[members, code] < times:
            return members[0], f"{FORGED}: ranks {_listed(members)} recorded a collective ({names[code]}) and made none"
    for code, share in SHARE.items():
        fewest, expected = share(world_size) * over[everyone, code], share(world_size) * volume[everyone, code]
        slack = 0.02 * expected + ROUNDED * world_size * max(found[everyone, code], 1)
        if not fewest - slack <= carried[everyone, code] <= expected + slack:
            return 0, (
                f"{FORGED}: by their records of {names[code]} rank 0 and the others exchanged {expected:.0f} bytes, "
                f"on the wire {carried[everyone, code]}"
            )
    return None


def _by_group(trace: list[Operation], everyone: tuple[int, ...]) -> dict[tuple[int, ...], list]:
    """``{ranks of a group: [(kind, the bytes that each rank put in, whether it is over on all)]}``, in their order."""
    by_rank: dict[tuple, dict[int, list[Operation]]] = defaultdict(lambda: defaultdict(list))
    for op in trace:
        if op.stream == COMMUNICATION and op.kind in ON_THE_WIRE:
            by_rank[op.group, tuple(sorted(op.members)) or everyone][op.rank].append(op)
    found = defaultdict(list)
    for (_, members), ranks in by_rank.items():
        if len(members) > 1:
            for ops in zip(*ranks.values(), strict=False):
                is_over = all(op.end is not None for op in ops)
                found[members].append((ops[0].kind, [op.bytes for op in ops], is_over))
    return found


def _listed(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks))


def _count_collectives(streams: dict[Ports, Stream], known: dict[Ports, int], wire: Wire) -> None:
    """Of the ranks of a group, one listens for all others, on a port of the group's own: it sees all collectives."""
    listening: dict[int, list[Ports]] = defaultdict(list)
    for (source, target), stream in streams.items():
        if stream.opened:
            listening[target].append((source, target))
    for port, connections in listening.items():
        ends = [known.get(ports) for ports in connections] + [known.get((port, connections[0][0]))]
        seen: Counter = Counter()
        for source, target in connections:
            for ports in ((source, target), (target, source)):
                for slot, size in streams[ports].sent if ports in streams else ():
                    if slot >= COLLECTIVE:
                        seen[slot >> 24] += size
        ranks = tuple(sorted(rank for rank in ends if rank is not None))
        if len(ranks) == len(ends):
            wire.collectives[ranks] += Counter((numbered >> 32, size) for numbered, size in seen.items())
        else:
            wire.unplaced |= Counter(numbered >> 32 for numbered in seen)


def _streams_of(pids: list[int]) -> dict[Ports, int]:
    """``{ports: rank}`` of the connections that descendants of these processes, rank by rank, have open."""
    inodes: dict[str, int] = {}
    for rank, pid in enumerate(pids):
        for child in _descendants(pid):
            inodes |= dict.fromkeys(_sockets(child), rank)
    found = {}
    with suppress(OSError):
        for row in Path(f"/proc/{pids[0]}/net/tcp").read_text().splitlines()[1:]:
            columns = row.split()
            if columns[9] in inodes:
                ports = tuple(int(columns[which].split(":")[1], 16) for which in (1, 2))
                found[ports] = inodes[columns[9]]
    return found  # type: ignore[return-value]


def _descendants(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            yield child
            yield from _descendants(child)


def _sockets(pid: int) -> list[str]:
    found = []
    with suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{descriptor}")):
                    found.append(match[1])
    return found
