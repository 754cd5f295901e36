"""Operations that NCCL would never run, though all their ends are there: ranks have them in queues in other orders."""

from typing import NamedTuple

from ringzero.explain.queues import Queues
from ringzero.explain.state import RankState
from ringzero.explain.words import SHOWN, doing, with_peer
from ringzero.record.operation import Operation


class BehindOthers(NamedTuple):
    """``waits`` are ``(operation that runs, its other end, what that other rank runs instead)``."""

    waits: list[tuple[Operation, Operation, Operation]]

    def sentence(self, ranks: list[RankState]) -> str:
        waits = [
            f"rank {op.rank} {doing(op)}, {op.line}, which rank {end.rank} has behind its {with_peer(head)}, "
            f"{head.line}"
            for op, end, head in self.waits[:SHOWN]
        ]
        advice = ""
        if all(op.is_message for op, *_ in self.waits):
            advice = " Put messages that must go at once into one dist.batch_isend_irecv."
        return (
            "gloo forgives this, NCCL does not: there a rank's operations run one after another, in the order of the "
            f"calls. {'; '.join(waits)}.{advice}"
        )


def behind_others(ranks: list[RankState]) -> BehindOthers | None:
    """Where operations go through queues: ends that are all there, and never run at once."""
    if not any(rank.queued for rank in ranks):
        return None
    queues = Queues([rank.communication for rank in ranks])
    waits = [(op, *behind) for op in queues.stuck() for behind in queues.behind(op)]
    return BehindOthers(waits) if waits else None
