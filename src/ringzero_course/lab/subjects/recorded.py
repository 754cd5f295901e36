"""What torch's Flight Recorder would keep of jobs that never ran: dumps made from a seed, of ranks that need not exist.

They have the keys and the habits of torch 2.9 to 2.13. NCCL's recorder follows the state of each operation, and NCCL's
ranks run ahead of the operation that waits. gloo's recorder says only that an operation has ended, and does not name
the members of a group.

Ranks and numbers are drawn from the seed, so this file does not tell students what is wrong in a folder.
"""

import pickle
import random
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ringzero.dumps import files

Dump = dict[str, Any]
START = 1_795_900_000_000_000_000  # of a job, in nanoseconds
CALLED = {  # the recorder's word -> torch's function
    "all_reduce": "all_reduce",
    "broadcast": "broadcast",
    "_all_gather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
}
TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


class Call(NamedTuple):
    """A collective of so many floats, in the recorder's word, called in a line of train.py."""

    kind: str
    elements: int
    line: int
    group: str = "0"


class Job(NamedTuple):
    """Its dumps by rank. From the collective ``number`` on ``ranks`` have the ``fault``; None and no ranks: it is well.

    Of a rank without a dump, ``number`` is the last collective to which it certainly came.
    """

    dumps: dict[int, Dump]
    number: int | None = None
    ranks: Sequence[int] = ()
    fault: str | None = None


def dump(calls: list[Call], ended: int, world: int, backend: str = "nccl", kept: int = 2000) -> Dump:
    """What a rank leaves that made these calls, of which so many ended; the buffer holds the last ``kept``."""
    numbers: dict[str, int] = {}
    entries = []
    for place, call in enumerate(calls):
        numbers[call.group] = numbers.get(call.group, 0) + 1
        entries.append(_entry(call, place, ended, numbers, world, backend))
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str([*range(world)])}}
    return {
        "version": "2.10",
        "comm_lib_version": "2.27.5" if backend == "nccl" else "",
        "pg_config": config if backend == "nccl" else {"": {"name": "", "desc": "", "ranks": "[]"}},
        "pg_status": {
            group: {
                "last_enqueued_collective": number,
                "last_started_collective": -1,
                "last_completed_collective": sum(call.group == group for call in calls[:ended]),
            }
            for group, number in numbers.items()
        },
        "entries": entries[-kept:],
    }


