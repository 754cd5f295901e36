"""torch's profiler: the events of one rank's trace (Kineto writes it) as a ``Profile``.

On a CPU, operators are events ("aten::mm"), and so is what gloo does ("gloo:all_reduce"), from the call on until it is
complete. On a GPU there is one event for each kernel: NCCL's ("ncclDevKernel_AllReduce_Sum_f32_RING_LL") are what is
communicated, all others what is computed. A kernel of NCCL runs from the moment its stream comes to it, and spins until
the other ranks are there. Host events say where a kernel was launched: in which step, in the backward pass or not.

The arguments of NCCL's kernels, and of the host's ``record_param_comms``, say more: "Collective name", "In msg nelems",
"Process Group Ranks", "Seq". gloo's events have sizes only if the profile was taken with ``record_shapes=True``.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from ringzero.profiles.files import Events
from ringzero.profiles.profile import Profile
from ringzero.record.operation import COMPUTE, MESSAGES, Operation
from ringzero.record.spans import Spans, union

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCHES = ("cuda_runtime", "cuda_driver", "hip_runtime")
NCCL_KERNEL = re.compile(r"[nr]ccl\w*Kernel_(?P<what>\w+)")
CPU_CALL = re.compile(r"(?:gloo|mpi|ucc):(?P<what>\w+)")
STEP = re.compile(r"ProfilerStep#(\d+)")
NODE = "autograd::engine::evaluate_function"
AROUND_OPERATORS = ("autograd::", "torch::autograd::", "c10d::", "_c10d_functional::", "record_param_comms")
# Kinds of ``Operation`` by a part of torch's and NCCL's names for them; the first that is in the name counts.
KINDS = {
    "allreduce": "all_reduce", "reducescatter": "reduce_scatter", "allgather": "all_gather", "alltoall": "all_to_all",
    "sendrecv": "send_recv", "barrier": "barrier", "broadcast": "broadcast", "gather": "gather", "scatter": "scatter",
    "reduce": "reduce", "recv": "recv", "send": "send",
}  # fmt: skip
MEET = {*KINDS.values()} - {"send_recv"}  # NCCL's kernel for any messages: with whom, only arguments can say
DTYPES = {  # as torch's C++ and its profiler call them: torch's name in Python, and bytes of an element
    "float": ("float32", 4), "half": ("float16", 2), "bfloat16": ("bfloat16", 2), "double": ("float64", 8),
    "long": ("int64", 8), "longint": ("int64", 8), "int": ("int32", 4), "short": ("int16", 2), "char": ("int8", 1),
    "signedchar": ("int8", 1), "byte": ("uint8", 1), "unsignedchar": ("uint8", 1), "bool": ("bool", 1),
    "float8_e4m3fn": ("float8_e4m3fn", 1), "float8_e5m2": ("float8_e5m2", 1),
}  # fmt: skip


def is_kineto(trace: Events) -> bool:
    """Whether torch's profiler wrote it: no other has these categories."""
    return any(event.get("cat") in ("cpu_op", "user_annotation", *ON_GPU) for event in trace.events)


def begin(trace: Events) -> int:
    """When the first event began by the rank's clock, in nanoseconds; of a rank with an old torch, since it booted."""
    first = min(event["ts"] for event in trace.events if event["ph"] == "X")
    return _base(trace) + int(first * 1e3)


def profile(trace: Events, rank: int, origin: int) -> Profile:
    """The rank's ``Profile``; times count from ``origin``, in nanoseconds as ``begin`` has them."""
    events = [event for event in trace.events if event["ph"] == "X" and "args" in event]
    host = _Host(trace, events, origin)
    on_gpu = [event for event in events if event.get("cat") in ON_GPU]
    launches = _of_gpu(on_gpu, host, rank) if on_gpu else _of_cpu(events, host, rank)
    operations = sorted((op for _, _, op in launches), key=lambda op: op.start)
    return Profile(
        rank,
        trace.file,
        operations,
        union((op.start, op.last) for op in operations if op.stream == COMPUTE),
        dict(_meetings(launches, host)),
        _on_the_device(launches, host) if on_gpu else host.steps,
        world_size=_number(_distributed(trace).get("world_size")),
        host=trace.about.get("host_name"),
        notes=tuple(_notes(trace, events, on_gpu)),
    )


