"""Records of ranks that hold last operations only, cut so that all begin at one place."""

from collections.abc import Sequence

from ringzero.record.operation import COMMUNICATION, Operation
from ringzero.record.trace_file import Last, channel


def aligned(ranks: Sequence[Last]) -> tuple[list[list[Operation]], dict[tuple, int]]:
    """``(operations of each rank, lacking)``: of each channel those from the first place that all its ranks still have.

    ``lacking`` says how many collectives of a group came before that, by the keys of ``RankState.collectives``. The
    messages of ringzero's own collectives have no such places: where earlier ones are lost, the record counts as cut.
    """
    begin: dict[tuple, int] = {}
    for last in ranks:
        first: dict[tuple, int] = {}
        for op, place in zip(last.operations, last.places, strict=True):
            if op.stream == COMMUNICATION:
                first.setdefault(channel(op), place)
        for key, place in (last.counts | first).items():
            begin[key] = max(begin.get(key, 0), place)
    kept = [
        [op for op, place in zip(last.operations, last.places, strict=True) if place >= begin.get(channel(op), 0)]
        for last in ranks
    ]
    for last, operations in zip(ranks, kept, strict=True):
        if operations and last.operations[0].sequence and any(op.call for op in last.operations):
            operations[-1] = operations[-1]._replace(missing=last.operations[0].sequence)
    return kept, {key: place for key, place in begin.items() if place and key[0] != "message"}
