"""A process group that records: every send, receive and collective made from Python (see ``records``).

``register`` makes a ``torch.distributed`` backend that writes each operation down and passes it on to gloo or NCCL. It
starts no communication of its own.
"""

import torch
import torch.distributed as dist

from ringzero.launch.records import Recorder

HEADER_TAG = 2**30  # of the few words about messages to come that ringzero.collectives.run sends; they are no data

_recorder = None  # of this process


def recorded():
    """This process's records so far; none unless it records."""
    return _recorder.records() if _recorder else []


def _describe(group):
    """A group's name and its ranks."""
    members = dist.get_process_group_ranks(group) if group in dist.distributed_c10d._world.pg_map else []
    return group.group_name, members


def register(backend, path):
    """Register a backend that records into ``path`` and passes on to ``backend`` ("gloo" or "nccl"); its name."""
    global _recorder
    _recorder = Recorder(path)
    name = f"traced_{backend}"
    device = "cuda" if backend == "nccl" else "cpu"
    dist.Backend.register_backend(name, _creator(backend, _recorder), devices=[device])
    return name


def _creator(backend, recorder):
    def create(store, rank, world_size, timeout):
        if backend == "nccl":
            options = dist.ProcessGroupNCCL.Options()
            options._timeout = timeout
            device, kind = torch.device("cuda"), dist.ProcessGroup.BackendType.NCCL
            implementation = dist.ProcessGroupNCCL(store, rank, world_size, options)
        else:
            device, kind = torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO
            implementation = dist.ProcessGroupGloo(store, rank, world_size, timeout)
        inner = dist.ProcessGroup(store, rank, world_size)
        inner._set_default_backend(kind)
        inner._register_backend(device, kind, implementation)
        messenger = implementation if backend == "gloo" else inner
        group = TracedProcessGroup(inner, messenger, rank, world_size, f"traced_{backend}", recorder)
        group._register_backend(device, kind, implementation)  # torch's own DDP asks for it
        return group

    return create


class TracedMessage:
    """The work handle of a send or receive, which notes when it was waited for. There are many, so it is no more."""

    __slots__ = ("_offset", "_recorder", "_work")

    def __init__(self, work, recorder, offset):
        self._work, self._recorder, self._offset = work, recorder, offset

    def wait(self, *timeout):
        offset, self._offset = self._offset, None  # waiting again changes nothing
        self._recorder.begins_to_wait(offset)
        done = self._work.wait(*timeout)
        self._recorder.has_waited(offset)
        return done

    def __getattr__(self, name):
        return getattr(self._work, name)


class TracedWork(dist.Work):
    """The same of a collective, a ``Work`` also to what torch calls from C++."""

    def __init__(self, work, recorder, offset):
        super().__init__()
        self._work, self._recorder, self._offset = work, recorder, offset

    wait, __getattr__ = TracedMessage.wait, TracedMessage.__getattr__

    def is_completed(self):
        return self._work.is_completed()

    def is_success(self):
        return self._work.is_success()

    def exception(self):
        return self._work.exception()

    def source_rank(self):
        return self._work.source_rank()

    def result(self):
        return self._work.result()

    def get_future(self):
        return self._work.get_future()


class TracedCall:
    """Sends and receives the messages of one collective of ringzero's own, as the group would."""

    def __init__(self, group, origin):
        self._messenger, self._recorder, self._origin = group._messenger, group._recorder, origin

    def send(self, tensors, peer, tag):
        offset = self._record("send", tensors[0], peer, tag)
        return TracedMessage(self._messenger.send(tensors, peer, tag), self._recorder, offset)

    def recv(self, tensors, peer, tag):
        offset = self._record("recv", tensors[0], peer, tag)
        return TracedMessage(self._messenger.recv(tensors, peer, tag), self._recorder, offset)

    def _record(self, kind, tensor, peer, tag):
        kind = "header" if tag == HEADER_TAG else kind
        return self._recorder.message(kind, peer, tensor.nbytes, tensor.dtype, tag, self._origin)