def rank_of(trace: Events) -> int | None:
    """The rank that the trace, or else the file's name, says."""
    by_name = re.search(r"rank[-_ ]?(\d+)", trace.file.replace("\\", "/").split("/")[-1])
    said = _number(_distributed(trace).get("rank"))
    return said if said is not None else int(by_name[1]) if by_name else None


class Launch(NamedTuple):
    """What the host had done, when it asked for it, and the arguments of the event."""

    time: float
    arguments: dict[str, Any]
    operation: Operation


class _Host:
    """What the host's events say about a moment: the step, and what part of the step the thread was in."""

    def __init__(self, trace: Events, events: list[dict[str, Any]], origin: int):
        self.shift = _base(trace) - origin
        configured = _distributed(trace).get("pg_config") or []
        self.groups = {str(group.get("pg_name")): tuple(group.get("ranks") or ()) for group in configured}
        annotations = [event for event in events if event.get("cat") == "user_annotation"]
        named = ((STEP.match(event["name"]), event) for event in annotations)
        self.steps = {
            int(match[1]): self.span(event) for match, event in sorted(named, key=lambda pair: _start(pair[1])) if match
        }
        backward = [event for event in events if event["name"].startswith(NODE)]
        optimizer = [event for event in annotations if event["name"].startswith("Optimizer.")]
        self.parts = {"backward": self._by_thread(backward), "optimizer": self._by_thread(optimizer)}
        self.begins = sorted(
            (begin, part) for part, threads in self.parts.items() for spans in threads.values() for begin, _ in spans
        )
        self.calls = sorted(
            (event["tid"], *self.span(event), event["name"])
            for event in annotations
            if event["name"].startswith("nccl:")
        )
        operators = [event for event in events if event.get("cat") == "cpu_op"]
        threads = Counter(event["tid"] for event in operators if not event["name"].startswith(AROUND_OPERATORS))
        self.main_thread = max(threads, key=lambda thread: threads[thread], default=None)
        self.launched = {
            event["args"]["correlation"]: event
            for event in events
            if event.get("cat") in LAUNCHES and "correlation" in event["args"]
        }

    def time(self, microseconds: float) -> float:
        """Seconds since the origin."""
        whole = int(microseconds)
        return (whole * 1000 + self.shift) / 1e9 + (microseconds - whole) / 1e6

    def span(self, event: dict[str, Any]) -> tuple[float, float]:
        return self.time(event["ts"]), self.time(event["ts"]) + event["dur"] / 1e6

    def part(self, thread: Any, time: float) -> str:
        """What ``thread`` was doing: "forward" is what comes before a backward pass; else it is "computing"."""
        for part, spans in self.parts.items():
            if _covers(spans.get(thread, []), time):
                return part
        place = bisect_right(self.begins, (time, ""))
        is_forward = thread == self.main_thread and place < len(self.begins) and self.begins[place][1] == "backward"
        return "forward" if is_forward else "computing"

    def step(self, time: float) -> int | None:
        """The number of the step that was running."""
        return next((number for number, (begin, end) in self.steps.items() if begin <= time < end), None)

    def called(self, thread: Any, time: float) -> str | None:
        """What ``thread`` asked NCCL for at that moment, such as "all_to_all", whose kernel is called SendRecv."""
        place = bisect_right(self.calls, (thread, time, float("inf"))) - 1
        if place < 0 or self.calls[place][0] != thread or time > self.calls[place][2]:
            return None
        return self.calls[place][3].removeprefix("nccl:")

    def _by_thread(self, events: list[dict[str, Any]]) -> dict[Any, Spans]:
        spans: dict[Any, list[tuple[float, float]]] = {}
        for event in events:
            spans.setdefault(event["tid"], []).append(self.span(event))
        return {thread: union(of_thread) for thread, of_thread in spans.items()}


