"""What the ranks did: every send, receive and collective made from Python, as plain records.

``register`` makes a ``torch.distributed`` backend that writes each operation down and passes it on to gloo
or NCCL. It starts no communication of its own. A record is a dict:

    rank      who did it (added when the ranks' records are joined)
    sequence  0, 1, 2, … in the order this rank called
    kind      "send", "recv", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter",
              "reduce_scatter", "all_to_all", "barrier"; "header" for the 16 bytes in which ringzero's own
              collectives compare sizes before data moves
    peer      the other rank of a send or recv, the root of a rooted collective, else None; a rank of ``group``
    bytes     size of the tensors this rank passed in
    group     the name of the process group
    start, end  seconds (``time.time``): the call, and the return of ``wait`` (None if never waited for)
"""

import time

import torch
import torch.distributed as dist

HEADER_TAG, HEADER_BYTES = 2**30, 16
_records = []


def recorded():
    """This process's records so far, as plain data."""
    return [dict(record) for record in _records]


def register(backend):
    """Register a recording backend over ``backend`` ("gloo" or "nccl") and return its name."""
    name = f"traced_{backend}"
    if not hasattr(dist.Backend, name.upper()):
        device = "cuda" if backend == "nccl" else "cpu"
        dist.Backend.register_backend(name, _creator(backend), devices=[device])
    return name


def _creator(backend):
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
        return TracedProcessGroup(inner, rank, world_size, f"traced_{backend}")

    return create


class TracedWork(dist.Work):
    """A work handle that notes when it was waited for."""

    def __init__(self, work, record):
        super().__init__()
        self._work, self._record = work, record

    def wait(self, *timeout):
        done = self._work.wait(*timeout)
        if self._record["end"] is None:
            self._record["end"] = time.time()
        return done

    def __getattr__(self, name):
        return getattr(self._work, name)

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


class TracedProcessGroup(dist.ProcessGroup):
    """Passes each operation on to ``inner`` and records it."""

    def __init__(self, inner, rank, world_size, name):
        super().__init__(rank, world_size)
        self._inner, self._name, self._group_name = inner, name, ""

    @property
    def group_name(self):
        return self._group_name

    def _set_group_name(self, name):
        self._group_name = name

    def getBackendName(self):  # noqa: N802  (torch's names here and below)
        return self._name

    def _get_backend(self, device):
        return self._inner

    def _start_coalescing(self, device):
        self._inner._start_coalescing()

    def _end_coalescing(self, device):
        return self._inner._end_coalescing()

    def __repr__(self):
        return f"{self._name}(rank {self.rank()} of {self.size()})"


def _recording(method, kind, input_index):
    """A process group method that records a ``kind`` of the tensors in argument ``input_index`` and passes it on."""

    def operation(self, *args, **options):
        record = {
            "sequence": len(_records),
            "kind": "header" if _is_header(kind, args) else kind,
            "peer": _peer(kind, args, options),
            "bytes": sum(tensor.numel() * tensor.element_size() for tensor in _tensors(args[input_index:][:1])),
            "group": self.group_name,
            "start": time.time(),
            "end": None,
        }
        _records.append(record)
        return TracedWork(getattr(self._inner, method)(*args, **options), record)

    operation.__name__ = method
    return operation


def _is_header(kind, args):
    """A few words about a message to come, as ``ringzero.collectives.run`` sends them; not data."""
    return kind in ("send", "recv") and args[-1] == HEADER_TAG and args[0][0].nbytes <= HEADER_BYTES


def _peer(kind, args, options):
    if kind in ("send", "recv"):
        return args[1] if len(args) > 2 else None  # None: a receive from any rank
    *_, last = [None, *args, *options.values()]
    return last.rootRank if kind in ("broadcast", "reduce", "gather", "scatter") else None


def _tensors(tree):
    for item in tree:
        if isinstance(item, torch.Tensor):
            yield item
        else:
            yield from _tensors(item)


# torch's name -> (kind, which argument holds what this rank puts in). Several names for one kind are torch's
# own history: 2.13 calls ..._single what earlier versions call ..._base.
for _method, (_kind, _input) in {
    "send": ("send", 0),
    "recv": ("recv", 0),
    "recv_anysource": ("recv", 0),
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
