"""A process group that records: every send, receive and collective made from Python becomes an ``Operation``.

``register`` makes a ``torch.distributed`` backend that writes each operation down and passes it on to gloo or NCCL. It
starts no communication of its own.
"""

from collections.abc import Callable
from functools import partial
from os import PathLike

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from ringzero.record import recorder
from ringzero.record.eager import none_compiled
from ringzero.record.operation import HEADER
from ringzero.record.traced_work import TracedBatch, TracedMessage, TracedWork
from ringzero.record.wire import HEADER_TAG


def register(
    backend: str, path: str | PathLike, rank: int, create: Callable | None = None, of_a_script: bool = False
) -> str:
    """Register a backend that records into ``path`` and passes on to ``backend`` ("gloo", "nccl"); its name.

    Or to another one for the CPU: ``create(store, rank, world_size, timeout)`` makes a process group and the gloo
    backend under it.
    """
    name, device = f"traced_{backend}", "cuda" if backend == "nccl" else "cpu"
    creator = _creator(backend, recorder.start(path, rank, of_a_script), create)
    dist.Backend.register_backend(name, creator, devices=[device])
    _group_batches()
    return name


def record_all(path: str | PathLike, rank: int) -> None:
    """Have every group of gloo that this process makes from now on record into ``path``, under gloo's own name.

    For programs that call ``init_process_group`` and ``new_group`` themselves. Groups of other backends stay as they
    are: what is on a GPU ends unseen, and a record of it would cost time.
    """
    name = register("gloo", path, rank, of_a_script=True)
    make = distributed_c10d._new_process_group_helper

    def recorded(group_size, group_rank, ranks, backend, *others, **options):
        devices = dist.BackendConfig(dist.Backend(backend)).get_device_backend_map()
        if set(devices.values()) != {"gloo"}:
            return make(group_size, group_rank, ranks, backend, *others, **options)
        group, store = make(group_size, group_rank, ranks, name, *others, **options)
        if store is not None:  # this rank is in the group
            distributed_c10d._world.pg_map[group] = backend, store
            distributed_c10d._world.pg_backend_config[group] = str(dist.BackendConfig(dist.Backend(backend)))
        return group, store

    distributed_c10d._new_process_group_helper = recorded  # type: ignore[assignment]


def gloo(store, rank, world_size, timeout, name, members):
    """A group of gloo beside those that ``torch.distributed`` knows, recorded where this process records.

    ``name`` and ``members``, ranks of the default group or an empty list, are what its records say. It is for point-to-
    point messages. Its connections close when nobody holds it any more; of one that is recorded, by ``close()``.
    """
    group = dist.ProcessGroupGloo(store, rank, world_size, timeout)
    if (writer := recorder.of_this_process()) is None:
        return group
    recorded = TracedProcessGroup(group, group, rank, world_size, "traced_gloo", writer)
    recorded.described = name, list(members)
    return recorded


def _describe(group):
    """A group's name and its ranks."""
    if group.described:
        return group.described
    members = dist.get_process_group_ranks(group) if group in distributed_c10d._world.pg_map else []
    return group.group_name, members


def _group_batches():
    """Have ``batch_isend_irecv`` send recorded messages as one where the backend can, as it does for torch's groups.

    For gloo, which begins them one by one, it says which messages are together.
    """
    original = distributed_c10d.batch_isend_irecv
    if getattr(original, "groups_recorded", False):
        return

    def batch_isend_irecv(p2p_op_list):
        group = (p2p_op_list[0].group if p2p_op_list else None) or distributed_c10d._get_default_group()
        if not getattr(group, "groups_messages", False):
            with recorder.batch():
                return original(p2p_op_list)
        with distributed_c10d._coalescing_manager(group, p2p_op_list[0].tensor.device, async_ops=True) as together:
            original(p2p_op_list)
        return together.works

    batch_isend_irecv.groups_recorded = True
    distributed_c10d.batch_isend_irecv = dist.batch_isend_irecv = batch_isend_irecv