class TracedProcessGroup(dist.ProcessGroup):
    """Passes each operation on to ``inner`` and records it.

    Sends and receives, the many and small, go to ``messenger``: gloo itself, past torch's dispatcher. That saves what
    recording them costs.
    """

    def __init__(self, inner, messenger, rank, world_size, name, recorder):
        super().__init__(rank, world_size)
        self._inner, self._messenger, self._name, self._recorder = inner, messenger, name, recorder
        self._world_size = world_size

    def begin_call(self, called):
        """Begin a collective that is made of messages, ``called`` in words: what sends, receives and records them."""
        return TracedCall(self, self._recorder.call(called, self, _describe))

    def getBackendName(self):  # noqa: N802  (torch's name)
        return self._name

    def _set_group_name(self, name):
        super()._set_group_name(name)
        self._inner._set_group_name(name)

    def _start_coalescing(self, device):
        self._inner._start_coalescing(device)

    def _end_coalescing(self, device):
        return self._inner._end_coalescing(device)

    def __repr__(self):
        return f"{self._name}(rank {self.rank()} of {self.size()})"


def _recording(method, kind, input_index):
    """A process group method that records a ``kind`` of the tensors in argument ``input_index`` and passes it on."""

    def operation(self, *args, **options):
        tensors = list(_tensors(args[input_index : input_index + 1]))
        size, dtype = sum(tensor.nbytes for tensor in tensors), tensors[0].dtype if tensors else None
        offset = self._recorder.operation(kind, _root(kind, args, options), size, dtype, self, 0, _describe)
        return TracedWork(getattr(self._inner, method)(*args, **options), self._recorder, offset)

    operation.__name__ = method
    return operation


def _recording_message(method, kind):
    """The same of a message between two ranks, of which there are many: nothing here is looked for."""

    def operation(self, tensors, *peer_and_tag):
        tensor, tag = tensors[0], peer_and_tag[-1]
        size, peer = tensor.nbytes, peer_and_tag[0] if len(peer_and_tag) > 1 else None  # None: from any rank
        if peer is not None and not 0 <= peer < self._world_size:  # gloo would wait for it for ever
            raise ValueError(f"{kind}: there is no rank {peer}; the group's ranks are 0 to {self._world_size - 1}")
        offset = self._recorder.operation(kind, peer, size, tensor.dtype, self, tag, _describe)
        return TracedMessage(getattr(self._messenger, method)(tensors, *peer_and_tag), self._recorder, offset)

    operation.__name__ = method
    return operation


def _root(kind, args, options):
    if kind in ("broadcast", "reduce", "gather", "scatter"):
        *_, last = [*args, *options.values()]
        return last.rootRank
    return None


def _tensors(tree):
    for item in tree:
        if isinstance(item, torch.Tensor):
            yield item
        else:
            yield from _tensors(item)


# torch's name -> (kind, which argument holds what this rank puts in). Several names for one kind are torch's
# own history: 2.13 calls ..._single what earlier versions call ..._base.
for _method, (_kind, _input) in {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce", 0),
    "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0),
    "allgather": ("all_gather", 1),
    "allgather_coalesced": ("all_gather", 1),
    "all_gather_single": ("all_gather", 1),
    "_allgather_base": ("all_gather", 1),
    "all_gather_single_coalesced": ("all_gather", 1),
    "allgather_into_tensor_coalesced": ("all_gather", 1),
    "gather": ("gather", 1),
    "scatter": ("scatter", 1),
    "reduce_scatter": ("reduce_scatter", 1),
    "reduce_scatter_single": ("reduce_scatter", 1),
    "_reduce_scatter_base": ("reduce_scatter", 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 1),
    "alltoall": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all", 1),
    "alltoall_base": ("all_to_all", 1),
    "barrier": ("barrier", 0),
}.items():
    setattr(TracedProcessGroup, _method, _recording(_method, _kind, _input))
for _method, _kind in {"send": "send", "recv": "recv", "recv_anysource": "recv"}.items():
    setattr(TracedProcessGroup, _method, _recording_message(_method, _kind))
