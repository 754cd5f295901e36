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

import _thread
import queue
import random
import threading
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from ringzero.strict import streams, watching
from ringzero.strict.accesses import StrictError
from ringzero.strict.exchange import Exchange
from ringzero.strict.pending import Pending, Traffic
from ringzero.strict.rules import check, nothing, reducer, said, words

LONGEST_DELAY_SECONDS = 0.0005


def creator(seed: int) -> Callable:
    """What makes such process groups, for ``torch.distributed``. From now on all uses of tensors are watched."""
    watching.start()

    def create(store, rank, world_size, timeout):
        gloo = dist.ProcessGroupGloo(store, rank, world_size, timeout)
        return StrictProcessGroup(gloo, rank, world_size, seed), gloo

    return create


class StrictWork(dist.Work):
    """What an asynchronous call returns; of a batch there is one."""

    def __init__(self, entry: list[Pending]):
        super().__init__()
        self._entry = entry
        self._outputs = [output for pending in entry for output in pending.given]

    def wait(self, *_timeout):
        """The current stream waits."""
        for pending in self._entry:
            pending.wait()
            streams.learn(streams.current_stream().clock, pending.clock)
        return True

    def is_completed(self):
        """Whether it is over; then the program itself may rely on it."""
        over = all(pending.is_over() for pending in self._entry)
        if over:
            self.wait()
            self.synchronize()
        return over

    def synchronize(self):
        for pending in self._entry:
            pending.settle()
            streams.host_learns(pending.clock)

    def is_success(self):
        return self.is_completed()

    def exception(self):
        return None

    def result(self):
        self.wait()
        self.synchronize()
        return self._outputs

    def get_future(self):
        """A future, which is over at once; that the program waits is noted when it calls the future's ``wait``."""
        outputs = self.result()
        for pending in self._entry:
            pending.has_not_waited()
        return OverAtOnce(self._entry, outputs)


class OverAtOnce(torch.futures.Future):
    """The future of operations that are over."""

    def __init__(self, entry: list[Pending], outputs: list[torch.Tensor]):
        super().__init__()
        self._entry = entry
        self.set_result(outputs)

    def wait(self):
        for pending in self._entry:
            pending.wait()
        return super().wait()