def _creator(backend, recorder, create):
    types = dist.ProcessGroup.BackendType
    device, kind = (torch.device("cuda"), types.NCCL) if backend == "nccl" else (torch.device("cpu"), types.GLOO)

    def made(store, rank, world_size, timeout):
        if create is not None:
            inner, implementation = create(store, rank, world_size, timeout)
            return wrapped(inner, inner, implementation, rank, world_size)
        if backend == "nccl":
            options = dist.ProcessGroupNCCL.Options()
            options._timeout = timeout
            implementation = dist.ProcessGroupNCCL(store, rank, world_size, options)
        else:
            implementation = dist.ProcessGroupGloo(store, rank, world_size, timeout)
        inner = dist.ProcessGroup(store, rank, world_size)
        inner._set_default_backend(kind)
        inner._register_backend(device, kind, implementation)
        return wrapped(inner, implementation if backend == "gloo" else inner, implementation, rank, world_size)

    def wrapped(inner, messenger, implementation, rank, world_size):
        group = TracedProcessGroup(inner, messenger, rank, world_size, f"traced_{backend}", recorder)
        group._register_backend(device, kind, implementation)  # torch's own DDP asks for it
        return group

    return made


class TracedCall:
    """Sends and receives the messages of one collective of ringzero's own, as the group would."""

    def __init__(self, group, origin, tag):
        self._group, self._recorder, self._origin, self._tag = group, group._recorder, origin, tag

    def send(self, tensors, peer, tag):
        offset = self._record("send", tensors[0], peer, tag)
        self._recorder.note_head(offset, tensors[0])
        return self._group._pass_on("send", offset, tensors, peer, tag)

    def recv(self, tensors, peer, tag):
        return self._group._pass_on("recv", self._record("recv", tensors[0], peer, tag), tensors, peer, tag)

    def _record(self, kind, tensor, peer, tag):
        if tag == HEADER_TAG:
            kind, tag = HEADER, self._tag
        return self._recorder.message(kind, peer, tensor.nbytes, tensor.dtype, tag, self._origin)


class TracedProcessGroup(dist.ProcessGroup):
    """Passes each operation on to ``inner`` and records it.

    Sends and receives are many and small, so they go to ``messenger``, gloo itself: without torch's dispatcher a
    message takes less time, and recording adds about as much.
    """

    def __init__(self, inner, messenger, rank, world_size, name, recorder):
        super().__init__(rank, world_size)
        self._inner, self._messenger, self._name, self._recorder = inner, messenger, name, recorder
        self._world_size = world_size
        self.groups_messages = name != "traced_gloo"
        self._records_itself = hasattr(inner, "recorded")  # it says when an operation is over, and makes work handles
        self._parts = None  # between the start and the end of a batch: where its messages are recorded
        self.described = None  # its name and its ranks, where torch does not know them

    @property
    def unrecorded(self):
        """What sends and receives, for messages that no record is to show."""
        return self._messenger

    def close(self):
        """Close its connections, which cannot be used any more. The records may keep the group itself."""
        self._inner = self._messenger = None

    def begin_call(self, called, tag):
        """Begin a collective that is made of messages; see ``ringzero.record.wire``."""
        return TracedCall(self, self._recorder.call(called, self, _describe), tag)

    def getBackendName(self):  # noqa: N802  (torch's name)
        return self._name

    def _set_group_name(self, name):
        super()._set_group_name(name)
        self._inner._set_group_name(name)

    def _start_coalescing(self, device):
        self._parts = []
        self._recorder.begin_batch()
        self._inner._start_coalescing(device)

    def _end_coalescing(self, device):
        parts, self._parts = self._parts, None
        self._recorder.end_batch()
        work = self._inner._end_coalescing(device)
        return work if work is None or self._records_itself else TracedBatch(work, self._recorder, parts)

    def _pass_on(self, method, offset, *args):
        """Send or receive what is recorded at ``offset``."""
        if self._records_itself:
            self._inner.recorded = (self._recorder, offset)
        work = getattr(self._messenger, method)(*args)
        if self._parts is not None:
            self._parts.append(offset)
            return work  # of no use: the batch has one for all
        return work if self._records_itself else TracedMessage(work, self._recorder, offset)

    def __repr__(self):
        return f"{self._name}(rank {self.rank()} of {self.size()})"


