"""Messages between neighbours, of which some may be gone.

Over gloo a message to or from a process that has died raises an error, with one exception (see ``presence``), and other
messages go on. So the loss of a rank costs its neighbours one message. Over NCCL messages go out in groups, which a
lost rank stops for good: no loss is survived there.
"""

from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist
from torch import Tensor

from ringzero.record import wire
from ringzero.unsynced.presence import Waiter, why_gone

Arrived = Callable[[], tuple[set[int], set[int]]]


class Messages:
    """Of this rank with the others of ``group``, on ``device``. ``lost`` are the ranks that were found to be gone."""

    def __init__(self, group: dist.ProcessGroup, device: torch.device):
        self.group, self.lost = group, set[int]()
        self._grouped = wire.goes_in_groups(group, device.type == "cuda")
        self._waiter = Waiter()

    def start(self, sends: Mapping[int, Tensor], receives: Mapping[int, Tensor]) -> Arrived:
        """Begin to send and receive ``{rank: tensor}``, without those that are lost.

        What is returned waits, and says ``(to whom it was sent, from whom it was received)``. No tensor may be used
        before.
        """
        messages: list[tuple[Callable, int, Tensor]]
        messages = [(dist.irecv, peer, tensor) for peer, tensor in receives.items() if peer not in self.lost]
        messages += [(dist.isend, peer, tensor) for peer, tensor in sends.items() if peer not in self.lost]
        if self._grouped:
            started = self._start_together(messages)
        else:
            started = [(post, peer, self._start_one(post, peer, tensor)) for post, peer, tensor in messages]

        def arrived() -> tuple[set[int], set[int]]:
            for _, peer, work in started:
                self._end(peer, work)
            done = [(post, peer) for post, peer, _ in started if peer not in self.lost]
            sent, received = ({peer for kind, peer in done if kind is post} for post in (dist.isend, dist.irecv))
            return sent, received

        return arrived

    def sum(self, vector: Tensor) -> Tensor:
        """The sum of all ranks' ``vector``, without those of lost ranks, as new memory.

        Each rank sends its own to all others, so a lost rank takes no other rank's part with it. All ranks must ask
        together. They add up in the order of ranks, so all have the same bits.
        """
        total, rank = torch.zeros_like(vector), self.group.rank()
        for sender in range(self.group.size()):
            if sender == rank:
                self.start({peer: vector for peer in range(self.group.size()) if peer != rank}, {})()
                total += vector
            else:
                theirs = torch.empty_like(vector)
                _, received = self.start({}, {sender: theirs})()
                if sender in received:
                    total += theirs
        return total

    def _start_together(self, messages: list) -> list:
        operations = [dist.P2POp(post, tensor, group=self.group, group_peer=peer) for post, peer, tensor in messages]
        works = dist.batch_isend_irecv(operations) if operations else []
        ends = [*works, *[None] * (len(messages) - len(works))]  # NCCL returns one work for the whole group
        return [(post, peer, work) for (post, peer, _), work in zip(messages, ends, strict=True)]

    def _start_one(self, post: Callable, peer: int, tensor: Tensor) -> dist.Work | None:
        ends = {"group_dst": peer} if post is dist.isend else {"group_src": peer}
        try:
            return post(tensor, group=self.group, **ends)
        except RuntimeError as error:
            self._lose(peer, error)
            return None

    def _end(self, peer: int, work: dist.Work | None) -> None:
        try:
            if work is not None and self._grouped:
                work.wait()
            elif work is not None:
                self._waiter.wait(work, self.group, peer)
        except RuntimeError as error:
            self._lose(peer, error)

    def _lose(self, peer: int, error: RuntimeError) -> None:
        if self._grouped or why_gone(self.group, peer) is None:  # the peer is there, so this is another error
            raise error
        self.lost.add(peer)
