"""A rank's dump as operations: what each entry was, whether it ended, and the caller's line.

An entry is what the backend did, not always what was called. NCCL writes the parts of a coalesced call and then an
entry that closes it; only that one knows when they ended. gloo makes a reduce-scatter of a list from one all-reduce for
each rank. Both become the one call again.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ringzero.record import sources
from ringzero.record.operation import Operation

Entry = dict[str, Any]
NO_LINE = "at a line that the dump does not hold"
KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "gather", "scatter")
PIECES = "reduce_scatter"  # torch's function that gloo puts together from all-reduces
DTYPES = {
    "Double": ("float64", 8), "Float": ("float32", 4), "Half": ("float16", 2), "BFloat16": ("bfloat16", 2),
    "Long": ("int64", 8), "Int": ("int32", 4), "Short": ("int16", 2), "Char": ("int8", 1), "Byte": ("uint8", 1),
    "Bool": ("bool", 1), "ComplexFloat": ("complex64", 8), "ComplexDouble": ("complex128", 16),
}  # fmt: skip


class Issued(NamedTuple):
    """An operation as the dump has it. ``place`` counts a group's collectives (torch's ``collective_seq_id``).

    ``group_size`` is what its lists of tensors say, else None; ``pieces`` says that it is a piece of a reduce-scatter.
    """

    operation: Operation
    place: int
    state: str
    group_size: int | None = None
    pieces: bool = False


def issued(rank: int, entries: list[Entry]) -> list[Issued]:
    """What ``rank`` issued, in order.

    The first operation that has not ended is the one that the rank waits for; those behind it wait for it.
    """
    follows_states = any(entry.get("state", "scheduled") != "scheduled" for entry in entries)
    found: list[Issued] = []
    waits = False
    for number, (parts, last) in enumerate(_calls(entries)):
        done = _is_done(last, follows_states)
        for part in parts:
            each = _issued(rank, part, parts, last, done, batch=number if len(parts) > 1 else None)
            if not done:
                each = each._replace(operation=each.operation._replace(wait=None if waits else each.operation.start))
                waits = True
            found.append(each._replace(operation=each.operation._replace(sequence=len(found))))
            if not _is_message(part):
                break  # one operation for all parts
    return found


def merge_pieces(calls: list[Issued], sizes: Mapping[str, int]) -> Iterator[Issued]:
    """gloo's all-reduces, put together to the reduce-scatters that they are pieces of: one for each rank of a group.

    ``sizes`` are those of the groups, by name.
    """
    run: list[Issued] = []
    for call in calls:
        if run and not (call.pieces and _same_call(run, call, sizes)):
            yield _merged(run)
            run = []
        if call.pieces:
            run.append(call)
        else:
            yield call
    if run:
        yield _merged(run)


def _same_call(run, call, sizes):
    first, op = run[0].operation, call.operation
    return (first.line, first.group) == (op.line, op.group) and len(run) < sizes[op.group]


def _merged(run):
    operations = [each.operation for each in run]
    ended = all(op.end is not None for op in operations)
    whole = operations[0]._replace(
        bytes=sum(op.bytes for op in operations),
        wait=next((op.wait for op in operations if op.end is None and op.wait is not None), operations[0].wait),
        end=max(op.end for op in operations) if ended else None,
    )
    return run[-1]._replace(operation=whole)


def _calls(entries: list[Entry]) -> Iterator[tuple[list[Entry], Entry]]:
    """``(its parts, the entry that knows when they ended)`` of each call."""
    open_parts: list[Entry] = []
    for entry in entries:
        if _closes(entry):
            at = next((i for i, part in enumerate(open_parts) if _belongs(part, entry)), len(open_parts))
            yield from (([part], part) for part in open_parts[:at])
            if open_parts[at:]:
                yield open_parts[at:], entry
            open_parts = []
        else:
            if open_parts and not _belongs(open_parts[-1], entry):
                yield from (([part], part) for part in open_parts)
                open_parts = []
            open_parts.append(entry)
    yield from (([part], part) for part in open_parts)


def _closes(entry):
    """Whether the entry ends a coalesced call: then it has no tensors of its own."""
    return _name(entry).endswith("coalesced") and not any(entry.get("input_sizes") or ())


def _belongs(part, other):
    number = "p2p_seq_id" if _is_message(part) else "collective_seq_id"
    same = _is_message(part) == _is_message(other) or _closes(other)
    return same and _group(part) == _group(other) and part.get(number) == other.get(number)


def _issued(rank, entry, parts, last, done, batch):
    start = int(entry.get("time_created_ns") or 0) / 1e9
    ended = int(last.get("time_discovered_completed_ns") or 0) / 1e9
    lines = entry.get("frames") or []
    name = lines[0].get("name", "") if lines else ""
    kind = _kind(_name(entry) if len(parts) == 1 or _is_message(entry) else _name(last), _name(entry), name)
    held = parts if not _is_message(entry) else [entry]
    peer = _peer(entry)
    operation = Operation(
        kind=kind,
        rank=rank,
        start=start,
        wait=start,
        end=(ended or start) if done else None,
        bytes=0 if "_v" in _name(entry) else sum(_bytes(each) for each in held),  # a "v" takes other sizes of each rank
        dtype=_dtype(entry)[0],
        peer=peer,
        group=_group(entry)[0],
        line=line_of(lines),
        batch=batch if peer is not None else None,
    )
    state = last.get("state", "scheduled")
    size = _group_size(kind, entry)
    return Issued(operation, int(entry.get("collective_seq_id") or 0), state, size, name == PIECES and kind == PIECES)


def _is_done(entry, follows_states):
    """gloo never changes an entry's state and says only that it is retired."""
    if follows_states:
        return entry.get("state") == "completed"
    return bool(entry.get("retired") or entry.get("time_discovered_completed_ns"))