def _recording(method, kind, input_index):
    """A process group method that records a ``kind`` of the tensors in argument ``input_index`` and passes it on."""

    def operation(self, *args, **options):
        tensors = list(_tensors(args[input_index : input_index + 1]))
        size, dtype = sum(map(_bytes, tensors)), tensors[0].dtype if tensors else None
        how = [*args, *options.values()][-1:]  # torch's options of the collective
        root = how[0].rootRank if kind in ROOTED else None
        offset = self._recorder.operation(kind, root, size, dtype, self, 0, _describe)
        call = partial(getattr(self._inner, method), *args, **options)
        if self._records_itself:
            self._inner.recorded = (self._recorder, offset)
            return call()
        if not how or getattr(how[0], "asyncOp", True):
            return TracedWork(call(), self._recorder, offset)
        how[0].asyncOp = True  # NCCL would return nothing, and the record would not say when it was over
        work = self._recorder.waited((offset,), lambda: _finished(call()), from_its_start=True)
        return TracedWork(work, self._recorder, None)

    operation.__name__ = method
    return operation


def _finished(work):
    work.wait()
    return work


def _recording_message(method, kind):
    """A process group method that records a ``kind`` of message between two ranks and passes it on.

    Messages are many, so this is written for speed.
    """

    def operation(self, tensors, *peer_and_tag):
        tensor, tag = tensors[0], peer_and_tag[-1]
        size, peer = tensor.nbytes, peer_and_tag[0] if len(peer_and_tag) > 1 else None  # None: from any rank
        if peer is not None and not 0 <= peer < self._world_size:  # gloo would wait for it for ever
            raise ValueError(f"{kind}: there is no rank {peer}; the group's ranks are 0 to {self._world_size - 1}")
        offset = self._recorder.operation(kind, peer, size, tensor.dtype, self, tag, _describe)
        if kind == "send":
            self._recorder.note_head(offset, tensor)
        return self._pass_on(method, offset, tensors, *peer_and_tag)

    operation.__name__ = method
    return operation


def _bytes(tensor):
    if tensor.layout == torch.strided:
        return tensor.nbytes
    parts = tensor.coalesce()
    return parts.indices().nbytes + parts.values().nbytes


def _tensors(tree):
    for item in tree:
        if isinstance(item, torch.Tensor):
            yield item
        else:
            yield from _tensors(item)


ROOTED = ("broadcast", "reduce", "gather", "scatter")
IN_PLACE = ("all_reduce", "broadcast", "reduce", "barrier")  # argument 0 holds what the rank puts in, else argument 1
# Kind -> torch's names of it. 2.13 calls ..._single what earlier versions call ..._base, and 2.14 gathers so, too.
METHODS = {
    "all_reduce": ("allreduce", "allreduce_coalesced"),
    "broadcast": ("broadcast",),
    "reduce": ("reduce",),
    "all_gather": (
        *("allgather", "allgather_coalesced", "all_gather_single", "_allgather_base"),
        *("all_gather_single_coalesced", "allgather_into_tensor_coalesced"),
    ),
    "gather": ("gather", "gather_single", "gather_into_tensor"),
    "scatter": ("scatter",),
    "reduce_scatter": (
        *("reduce_scatter", "reduce_scatter_single", "_reduce_scatter_base"),
        *("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"),
    ),
    "all_to_all": ("alltoall", "all_to_all_single", "alltoall_base"),
    "barrier": ("barrier",),
}
for _kind, _methods in METHODS.items():
    for _method in _methods:
        setattr(TracedProcessGroup, _method, _recording(_method, _kind, int(_kind not in IN_PLACE)))
for _method, _kind in {"send": "send", "recv": "recv", "recv_anysource": "recv"}.items():
    setattr(TracedProcessGroup, _method, _recording_message(_method, _kind))
for _class in (TracedCall, TracedProcessGroup):
    none_compiled(_class)
