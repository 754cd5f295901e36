"""What the ranks did: every send, receive and collective made from Python, as plain records.

``register`` makes a ``torch.distributed`` backend that writes each operation down and passes it on to gloo or NCCL. It
starts no communication of its own. The records go into a memory-mapped file, so that another process can read what a
rank did while it hangs and after it crashed. A record is a dict:

    rank      who did it (added when the ranks' records are joined)
    sequence  0, 1, 2, … in the order this rank called
    kind      "send", "recv", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter",
              "reduce_scatter", "all_to_all", "barrier"; "header" for the 16 bytes in which ringzero's own
              collectives compare sizes before data moves
    peer      the other rank of a send or recv, the root of a rooted collective, else None; a rank of ``group``
    bytes     size of the tensors this rank passed in
    dtype     their type, such as "float32"
    group     the name of the process group; ``members``, its ranks
    tag       of a send or recv
    line      where in the caller's code, such as "cell 7 line 4"
    start     seconds (``time.time``) at the call; ``wait``, when its completion was first waited for; ``end``, when
              that returned. The last two are None for what never happened.
"""

import json
import mmap
import struct
import sys
import time

import torch
import torch.distributed as dist

from ringzero.launch import sources

HEADER_TAG, HEADER_BYTES = 2**30, 16
CAPACITY = 2**20  # records; the file is sparse, so room costs nothing until it is used
RECORD = struct.Struct("<BBHiqIiddd")  # kind, dtype, group, peer, bytes, location, tag, start, wait, end
WAIT, END = RECORD.size - 16, RECORD.size - 8  # where in a record the times of waiting are
TIME = struct.Struct("<d")
COUNT = struct.Struct("<q")  # at the head of the file: how many records follow
NONE = -1  # no peer

KINDS = (
    *("send", "recv", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter"),
    *("all_to_all", "barrier", "header"),
)
DTYPES = sorted({str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)})
_KIND = {kind: code for code, kind in enumerate(KINDS)}
_DTYPE = {getattr(torch, name): code for code, name in enumerate(DTYPES)}


_recorder = None  # of this process


def recorded():
    """This process's records so far; none unless it records."""
    return _recorder.records() if _recorder else []


class Recorder:
    """Writes one rank's records to ``path`` and the groups and lines they name to ``path`` + ".names"."""

    def __init__(self, path):
        with open(path, "wb") as file:
            file.truncate(COUNT.size + CAPACITY * RECORD.size)
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._path = path
        self._names = open(f"{path}.names", "w", buffering=1)  # noqa: SIM115  (open as long as the rank lives)
        self._locations, self._groups, self._count = {}, {}, 0

    def operation(self, kind, peer, size, dtype, group, tag):
        """Write one record; its offset in the file, or None when the file is full."""
        if self._count == CAPACITY:
            return None
        location = self._location()
        if group not in self._groups:
            members = dist.get_process_group_ranks(group) if group in dist.distributed_c10d._world.pg_map else []
            self._groups[group] = self._name("group", group.group_name, members)
        offset = COUNT.size + self._count * RECORD.size
        code = _DTYPE.get(dtype, 0)
        peer = NONE if peer is None else peer
        values = (_KIND[kind], code, self._groups[group], peer, size, location, tag, time.time(), 0.0, 0.0)
        RECORD.pack_into(self._memory, offset, *values)
        self._count += 1
        COUNT.pack_into(self._memory, 0, self._count)
        return offset

    def records(self):
        return read(self._path)

    def stamp(self, offset, field):
        """Note the time in a record: when it is first waited for (``WAIT``), when that is over (``END``)."""
        if offset is not None:
            TIME.pack_into(self._memory, offset + field, time.time())

    def _location(self):
        frame = sys._getframe(3)
        while frame.f_back is not None and sources.is_package_code(frame.f_code):
            frame = frame.f_back
        key = (frame.f_code, frame.f_lineno)
        if key not in self._locations:
            self._locations[key] = self._name("line", sources.place(*key))
        return self._locations[key]

    def _name(self, what, *values):
        number = len(self._groups) if what == "group" else len(self._locations)
        self._names.write(json.dumps([what, number, *values]) + "\n")
        return number


def read(path):
    """The records of the rank that wrote ``path``, oldest first; empty if it wrote none."""
    try:
        with open(path, "rb") as file, open(f"{path}.names") as names:
            content = file.read(COUNT.size)
            (count,) = COUNT.unpack(content)
            content = file.read(count * RECORD.size)
            named = {(what, number): values for what, number, *values in map(json.loads, names)}
    except (FileNotFoundError, struct.error):
        return []
    records = []
    for sequence, row in enumerate(RECORD.iter_unpack(content)):
        kind, dtype, group, peer, size, location, tag, start, wait, end = row
        name, members = named["group", group]
        records.append(
            {
                "sequence": sequence,
                "kind": KINDS[kind],
                "peer": None if peer == NONE else peer,
                "bytes": size,
                "dtype": DTYPES[dtype],
                "group": name,
                "members": members,
                "tag": tag,
                "line": named["line", location][0],
                "start": start,
                "wait": wait or None,
                "end": end or None,
            }
        )
    return records


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
        group = TracedProcessGroup(inner, rank, world_size, f"traced_{backend}", recorder)
        group._register_backend(device, kind, implementation)  # torch's own DDP asks for it
        return group

    return create


class TracedWork(dist.Work):
    """A work handle that notes when it was waited for."""

    def __init__(self, work, recorder, offset):
        super().__init__()
        self._work, self._recorder, self._offset = work, recorder, offset

    def wait(self, *timeout):
        offset, self._offset = self._offset, None  # waiting again changes nothing
        self._recorder.stamp(offset, WAIT)
        done = self._work.wait(*timeout)
        self._recorder.stamp(offset, END)
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

    def __init__(self, inner, rank, world_size, name, recorder):
        super().__init__(rank, world_size)
        self._inner, self._name, self._recorder = inner, name, recorder

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
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        dtype = tensors[0].dtype if tensors else None
        tag = args[-1] if kind in ("send", "recv") else 0
        # The few words about a message to come, as ringzero.collectives.run sends them, are no data.
        name = "header" if tag == HEADER_TAG and size <= HEADER_BYTES else kind
        offset = self._recorder.operation(name, _peer(kind, args, options), size, dtype, self, tag)
        return TracedWork(getattr(self._inner, method)(*args, **options), self._recorder, offset)

    operation.__name__ = method
    return operation


def _peer(kind, args, options):
    if kind in ("send", "recv"):
        return args[1] if len(args) > 2 else None  # None: a receive from any rank
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