def _entry(call, place, ended, numbers, world, backend):
    now, done = START + 2_000_000 * place, place < ended
    outputs = {"_all_gather_base": call.elements * world, "_reduce_scatter_base": call.elements // world}
    state = "completed" if done else "started" if place == ended else "scheduled"
    return {
        "frames": [
            {"name": CALLED[call.kind], "filename": TORCH, "line": 2700},
            {"name": "train", "filename": "/home/ada/train.py", "line": call.line},
            {"name": "<module>", "filename": "/home/ada/train.py", "line": 99},
        ],
        "record_id": place,
        "pg_id": int(call.group),
        "process_group": (call.group, "default_pg" if call.group == "0" else "undefined"),
        "collective_seq_id": numbers[call.group],
        "p2p_seq_id": 0,
        "op_id": place + 1,
        "profiling_name": f"{backend}:{call.kind}",
        "time_created_ns": now,
        "input_sizes": [[call.elements]],
        "input_dtypes": ["Float"],
        "output_sizes": [[outputs.get(call.kind, call.elements)]],
        "output_dtypes": ["Float"],
        "state": state if backend == "nccl" else "scheduled",
        "time_discovered_started_ns": now if backend == "nccl" and state != "scheduled" else None,
        "time_discovered_completed_ns": now + 500_000 if backend == "nccl" and done else None,
        "retired": done,
        "timeout_ms": 600_000,
        "is_p2p": False,
        "thread_id": "140511773903744",
        "thread_name": "pt_main_thread",
    }


def steps(draw: random.Random) -> list[Call]:
    """The calls of twelve steps: an all-reduce for each bucket, and a gathered metric after every second step."""
    buckets = [Call("all_reduce", 1024 * draw.randrange(1, 64), 31) for _ in range(draw.randrange(2, 5))]
    metric = [Call("_all_gather_base", 128, 40)]
    return [call for step in range(12) for call in buckets + metric * (step % 2)]


def training(
    seed: int, world: int, fault: str | None, odd: int = 1, number: int | None = None, kept: int = 2000
) -> Job:
    """A training job on so many ranks of NCCL, of which ``odd`` have the ``fault``: from a drawn collective on, or
    from ``number``."""
    draw = random.Random(f"training {seed}")
    calls = steps(draw)
    at = number or draw.randrange(14, len(calls) - 4)
    before, call = calls[: at - 1], calls[at - 1]
    ranks = sorted(draw.sample(range(world), odd))
    if fault is None:
        return Job({rank: dump(calls, len(calls), world, kept=kept) for rank in range(world)})
    kind = draw.choice([kind for kind in CALLED if kind != call.kind])
    theirs = {
        "never came": [],
        "something else": [call._replace(kind=kind, elements=call.elements // 2, line=52)],
        "other size": [call._replace(elements=call.elements // 2)],
    }
    dumps = {}
    for rank in range(world):
        ahead = calls[at : at + draw.randrange(1, 4)]
        mine = [call, *ahead] if rank not in ranks else theirs[fault] and [*theirs[fault], *ahead]
        dumps[rank] = dump(before + mine, len(before), world, kept=kept)
    return Job(dumps, at, ranks, fault)


# ---- the four folders


def large(seed: int) -> Job:
    """64 ranks, of which one has a fault that is drawn, too."""
    return training(seed, 64, random.Random(f"large {seed}").choice(("something else", "other size")))


def left_out(seed: int) -> Job:
    """Even and odd ranks each have a group, for the first time used at the end; one rank does not come to its group's
    all-reduce and goes on to the next of all ranks."""
    draw = random.Random(f"left out {seed}")
    calls, late = [call for call in steps(draw) if call.kind == "all_reduce"], draw.randrange(8)
    at = draw.randrange(14, len(calls) - 4)
    dumps = {}
    for rank in range(8):
        own = [] if rank == late else [Call("all_reduce", 1, 58, str(1 + rank % 2))]
        alone = rank != late and rank % 2 == late % 2  # its group waits for the late rank, and goes no further
        mine = calls[:at] + own + ([] if alone else [calls[at]])
        dumps[rank] = dump(mine, at if alone else len(mine) - 1, 8, "gloo")
    return Job(dumps, 1, [late], "never came")


def cut_short(seed: int) -> Job:
    """All ranks wait in one collective, behind an all-reduce and two broadcasts, and one of them left half a file."""
    draw = random.Random(f"cut short {seed}")
    calls = steps(draw)
    at = next(place for place in range(draw.randrange(14, 20), len(calls)) if calls[place - 1].kind == "all_reduce")
    mine = [*calls[:at], Call("broadcast", 512, 63), Call("broadcast", 512, 64), *calls[at : at + 2]]
    dumps = {rank: dump(mine, at + 2, 8) for rank in range(8)}
    return Job(dumps, at, [draw.randrange(8)], "no dump")


def all_there(seed: int) -> Job:
    """All ranks came to the same all-reduce, and it does not end."""
    draw = random.Random(f"all there {seed}")
    calls = steps(draw)
    at = draw.randrange(14, len(calls) - 4)
    return Job({rank: dump(calls[: at + 1], at, 16) for rank in range(16)}, at + 1, [], "all came")


JOBS = {"a": (large, 10), "b": (left_out, 17), "c": (cut_short, 14), "d": (all_there, 16)}


@cache
def _top() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="dumps-")  # it goes with the process


@cache
def folder(name: str) -> Path:
    """A folder with the dumps of one of the four jobs, a file for each rank, for as long as this process lives."""
    make, seed = JOBS[name]
    job, path = make(seed), Path(_top().name, name)
    path.mkdir()
    for rank, content in job.dumps.items():
        data = pickle.dumps(content, 2)  # as torch does
        if job.fault == "no dump" and rank in job.ranks:
            data = data[: len(data) // 2]
        (path / f"nccl_trace_rank_{rank}").write_bytes(data)
    return path


def read(path: Path) -> dict[int, Dump]:
    """``{rank: dump}`` of a folder, without the files that cannot be read."""
    found = {}
    for rank, file in sorted(files.find([path]).items()):
        try:
            found[rank] = files.load(file)
        except files.UnreadableError:
            continue
    return found