class StrictProcessGroup(dist.ProcessGroup):
    """One communicator. Operations are carried out in a thread of its own, one entry after another."""

    def __init__(self, gloo: dist.ProcessGroupGloo, rank: int, world_size: int, seed: int):
        super().__init__(rank, world_size)  # type: ignore[call-arg]
        self._rank, self._size = rank, world_size
        self._random = random.Random(f"{seed} {rank}")
        self._stream = streams.Stream()
        self.recorded: tuple | None = None  # ``(recorder, offset)`` of the next operation
        self._together: list[Pending] | None = None  # between the start and the end of a batch
        self._issuers: dict[int, str] = {}  # thread -> its first line, of those that are alive
        self._last_issuer: int | None = None
        self._queue: queue.SimpleQueue[list[Pending]] = queue.SimpleQueue()
        # Not a threading.Thread: it does nothing of its own accord, so who counts threads need not count it.
        _thread.start_new_thread(self._carry_out, (Exchange(gloo, rank),))

    def _carry_out(self, exchange):
        delays = random.Random(self._random.random())
        with watching.quietly():
            while True:
                entry = self._queue.get()
                time.sleep(delays.uniform(0, LONGEST_DELAY_SECONDS))
                exchange.carry(entry)
                del entry  # with what it received: the next one may come late

    def _set_group_name(self, name):
        """The recording group around it has the name."""

    # ---- issue

    def _issue(self, pending: Pending, blocking: bool = False) -> StrictWork | None:
        """Put an operation into the queue. Raises StrictError if what it uses is in use."""
        pending.recorded, self.recorded = self.recorded, None
        self._check_thread(pending)
        if self._together is not None:
            self._together.append(pending)
            return StrictWork([pending])
        work = self._send_off([pending])
        if blocking:
            work.wait()
            return None
        return work

    def _send_off(self, entry):
        here = streams.current_stream()
        here.next()
        self._stream.wait_stream(here)
        number = self._stream.next()
        for pending in entry:
            watching.used(pending, self._stream, number)
            pending.clock, pending.number = self._stream.now(), (self._stream.number, number)
        with watching.quietly():
            for pending in entry:
                if pending.works_in_place() or self._random.random() < 0.5:
                    pending.read_inputs()
                pending.poison_outputs()
        watching.issued(entry)
        self._queue.put(entry)
        return StrictWork(entry)

    def _check_thread(self, pending):
        """Two threads may not take turns: in the next run the order could be another one."""
        me = threading.get_ident()
        alive = {thread.ident for thread in threading.enumerate()}
        self._issuers = {thread: line for thread, line in self._issuers.items() if thread in alive}
        if me in self._issuers and self._last_issuer not in (me, None) and self._last_issuer in self._issuers:
            raise StrictError(
                f"two threads use one communicator, in an order that only chance decides: one in {pending}, the other "
                f"at {self._issuers[self._last_issuer]}; give each thread a process group, or issue from one thread"
            )
        self._issuers.setdefault(me, pending.place)
        self._last_issuer = me

    def _start_coalescing(self, device=None):
        self._together = []

    def _end_coalescing(self, device=None):
        entry, self._together = self._together, None
        return self._send_off(entry) if entry else None

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

    # ---- collectives: what goes to whom, and what comes of what arrives

    def _collective(self, kind, says, inputs, outputs, sends, receives, results, opts=None):
        """``sends(inputs, peer)`` goes to each peer, ``receives(peer)`` is a tensor for what comes from it, and
        ``results(parts)`` makes the outputs of what came from each rank, this one's own part among them."""
        check([*inputs, *outputs], kind)

        def plan(inputs):
            ranks = range(self._size)
            arrived = {peer: receives(peer) for peer in ranks if peer != self._rank}
            outgoing = {peer: sends(inputs, peer) for peer in ranks if peer != self._rank}

            def finish():
                own = sends(inputs, self._rank)
                return results([own if peer == self._rank else arrived[peer] for peer in ranks])

            return Traffic(outgoing, arrived), finish

        says = f", {says}" if says else ""
        return self._issue(Pending(kind, says, inputs, outputs, plan), not getattr(opts, "asyncOp", True))

    def allreduce(self, tensors, opts=None):
        opts = opts or dist.AllreduceOptions()
        like, reduce = tensors[0], reducer(opts.reduceOp)
        return self._collective(
            "all_reduce", words(opts.reduceOp, like), tensors, tensors,
            lambda inputs, peer: inputs[0], lambda peer: torch.empty_like(like), lambda parts: [reduce(parts)], opts,
        )  # fmt: skip

    def broadcast(self, tensors, opts=None):
        opts = opts or dist.BroadcastOptions()
        like, root = tensors[0], opts.rootRank
        return self._collective(
            "broadcast", words(None, like, root), tensors, tensors,
            lambda inputs, peer: inputs[0] if self._rank == root else nothing(like),
            lambda peer: torch.empty_like(like) if peer == root else nothing(like),
            lambda parts: [parts[root]], opts,
        )  # fmt: skip

    def reduce(self, tensors, opts=None):
        opts = opts or dist.ReduceOptions()
        like, root, reduce = tensors[0], opts.rootRank, reducer(opts.reduceOp)
        return self._collective(
            "reduce", words(opts.reduceOp, like, root), tensors, tensors if self._rank == root else [],
            lambda inputs, peer: inputs[0] if peer == root else nothing(like),
            lambda peer: torch.empty_like(like) if self._rank == root else nothing(like),
            lambda parts: [reduce(parts)] if self._rank == root else [], opts,
        )  # fmt: skip

    def allgather(self, outputs, inputs, opts=None):
        (outputs,), (own,) = outputs, inputs
        return self._collective(
            "all_gather", words(None, own), [own], outputs,
            lambda inputs, peer: inputs[0], lambda peer: torch.empty_like(outputs[peer]), lambda parts: parts, opts,
        )  # fmt: skip

    def all_gather_single(self, output, own, opts=None):
        if output.numel() != self._size * own.numel():
            raise ValueError(f"all_gather: {output.numel()} elements come out, not {self._size} x {own.numel()}")
        return self._collective(
            "all_gather", words(None, own), [own], [output],
            lambda inputs, peer: inputs[0], lambda peer: torch.empty_like(own),
            lambda parts: [torch.cat([part.view(-1) for part in parts]).view(output.shape)], opts,
        )  # fmt: skip

    def gather(self, outputs, inputs, opts=None):
        (own,), root = inputs, (opts or dist.GatherOptions()).rootRank
        outputs = outputs[0] if outputs else []
        return self._collective(
            "gather", words(None, own, root), [own], outputs,
            lambda inputs, peer: inputs[0] if peer == root else nothing(own),
            lambda peer: torch.empty_like(own) if self._rank == root else nothing(own),
            lambda parts: parts if self._rank == root else [], opts,
        )  # fmt: skip

    def scatter(self, outputs, inputs, opts=None):
        (output,), root = outputs, (opts or dist.ScatterOptions()).rootRank
        inputs = inputs[0] if inputs else []
        return self._collective(
            "scatter", words(None, output, root), inputs, [output],
            lambda inputs, peer: inputs[peer] if self._rank == root else nothing(output),
            lambda peer: torch.empty_like(output) if peer == root else nothing(output),
            lambda parts: [parts[root]], opts,
        )  # fmt: skip

    def reduce_scatter(self, outputs, inputs, opts=None):
        (output,), (inputs,) = outputs, inputs
        opts = opts or dist.ReduceScatterOptions()
        reduce = reducer(opts.reduceOp)
        return self._collective(
            "reduce_scatter", words(opts.reduceOp, output), inputs, [output],
            lambda inputs, peer: inputs[peer], lambda peer: torch.empty_like(output),
            lambda parts: [reduce(parts)], opts,
        )  # fmt: skip

    def reduce_scatter_single(self, output, own, opts=None):
        if own.numel() != self._size * output.numel():
            raise ValueError(f"reduce_scatter: {own.numel()} elements go in, not {self._size} x {output.numel()}")
        opts = opts or dist.ReduceScatterOptions()
        reduce = reducer(opts.reduceOp)
        return self._collective(
            "reduce_scatter", words(opts.reduceOp, output), [own], [output],
            lambda inputs, peer: inputs[0].view(self._size, -1)[peer], lambda peer: torch.empty_like(output).view(-1),
            lambda parts: [reduce(parts).view(output.shape)], opts,
        )  # fmt: skip

    def alltoall(self, outputs, inputs, opts=None):
        return self._collective(
            "all_to_all", "", inputs, outputs,
            lambda inputs, peer: inputs[peer], lambda peer: torch.empty_like(outputs[peer]), lambda parts: parts, opts,
        )  # fmt: skip

    def all_to_all_single(self, output, own, output_sizes, input_sizes, opts=None):
        def rows(tensor, sizes):
            return tensor.split(list(sizes) if sizes else tensor.shape[0] // self._size)

        into = rows(output, output_sizes)
        return self._collective(
            "all_to_all", "", [own], [output],
            lambda inputs, peer: rows(inputs[0], input_sizes)[peer].contiguous(),
            lambda peer: torch.empty_like(into[peer]), lambda parts: [torch.cat(parts)], opts,
        )  # fmt: skip

    def barrier(self, opts=None):
        """The one call that blocks the program itself."""
        like = torch.empty(0, device="cpu")
        work = self._collective(
            "barrier", "", [], [], lambda inputs, peer: like, lambda peer: nothing(like), lambda parts: []
        )
        work.wait()
        work.synchronize()
        return work if getattr(opts, "asyncOp", True) else None

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