# ---- a GPU's trace: kernels


def _of_gpu(events: list[dict[str, Any]], host: _Host, rank: int) -> list[Launch]:
    launches = []
    for event in events:
        start, end = host.span(event)
        launch = host.launched.get(event["args"].get("correlation"))
        launched = start if launch is None else host.time(launch["ts"])
        what = event["args"].get("Collective name")
        if what is None and (kernel := NCCL_KERNEL.match(event["name"])):
            what = (launch and host.called(launch["tid"], launched)) or kernel["what"]
        if what is not None:
            op = _communicated(what, event["args"], host, rank, start, end)
        else:
            part = "computing" if launch is None else host.part(launch["tid"], launched)
            op = Operation(part, rank, start, end=end, stream=COMPUTE, called=event["name"])
        launches.append(Launch(launched, event["args"], op))
    return launches


def _on_the_device(launches: list[Launch], host: _Host) -> dict[int, tuple[float, float]]:
    """When the GPU was at each step: from the first kernel that was launched in it to the first of the next one.

    A GPU comes to a step later than its host does, by what is queued.
    """
    begins: dict[int, float] = {}
    for launched, _, op in launches:
        if (number := host.step(launched)) is not None:
            begins[number] = min(begins.get(number, op.start), op.start)
    in_order = sorted(begins.items())
    ends = [begin for _, begin in in_order[1:]] + [max(op.last for _, _, op in launches)]
    return {number: (begin, end) for (number, begin), end in zip(in_order, ends, strict=False) if begin < end}


# ---- a CPU's trace: operators, and what gloo does


def _of_cpu(events: list[dict[str, Any]], host: _Host, rank: int) -> list[Launch]:
    launches = [
        Launch(start, {}, Operation(host.part(event["tid"], start), rank, start, end=end, stream=COMPUTE,
                                    called=event["name"]))
        for event, (start, end) in _outermost(events, host)
    ]  # fmt: skip
    matches = [(CPU_CALL.match(event["name"]), event) for event in sorted(events, key=_start)]
    called = [(match["what"], event) for match, event in matches if match]
    described = sorted((event for event in events if event["name"] == "record_param_comms"), key=_start)
    if len(described) != len(called):  # else one of them belongs to each call, in their order
        described = [{"args": {}}] * len(called)
    for (what, event), description in zip(called, described, strict=True):
        start, end = host.span(event)
        arguments = {**event["args"], **description["args"]}
        launches.append(Launch(start, arguments, _communicated(what, arguments, host, rank, start, end)))
    return launches


def _outermost(events: list[dict[str, Any]], host: _Host) -> Iterator[tuple[dict[str, Any], tuple[float, float]]]:
    """Operators that no other operator called, with their times.

    An operator's name has a namespace ("aten::mm"). What has none is a function of Python's or a node of autograd's
    around operators, which may also wait in between; it counts only where nothing is inside it.
    """
    by_thread: dict[Any, list] = {}
    for event in events:
        if event.get("cat") == "cpu_op" and not event["name"].startswith(AROUND_OPERATORS):
            by_thread.setdefault(event["tid"], []).append(event)
    for of_thread in by_thread.values():
        of_thread.sort(key=lambda event: (event["ts"], -event["dur"]))
        until = float("-inf")
        for event, following in zip(of_thread, [*of_thread[1:], None], strict=True):
            end = event["ts"] + event["dur"]
            is_around = "::" not in event["name"] and following is not None and following["ts"] < end
            if event["ts"] >= until and not is_around:
                until = end
                yield event, host.span(event)


# ---- what is communicated


