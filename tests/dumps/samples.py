"""Dumps as torch 2.5 to 2.13 write them, made up: programs of a few words, and what the recorder would keep of them."""

import json
import pickle
from pathlib import Path

FORMATS = {  # torch -> the format's version and what it has beyond the first
    "2.5": ("2.4", ()), "2.6": ("2.5", ("nccl_version",)), "2.7": ("2.7", ("nccl_version",)),
    "2.8": ("2.9", ("nccl_version", "threads")), "2.9": ("2.10", ("comm_lib_version", "threads")),
    "2.13": ("2.10", ("comm_lib_version", "threads")),
}  # fmt: skip
TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed/"
NAMES = {"barrier": "all_reduce_barrier", "all_gather": "_all_gather_base", "reduce_scatter": "_reduce_scatter_base"}


class Rank:
    """What one rank calls, in order; each call is written as NCCL's recorder keeps it.

    ``ranks`` maps the groups' names to their ranks.
    """

    def __init__(self, rank, ranks, torch="2.13", backend="nccl"):
        self.rank, self.ranks, self.torch, self.backend = rank, ranks, torch, backend
        self.entries, self.config = [], None
        self.seq, self.p2p = dict.fromkeys(ranks, 0), dict.fromkeys(ranks, 0)

    def call(self, kind, line, group="0", state="completed", size=(1024,), dtype="Float", frames=True):
        """A collective."""
        self.seq[group] += 1
        return self._entry(NAMES.get(kind, kind), line, group, state, [list(size)], dtype, False, frames)

    def message(self, kind, peer, line, group="0", state="completed", size=(1024,)):
        """A send or a receive that stands alone; ``peer`` is a rank of the job."""
        self.p2p[group] += 1
        return self._message(kind, peer, line, group, state, size)

    def batch(self, messages, line, group="0", state="completed"):
        """``batch_isend_irecv``: its messages never change their states, the entry that closes them does."""
        self.p2p[group] += 1
        for kind, peer in messages:
            self._message(kind, peer, line, group, "scheduled", (1024,))
        return self._entry("coalesced", line, group, state, [], "Float", True)

    def coalesced(self, kind, sizes, line, group="0", state="completed"):
        """A collective of several tensors, which the recorder keeps as its parts and an entry that closes them."""
        self.seq[group] += 1
        for size in sizes:
            self._entry(kind, line, group, "scheduled", [list(size)], "Float", False)
        return self._entry("coalesced", line, group, state, [], "Float", False)

    def _message(self, kind, peer, line, group, state, size):
        me, other = self.ranks[group].index(self.rank), self.ranks[group].index(peer)
        name = f"send {me}->{other}" if kind == "send" else f"recv {me}<-{other}"
        return self._entry(name, line, group, state, [list(size)], "Float", True)

    def _entry(self, name, line, group, state, sizes, dtype, is_p2p, frames=True):
        now = 1_800_000_000_000_000_000 + len(self.entries) * 1_000_000
        function = name.strip("_").split()[0]
        entry = {
            "frames": [
                {"name": function, "filename": f"{TORCH}distributed_c10d.py", "line": 2700},
                {"name": "step", "filename": "/home/ada/train.py", "line": line},
                {"name": "<module>", "filename": "/home/ada/train.py", "line": 99},
            ],
            "record_id": len(self.entries), "pg_id": int(group), "process_group": (group, self.description(group)),
            "collective_seq_id": self.seq[group], "p2p_seq_id": self.p2p[group], "op_id": len(self.entries) + 1,
            "profiling_name": f"{self.backend}:{name}", "time_created_ns": now,
            "input_sizes": sizes, "input_dtypes": [dtype] * len(sizes), "output_sizes": sizes,
            "output_dtypes": [dtype] * len(sizes), "state": state,
            "time_discovered_started_ns": now if state != "scheduled" else None,
            "time_discovered_completed_ns": now + 500_000 if state == "completed" else None,
            "retired": state == "completed", "timeout_ms": 600_000, "is_p2p": is_p2p,
        }  # fmt: skip
        if "threads" in FORMATS[self.torch][1]:
            entry |= {"thread_name": "pt_main_thread", "thread_id": "140"}
        if not frames:
            del entry["frames"]
        self.entries.append(entry)
        return self

    def description(self, group):
        return "default_pg" if group == "0" else "undefined"

    def content(self, last=None):
        """The dump; with ``last`` of so many operations, as when the recorder's buffer is full."""
        version, extra = FORMATS[self.torch]
        mine = [group for group in self.ranks if self.rank in self.ranks[group]]
        content = {
            "version": version,
            "pg_config": {
                group: {"name": group, "desc": self.description(group), "ranks": str(list(self.ranks[group]))}
                for group in mine
            },
            "pg_status": {
                group: {"last_enqueued_collective": self.seq[group], "last_started_collective": -1,
                        "last_completed_collective": -1}
                for group in mine
            },
            "entries": self.entries[-last:] if last else self.entries,
        }  # fmt: skip
        if self.config is not None:
            content["pg_config"] = self.config
        return content | {key: "2.21.5" for key in extra if key != "threads"}

    def write(self, folder, last=None, as_json=False):
        """Into ``nccl_trace_rank_N`` in ``folder``, as the watchdog names it."""
        content = self.content(last)
        if as_json:  # without frames, and 0 where a time is not known
            content["entries"] = [
                {key: 0 if value is None else value for key, value in entry.items() if key != "frames"}
                for entry in content["entries"]
            ]
            Path(folder, f"nccl_trace_rank_{self.rank}.json").write_text(json.dumps(content))
        else:
            Path(folder, f"nccl_trace_rank_{self.rank}").write_bytes(pickle.dumps(content, 2))


def job(folder, world, program, groups=None, without=(), torch="2.13", **how):
    """Dumps of ``world`` ranks in ``folder``: ``program(rank)`` calls what each does, on a Rank. Returns the folder."""
    ranks = {"0": list(range(world)), **(groups or {})}
    for number in range(world):
        rank = Rank(number, ranks, torch)
        program(rank)
        if number not in without:
            rank.write(folder, **how)
    return folder
