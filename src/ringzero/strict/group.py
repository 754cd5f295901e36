"""A process group on the CPU with NCCL's rules: a program that is right here does not depend on what gloo forgives.

* A communicator does one operation after another, in the order of issue. Messages of one ``batch_isend_irecv`` go
  together; a send or receive that stands alone is over only when its other end runs too.
* Nothing waits when it is issued. ``wait()`` makes the current *stream* wait, not the Python program, which goes on
  until it looks at a result. A blocking call returns no work at all.
* Until the operation is over and somebody has waited, outputs hold poison: NaN, or -1. To read or write what is still
  on its way is an error, with both lines.
* What NCCL refuses is refused.

Seeds decide how long an operation waits before it runs, and whether it reads its inputs when issued or when it runs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from ringzero.strict import watching
from ringzero.strict.accesses import StrictError
from ringzero.strict.communicator import Communicator
from ringzero.strict.pending import Pending, Traffic
from ringzero.strict.rules import check, nothing, reducer, said, words


def creator(seed: int) -> Callable:
    """What makes such process groups, for ``torch.distributed``. From now on all uses of tensors are watched."""
    watching.start()

    def create(store, rank, world_size, timeout):
        gloo = dist.ProcessGroupGloo(store, rank, world_size, timeout)
        return StrictProcessGroup(gloo, rank, world_size, seed), gloo

    return create


class StrictProcessGroup(dist.ProcessGroup):
    """torch's interface to a ``Communicator``: what each call sends to whom, and what comes of what arrives."""

    def __init__(self, gloo: dist.ProcessGroupGloo, rank: int, world_size: int, seed: int):
        super().__init__(rank, world_size)  # type: ignore[call-arg]
        self._rank, self._size = rank, world_size
        self._communicator = Communicator(gloo, rank, seed)
        self.recorded: tuple | None = None  # ``(recorder, offset)`` of the next operation

    def _set_group_name(self, name):
        """The recording group around it has the name."""

    def _issue(self, pending, blocking=False):
        pending.recorded, self.recorded = self.recorded, None
        return self._communicator.issue(pending, blocking)

    def _start_coalescing(self, device=None):
        self._communicator.begin_batch()

    def _end_coalescing(self, device=None):
        return self._communicator.end_batch()

    # ---- messages

    def send(self, tensors, peer, tag=0):
        check(tensors, "send", self._rank, self._size, peer)
        return self._issue(
            Pending("send", said(tag), tensors, [], lambda inputs: (Traffic({peer: inputs[0]}, {}), lambda: []))
        )

    def recv(self, tensors, peer, tag=0):
        check(tensors, "recv", self._rank, self._size, peer)

        def plan(_):
            into = torch.empty_like(tensors[0])
            return Traffic({}, {peer: into}), lambda: [into]

        return self._issue(Pending("recv", said(tag), [], tensors, plan))

    def recv_anysource(self, tensors, tag=0):
        raise StrictError("NCCL cannot receive from any rank: give irecv the rank to receive from, src=...")

    # ---- collectives

    def _collective(self, kind, says, inputs, outputs, piece, like, results, opts=None, source=None, sink=None):
        """Issue a collective, in which each rank exchanges one message with each other rank.

        ``piece(inputs, peer)`` goes to a peer, and a tensor like ``like[peer]`` comes from it; ``results(parts)`` makes
        the outputs of what came from each rank, this one's own piece among them. With a ``source`` only that rank
        sends data, with a ``sink`` only that rank gets any; all other messages are empty.
        """
        check([*inputs, *outputs], kind)
        me, peers = self._rank, [peer for peer in range(self._size) if peer != self._rank]

        def has_data(src, dst):
            return source in (None, src) and sink in (None, dst)

        def plan(inputs):
            def sent_to(peer):
                return piece(inputs, peer) if has_data(me, peer) else nothing(like[peer])

            def room_for(peer):
                return torch.empty_like(like[peer]) if has_data(peer, me) else nothing(like[peer])

            def finish():
                parts = arrived | {me: sent_to(me)}
                return results([parts[rank] for rank in range(self._size)]) if outputs else []

            arrived = {peer: room_for(peer) for peer in peers}
            return Traffic({peer: sent_to(peer) for peer in peers}, arrived), finish

        says = f", {says}" if says else ""
        return self._issue(Pending(kind, says, inputs, outputs, plan), not getattr(opts, "asyncOp", True))

    def allreduce(self, tensors, opts=None):
        opts = opts or dist.AllreduceOptions()
        like, reduce = tensors[0], reducer(opts.reduceOp)
        return self._collective(
            "all_reduce", words(opts.reduceOp, like), tensors, tensors,
            _whole, self._all_like(like), lambda parts: [reduce(parts)], opts,
        )  # fmt: skip

    def broadcast(self, tensors, opts=None):
        opts = opts or dist.BroadcastOptions()
        like, root = tensors[0], opts.rootRank
        return self._collective(
            "broadcast", words(None, like, root), tensors, tensors,
            _whole, self._all_like(like), lambda parts: [parts[root]], opts, source=root,
        )  # fmt: skip

    def reduce(self, tensors, opts=None):
        opts = opts or dist.ReduceOptions()
        like, root, reduce = tensors[0], opts.rootRank, reducer(opts.reduceOp)
        return self._collective(
            "reduce", words(opts.reduceOp, like, root), tensors, tensors if self._rank == root else [],
            _whole, self._all_like(like), lambda parts: [reduce(parts)], opts, sink=root,
        )  # fmt: skip

    def allgather(self, outputs, inputs, opts=None):
        (outputs,), (own,) = outputs, inputs
        return self._collective(
            "all_gather", words(None, own), [own], outputs, _whole, outputs, lambda parts: parts, opts
        )

    def all_gather_single(self, output, own, opts=None):
        if output.numel() != self._size * own.numel():
            raise ValueError(f"all_gather: {output.numel()} elements come out, not {self._size} x {own.numel()}")
        return self._collective(
            "all_gather", words(None, own), [own], [output],
            _whole, self._all_like(own), lambda parts: [torch.stack(parts).view(output.shape)], opts,
        )  # fmt: skip

    def gather(self, outputs, inputs, opts=None):
        (own,), root = inputs, (opts or dist.GatherOptions()).rootRank
        outputs = outputs[0] if outputs else []
        return self._collective(
            "gather", words(None, own, root), [own], outputs,
            _whole, self._all_like(own), lambda parts: parts, opts, sink=root,
        )  # fmt: skip

    def scatter(self, outputs, inputs, opts=None):
        (output,), root = outputs, (opts or dist.ScatterOptions()).rootRank
        inputs = inputs[0] if inputs else []
        return self._collective(
            "scatter", words(None, output, root), inputs, [output],
            _one_each, self._all_like(output), lambda parts: [parts[root]], opts, source=root,
        )  # fmt: skip

    def reduce_scatter(self, outputs, inputs, opts=None):
        (output,), (inputs,) = outputs, inputs
        opts = opts or dist.ReduceScatterOptions()
        reduce = reducer(opts.reduceOp)
        return self._collective(
            "reduce_scatter", words(opts.reduceOp, output), inputs, [output],
            _one_each, self._all_like(output), lambda parts: [reduce(parts)], opts,
        )  # fmt: skip

    def reduce_scatter_single(self, output, own, opts=None):
        if own.numel() != self._size * output.numel():
            raise ValueError(f"reduce_scatter: {own.numel()} elements go in, not {self._size} x {output.numel()}")
        opts = opts or dist.ReduceScatterOptions()
        reduce = reducer(opts.reduceOp)
        return self._collective(
            "reduce_scatter", words(opts.reduceOp, output), [own], [output],
            lambda inputs, peer: inputs[0].view(self._size, *output.shape)[peer], self._all_like(output),
            lambda parts: [reduce(parts)], opts,
        )  # fmt: skip

    def alltoall(self, outputs, inputs, opts=None):
        return self._collective("all_to_all", "", inputs, outputs, _one_each, outputs, lambda parts: parts, opts)

    def all_to_all_single(self, output, own, output_sizes, input_sizes, opts=None):
        def rows(tensor, sizes):
            return tensor.split(list(sizes) if sizes else tensor.shape[0] // self._size)

        return self._collective(
            "all_to_all", "", [own], [output],
            lambda inputs, peer: rows(inputs[0], input_sizes)[peer].contiguous(), rows(output, output_sizes),
            lambda parts: [torch.cat(parts)], opts,
        )  # fmt: skip

    def barrier(self, opts=None):
        """The one call that blocks the program itself."""
        like = self._all_like(torch.empty(0, device="cpu"))
        work = self._collective("barrier", "", [], [], lambda _, peer: like[peer], like, lambda parts: [])
        work.wait()
        work.synchronize()
        return work if getattr(opts, "asyncOp", True) else None

    def _all_like(self, tensor):
        return [tensor] * self._size

    # ---- several at once

    def _coalesced(self, calls, opts):
        self._start_coalescing()
        for call in calls:
            call()
        work = self._end_coalescing()
        if work is not None and not getattr(opts, "asyncOp", True):
            work.wait()
            return None
        return work

    def allreduce_coalesced(self, tensors, opts=None):
        each = dist.AllreduceOptions()
        each.reduceOp, each.asyncOp = opts.reduceOp, True
        return self._coalesced([lambda t=t: self.allreduce([t], each) for t in tensors], opts)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        pairs = zip(outputs, inputs, strict=True)
        return self._coalesced([lambda o=o, i=i: self.all_gather_single(o, i) for o, i in pairs], opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        each = dist.ReduceScatterOptions()
        each.reduceOp, each.asyncOp = opts.reduceOp, True
        pairs = zip(outputs, inputs, strict=True)
        return self._coalesced([lambda o=o, i=i: self.reduce_scatter_single(o, i, each) for o, i in pairs], opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    _allgather_base, _reduce_scatter_base, alltoall_base = all_gather_single, reduce_scatter_single, all_to_all_single


def _whole(inputs, peer):
    """Each peer gets all of the one input."""
    return inputs[0]


def _one_each(inputs, peer):
    """Each peer gets an input of its own."""
    return inputs[peer]
