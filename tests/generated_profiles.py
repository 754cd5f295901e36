"""Training steps that never ran, written as torch's profiler writes them: for tests of ``ringzero.profiles``.

No GPU was at hand. The events of ``on_gpus`` have the fields that Kineto's ``output_json.cpp`` writes and that public
traces of real jobs have (HolisticTraceAnalysis, ``tests/data``): kernels with "stream" and "correlation", "Collective
name" and "Process Group Ranks" on NCCL's, the host's ``cudaLaunchKernel`` and ``record_param_comms``. The events of
``on_cpus`` are as torch 2.13 writes them with gloo; real ones are in ``test_profiled.py``.

All times are milliseconds until they are written.
"""

import gzip
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

EPOCH = 1_790_857_026_000_000_000  # nanoseconds: Kineto's "baseTimeNanoseconds"
RUNNING = 4_563_000_000.0  # milliseconds from there to the first step
LAUNCH = 0.004  # milliseconds from the launch of a kernel to its start on an idle stream


@dataclass
class Job:
    """What a generated job does. ``slow`` are ranks whose computing takes that factor longer; ``late``, milliseconds by
    which ranks begin each step later; ``ahead``, seconds, and ``drift``, seconds a second, are of the ranks' clocks."""

    ranks: int = 4
    steps: int = 4
    buckets: int = 3
    forward: float = 10.0
    backward: float = 20.0
    collective: float = 3.0
    jitter: float = 0.02  # of computing, relative; and of leaving a collective, in milliseconds
    slow: dict[int, float] = field(default_factory=dict)
    late: dict[int, float] = field(default_factory=dict)
    ahead: dict[int, float] = field(default_factory=dict)
    drift: dict[int, float] = field(default_factory=dict)
    seed: int = 0
    number_of_first_step: int = 7


@dataclass
class Did:
    """A rank's step: ``computed`` as (part, begin, end), ``communicated`` as (launched, begin, end), in true time."""

    begin: float
    end: float
    computed: list[tuple[str, float, float]]
    communicated: list[tuple[float, float, float]]


def run(job: Job, queued: bool) -> list[list[Did]]:
    """What each rank did in each step. Collectives wait for all ranks; ``queued`` ones also for the one before."""
    chance = random.Random(job.seed)
    now, steps = [0.0] * job.ranks, []
    for _ in range(job.steps):
        did = [Did(now[r], 0.0, [], []) for r in range(job.ranks)]
        ready: list[list[float]] = []
        for rank, mine in enumerate(did):
            time = mine.begin + job.late.get(rank, 0.0) + chance.uniform(0, job.jitter)
            ready.append([])
            for part, lasts in [("forward", job.forward), *[("backward", job.backward / job.buckets)] * job.buckets]:
                factor = job.slow.get(rank, 1.0) * (1 + chance.uniform(-job.jitter, job.jitter))
                mine.computed.append((part, time, time + lasts * factor))
                time = mine.computed[-1][2]
                ready[rank] += [time] if part == "backward" else []
        free = [0.0] * job.ranks
        for bucket in range(job.buckets):
            calls = [ready[rank][bucket] for rank in range(job.ranks)]
            entered = [max(call, free[rank]) if queued else call for rank, call in enumerate(calls)]
            done = max(*entered, *free) + job.collective
            for rank in range(job.ranks):
                free[rank] = done + chance.uniform(0, job.jitter)
                did[rank].communicated.append((calls[rank], entered[rank], free[rank]))
        for rank, mine in enumerate(did):
            begin = max(free[rank], mine.computed[-1][2])
            mine.computed.append(("optimizer", begin, begin + 1.0))
            mine.end = now[rank] = begin + 1.0 + 0.1
        steps.append(did)
    return [[did[rank] for did in steps] for rank in range(job.ranks)]


def on_cpus(job: Job) -> list[dict]:
    """A trace for each rank, of ``torch.profiler`` on a CPU with gloo and ``record_shapes=True``."""
    return [_written(job, rank, steps, _cpu_events) for rank, steps in enumerate(run(job, queued=False))]


def on_gpus(job: Job) -> list[dict]:
    """A trace for each rank, of ``torch.profiler`` on a GPU with NCCL."""
    return [_written(job, rank, steps, _gpu_events) for rank, steps in enumerate(run(job, queued=True))]


def save(traces: list[dict], folder: Path, compressed: bool = False) -> list[Path]:
    """A file of each trace."""
    paths = []
    for number, trace in enumerate(traces):
        paths.append(folder / f"worker{number}.pt.trace.json{'.gz' if compressed else ''}")
        text = json.dumps(trace)
        paths[-1].write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    return paths