def _name(entry):
    """ "all_reduce" of "nccl:all_reduce", "send 0->1" of "nccl:send 0->1"."""
    return str(entry.get("profiling_name", "")).partition(":")[2]


def _group(entry):
    """``(name, description)`` of the process group."""
    return tuple(map(str, entry.get("process_group") or ("", "")))


def _is_message(entry):
    return _name(entry).startswith(("send", "recv"))


def _peer(entry):
    """The other rank of "send 0->1" or "recv 1<-0", within the group; None of a collective."""
    return int(_name(entry).replace("<-", "->").rpartition("->")[2]) if _is_message(entry) else None


def _kind(name, part, called):
    """What was called, in this project's word, from names of the backend and of torch's own function."""
    if part.startswith(("send", "recv")):
        return part[:4]
    if called == "barrier" or "barrier" in name:
        return "barrier"
    if called.startswith(PIECES):
        return PIECES
    for each in (name, part):
        plain = each.lower().strip("_").replace("allgather", "all_gather").replace("allreduce", "all_reduce")
        if kind := next((kind for kind in KINDS if plain.startswith(kind)), ""):
            return kind
    return name or "an operation without a name"


def _bytes(entry):
    sizes = entry.get("input_sizes") or entry.get("output_sizes") or ()
    return sum(_product(size) for size in sizes) * _dtype(entry)[1]


def _product(size):
    product = 1
    for length in size:
        product *= int(length)
    return product


def _dtype(entry):
    """``(name, bytes of an element)``."""
    names = entry.get("input_dtypes") or entry.get("output_dtypes") or ()
    name = names if isinstance(names, str) else names[0] if names else ""
    return DTYPES.get(name, (name.lower() or None, 1))


def _group_size(kind, entry):
    """How many ranks the group has, where a list of a tensor for each shows it (gloo stacks them: a dimension more)."""
    inputs, outputs = entry.get("input_sizes") or (), entry.get("output_sizes") or ()
    whole, part = (inputs, outputs) if kind == "scatter" else (outputs, inputs)
    if kind in ("all_gather", "gather", "scatter") and len(whole) == len(part) == 1:
        return int(whole[0][0]) if list(whole[0][1:]) == list(part[0]) and len(whole[0]) == len(part[0]) + 1 else None
    return len(inputs) if kind == "all_to_all" and len(inputs) > 1 else None


def line_of(frames: list[dict[str, Any]]) -> str:
    """The innermost line of the caller's own code; failing that of any that is not torch's, failing that of any."""
    for fits in (sources.is_callers, lambda file: not sources.is_package_code(file), lambda file: True):
        for frame in frames:
            if fits(str(frame.get("filename", ""))):
                return sources.place(str(frame["filename"]), int(frame.get("line") or 0))
    return NO_LINE
