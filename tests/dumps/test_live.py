"""``ringzero explain --torchrun`` and ``--pid``: a job that hangs now, looked at from outside."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from ringzero.dumps import live
from ringzero.dumps.command import command
from tests.dumps import samples

py_spy = pytest.mark.skipif(
    not Path(sys.executable).with_name("py-spy").exists(), reason="py-spy is not installed: pip install py-spy"
)
JOB = """
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
def evaluate():
    dist.broadcast(torch.ones(1), 0)
dist.barrier()
os.write(1, b"began\\n")
HANG
"""
HANGS = {
    "if dist.get_rank() == 1: evaluate()\ndist.all_reduce(torch.ones(3))":
        r"^rank 1 stands apart: ranks 0, 2 are in all_reduce, job.py line 10, in <module>; "
        r"rank 1 is in broadcast, job.py line 6, in evaluate\.",
    "if dist.get_rank() == 2: time.sleep(600)\ndist.all_reduce(torch.ones(3))":
        r"^rank 2 stands apart: ranks 0, 1 are in all_reduce, job.py line 10, in <module>; "
        r"rank 2 is in no communication, job.py line 9, in <module>\. For 3 seconds none went on",
    "found = [None] * 3\ndist.all_gather_object(found, 1) if dist.get_rank() else time.sleep(600)":
        r"^rank 0 stands apart: rank 0 is in no communication, job.py .*; ranks 1, 2 are in all_gather_object",
    "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))\n"
    "dist.monitored_barrier() if dist.get_rank() else model(torch.ones(1, 2)).sum().backward()":
        r"^rank 0 stands apart: rank 0 is in a backward pass, job.py .*; ranks 1, 2 are in barrier",
    "while dist.get_rank():\n    sum(range(10**4))\n    [i for i in range(10**4)]\ndist.all_reduce(torch.ones(3))":
        r"^(ranks 1, 2 are|rank [12] is) at work: (it|they) went on within 3 seconds",
    "while True:\n    time.sleep(dist.get_rank() / 2)\n    dist.all_reduce(torch.ones(3))":
        r"^ranks? .* at work: (it|they) went on",
}  # fmt: skip


def explained(*words):
    return CliRunner().invoke(command, [*map(str, words)])


@pytest.fixture
def started(tmp_path):
    """``start(hang)``: torchrun with three ranks that have begun."""
    jobs = []

    def start(hang):
        (tmp_path / "job.py").write_text(JOB.replace("HANG", hang))
        words = [Path(sys.executable).with_name("torchrun"), "--standalone", "--nproc-per-node", "3", "job.py"]
        jobs.append(subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        assert [jobs[-1].stdout.readline() for _ in range(3)] == [b"began\n"] * 3
        time.sleep(1)
        return jobs[-1]

    yield start
    for job in jobs:
        below = psutil.Process(job.pid).children(recursive=True)
        for process in below:
            process.kill()
        job.communicate(timeout=60)


@py_spy
@pytest.mark.parametrize("hang", HANGS)
def test_who_stands_apart(hang, started):
    job, deadline = started(hang), time.monotonic() + 60
    while not re.match(HANGS[hang], (done := explained("--torchrun", job.pid)).output):
        assert time.monotonic() < deadline, done.output  # on a busy machine its imports take a while
    assert done.exit_code == int("at work" not in done.output)
    assert job.poll() is None  # nothing happened to it


@py_spy
def test_some_ranks_alone_and_as_json(started):
    ranks = live.ranks_under(started(next(iter(HANGS))).pid)
    assert sorted(ranks) == [0, 1, 2]
    done = explained("--pid", ranks[0], "--pid", ranks[1], "--json", "-")
    said = json.loads(done.output)
    assert said["world_size"] == 3
    assert said["ranks"]["1"]["call"] == "broadcast"
    assert said["sentence"].endswith("was seen: it has ended, runs on another machine, or was not named.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give the dumps, or --torchrun, or --pid"),
        (["--torchrun", "4194305"], "there is no process 4194305"),
        (["--pid", os.getpid()], "has no RANK in its environment"),
    ],
)
def test_bad_input_is_refused(words, said):
    done = explained(*words)
    assert done.exit_code == 2
    assert said in done.output


def test_a_process_without_ranks_is_refused():
    with subprocess.Popen(["sleep", "60"]) as other:
        done = explained("--torchrun", other.pid)
        other.kill()
    assert done.exit_code == 2
    assert "has started no process with RANK" in done.output


def test_options_for_dumps_are_refused_where_there_are_none(tmp_path):
    with subprocess.Popen(["sleep", "60"], env={"RANK": "0"}) as rank:
        done = explained("--pid", rank.pid, "--svg", tmp_path / "figure")
        rank.kill()
    assert done.exit_code == 2
    assert "--svg and --world-size are for dumps" in done.output


@pytest.mark.parametrize(
    ("said", "advice"),
    [("Error: Permission Denied: Try running again", "--cap-add SYS_PTRACE"), ("Error: no python", "no python")],
)
def test_what_py_spy_may_not_do_is_said(said, advice, tmp_path, monkeypatch):
    (tmp_path / "py-spy").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    (tmp_path / "py-spy").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(live.NotAllowedError, match=re.escape(advice)):
        live.look({0: os.getpid()})
    (tmp_path / "py-spy").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(live.NotAllowedError, match=re.escape('pip install "ringzero[stacks]"')):
        live.look({0: os.getpid()})


def test_a_recorder_with_a_pipe_is_asked_for_its_dump(tmp_path):
    """A stand-in for NCCL's watchdog thread, which waits for a byte in the pipe and then writes its rank's dump."""
    made = samples.job(tmp_path, 2, lambda rank: rank.call("all_reduce", 12, state="started") if rank.rank else None)
    dumped = tmp_path / "dumped_"
    answer = """
import os, shutil, sys
pipe, made, dumped = sys.argv[1:]
os.mkfifo(pipe)
print(flush=True)
open(pipe).read(1)
shutil.copy(made, dumped)
"""
    ranks = []
    for rank in range(2):
        environment = {
            "RANK": str(rank), "WORLD_SIZE": "2", "TORCH_FR_DUMP_TEMP_FILE": str(dumped),
            "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(tmp_path / "pipe_"),
        }  # fmt: skip
        file = next(file for file in sorted(Path(made).iterdir()) if str(rank) in file.name)
        words = [sys.executable, "-c", answer, tmp_path / f"pipe_{rank}.pipe", file, f"{dumped}{rank}"]
        ranks.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE))
        ranks[-1].stdout.readline()
        time.sleep(0.5)
    done = explained("--pid", ranks[0].pid, "--pid", ranks[1].pid)
    for rank in ranks:
        rank.communicate(timeout=60)
    assert "rank 0 never entered all_reduce" in done.output
    assert done.exit_code == 1