def _written(job, rank, steps, events_of):
    def microseconds(time):
        seconds = (RUNNING + time) / 1e3
        return (seconds + job.ahead.get(rank, 0.0) + job.drift.get(rank, 0.0) * time / 1e3) * 1e6

    name = {"name": "process_name", "ph": "M", "pid": 1000 + rank, "tid": 0, "args": {"name": "python"}}
    events = [{**name, "ts": microseconds(0)}]
    for number, did in enumerate(steps, job.number_of_first_step):
        for event in [
            _host_event(f"ProfilerStep#{number}", "user_annotation", did.begin, did.end),
            *events_of(did, job),
        ]:
            begin, end = microseconds(event.pop("begin")), microseconds(event.pop("end"))
            events.append({"ph": "X", "pid": 1000 + rank, "tid": 1000 + rank, "ts": begin, "dur": end - begin, **event})
    return {
        "schemaVersion": 1,
        "distributedInfo": {
            "backend": "nccl", "rank": rank, "world_size": job.ranks, "pg_count": 1,
            "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [*range(job.ranks)]}],
        },
        "host_name": f"node{rank}",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": EPOCH,
        "traceEvents": events,
    }  # fmt: skip


def _host_event(name, category, begin, end, **rest):
    return {"name": name, "cat": category, "begin": begin, "end": end, "args": {"External id": 1}} | rest


def _cpu_events(did, job):
    for part, begin, end in did.computed:
        middle = (begin + end) / 2
        if part == "backward":
            yield _host_event("autograd::engine::evaluate_function: AddmmBackward0", "cpu_op", begin, end)
            yield _host_event("AddmmBackward0", "cpu_op", begin, end)
            yield _host_event("aten::mm", "cpu_op", begin, middle)
            yield _host_event("aten::mm", "cpu_op", middle, end)
        elif part == "optimizer":
            yield _host_event("Optimizer.step#SGD.step", "user_annotation", begin, end)
            yield _host_event("aten::add_", "cpu_op", begin, end)
        else:
            yield _host_event("aten::linear", "cpu_op", begin, end)
            yield _host_event("aten::addmm", "cpu_op", begin, end)
    for number, (_, begin, end) in enumerate(did.communicated):
        shapes = {"Input type": ["float"], "Input Dims": [[1000 + number]]}
        yield _host_event("c10d::allreduce_", "cpu_op", begin, begin + 0.05)
        yield _host_event("gloo:all_reduce", "user_annotation", begin, end, tid=7, args=shapes)


def _gpu_events(did, job):
    correlation = int(did.begin * 1e6) + 1
    for part, begin, end in did.computed:
        correlation += 1
        node = {"backward": "autograd::engine::evaluate_function: AddmmBackward0", "forward": "aten::linear"}
        launched = max(begin - LAUNCH, did.begin)
        if part == "optimizer":
            yield _host_event("Optimizer.step#SGD.step", "user_annotation", launched, launched + LAUNCH, tid=1)
        else:
            yield _host_event(node[part], "cpu_op", launched, launched + LAUNCH, tid=2 if part == "backward" else 1)
        yield from _kernel(f"ampere_sgemm_128x64_{part}", launched, begin, end, correlation, 7, part == "backward")
    for number, (called, begin, end) in enumerate(did.communicated):
        correlation += 1
        about = {
            "Collective name": "allreduce", "In msg nelems": 1000 + number, "Out msg nelems": 1000 + number,
            "Group size": job.ranks, "dtype": "Float", "In split size": "[]", "Out split size": "[]",
            "Process Group Name": "0", "Process Group Description": "default_pg",
            "Process Group Ranks": str([*range(job.ranks)]),
        }  # fmt: skip
        yield _host_event("record_param_comms", "cpu_op", called, called + LAUNCH, tid=2, args=about)
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        yield from _kernel(name, called, begin, end, correlation, 40, True, about)


def _kernel(name, launched, begin, end, correlation, stream, backward, about=None):
    """The host's launch and the kernel."""
    ids = {"External id": correlation, "correlation": correlation}
    thread = 2 if backward else 1
    yield _host_event("cudaLaunchKernel", "cuda_runtime", launched, launched + LAUNCH / 2, tid=thread, args=ids)
    on_device = {"device": 0, "context": 1, "stream": stream, **ids, **(about or {})}
    yield {"name": name, "cat": "kernel", "begin": begin, "end": end, "pid": 0, "tid": stream, "args": on_device}