def _communicated(what: str, arguments: dict[str, Any], host: _Host, rank: int, start: float, end: float) -> Operation:
    name = what.replace("_", "").lower()
    kind = next((kind for part, kind in KINDS.items() if part in name), what)
    dtype, size = _payload(arguments)
    peer = _number(arguments.get("Dst Rank" if kind == "send" else "Src Rank")) if kind in MESSAGES else None
    return Operation(
        kind, rank, start, end=end, bytes=size, dtype=dtype, peer=peer, thread=1,
        group=str(arguments.get("Process Group Name", "")), members=_members(arguments, host.groups),
    )  # fmt: skip


def _payload(arguments: dict[str, Any]) -> tuple[str | None, int]:
    """``(dtype, bytes)`` that this rank passed in, as far as the trace says."""
    elements, name = _number(arguments.get("In msg nelems")), arguments.get("dtype", "")
    if elements is None:
        sizes, names = arguments.get("Input Dims") or [], arguments.get("Input type") or [""]
        if not (sizes and sizes[0] and all(isinstance(size, int) for size in sizes[0])):
            return None, 0
        elements, name = 1, names[0]
        for size in sizes[0]:
            elements *= size
    dtype, width = DTYPES.get(str(name).removeprefix("c10::").replace(" ", "").lower(), (None, 0))
    return dtype, elements * width


def _members(arguments: dict[str, Any], groups: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Ranks of the group; none where the trace does not say. In a kernel's arguments a long list ends in "..."."""
    listed = str(arguments.get("Process Group Ranks", ""))
    if "..." in listed:
        return groups.get(str(arguments.get("Process Group Name")), ())
    return tuple(int(number) for number in re.findall(r"\d+", listed))


def _meetings(launches: list[Launch], host: _Host) -> Iterator[tuple[Hashable, Operation]]:
    """``(name, operation)``: what all ranks of a collective call it.

    NCCL numbers the collectives of a group, and newer traces have that "Seq". Otherwise it is the n-th of m of its kind
    in its group and step, in the order of calls, which is the same on all ranks. So in a step of which a trace has only
    a part, where m is another, nothing is mistaken for something else.
    """
    places: dict[Hashable, list[Operation]] = {}
    for launched, arguments, op in sorted(launches, key=lambda launch: launch.time):
        if op.stream == COMPUTE or op.kind not in MEET or (op.is_message and op.peer is None):
            continue
        name: Hashable = (op.group, op.members, op.kind)
        if op.is_message:
            mine = op.members.index(op.rank) if op.rank in op.members else op.rank
            name = (op.group, op.members, "message", *((mine, op.peer) if op.kind == "send" else (op.peer, mine)))
        place = ("Seq", arguments["Seq"]) if "Seq" in arguments else ("step", host.step(launched))
        places.setdefault((name, place), []).append(op)
    for where, ops in places.items():
        for number, op in enumerate(ops):
            yield (where, number, len(ops)), op


def _notes(trace: Events, events: list[dict[str, Any]], on_gpu: list[dict[str, Any]]) -> Iterator[str]:
    if trace.cut_short:
        kept = sum(event["ph"] == "X" for event in trace.events)
        yield f"{trace.file} is cut short: its first {kept} events are whole and count, the rest is lost"
    if not on_gpu and any(event["name"].startswith("nccl:") for event in events):
        yield (
            f"{trace.file} has calls of NCCL and no kernels: what NCCL did on the GPU is not there; "
            "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
        )


# ---- small things


def _base(trace: Events) -> int:
    return _number(trace.about.get("baseTimeNanoseconds")) or 0


def _distributed(trace: Events) -> dict[str, Any]:
    said = trace.about.get("distributedInfo")
    return said if isinstance(said, dict) else {}


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _covers(spans: Spans, time: float) -> bool:
    place = bisect_right(spans, (time, float("inf"))) - 1
    return place >= 0 and time < spans[place][1]


def _start(event: dict[str, Any]) -> float:
    return event["ts"]
