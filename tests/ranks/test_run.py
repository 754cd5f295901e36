"""``ringzero run``: scripts that hang are ended with the cause, others run as under torchrun."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import ringzero_course.bench
from ringzero.ranks import script, script_rank

SCRIPTS = Path(ringzero_course.bench.__file__).parent / "scripts"
RINGZERO = Path(sys.executable).with_name("ringzero")


def run(*words, **options):
    return subprocess.run([RINGZERO, "run", *map(str, words)], capture_output=True, text=True, timeout=300, **options)


def write(folder, text, name="train.py"):
    (folder / name).write_text("import torch, torch.distributed as dist\n" + text)
    return folder / name


NAMED = {  # what is said of each script's hang; where sizes differ, or a rank has ended, gloo ends the others itself
    "ddp": r"rank 1 never entered all_reduce #\d+; rank 0 waits there, ddp.py line \d+; rank 1 had returned",
    "fsdp2": r"the ranks disagree .*: rank 0 called all_gather .*, fsdp2.py line \d+; rank 1 called all_gather",
    "nanogpt": r"the ranks disagree .*: rank 0 called all_reduce .*, nanogpt.py line \d+; rank 1 called all_reduce",
    "picotron": r"a cycle: rank 0 waits to receive from rank 1, picotron.py line \d+; rank 1 waits to receive from",
}


@pytest.mark.parametrize("name", NAMED)
def test_a_hang_of_a_well_known_shape_is_named(name, tmp_path):
    path = shutil.copy(SCRIPTS / f"{name}.py", tmp_path)  # in the package, its lines would not be a user's
    done = run(path, "--steps", "12", "--hang")
    assert done.returncode == 1, done.stderr
    assert re.search(NAMED[name], done.stderr), done.stderr


@pytest.mark.parametrize("name", NAMED)
def test_without_the_hang_it_runs_as_under_torchrun(name):
    done = run(SCRIPTS / f"{name}.py", "--steps", "4")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("seconds")


def test_a_script_sees_what_torchrun_shows_it(tmp_path):
    path = write(
        tmp_path,
        """
import os, sys, helper
dist.init_process_group("gloo")
half = dist.new_group([0, 1])
assert (dist.get_backend(), dist.get_backend(half), __name__) == ("gloo", "gloo", "__main__")
assert sys.argv == [__file__, "--ranks", "7", "-m"], sys.argv
total = torch.ones(3)
dist.all_reduce(total, group=half)
said = f"{helper.NAME} {os.environ['LOCAL_RANK']} {os.environ['WORLD_SIZE']} {total.tolist()}\\n"
os.write(2, said.encode())
if dist.get_rank() == 1:
    sys.exit(0)
""",
    )
    (tmp_path / "helper.py").write_text("NAME = 'beside'")
    done = run("--trace", tmp_path / "trace", path, "--ranks", "7", "-m")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stderr.splitlines()) == [f"beside {rank} 2 [2.0, 2.0, 2.0]" for rank in range(2)]
    kinds = [event["name"] for event in json.loads((tmp_path / "trace").read_text())["traceEvents"]]
    assert kinds.count("all_reduce") == 2
    module = run("-m", "train", "--ranks", "7", "-m", cwd=tmp_path)
    assert module.returncode == 0, module.stderr


def test_an_error_of_its_own_is_the_scripts(tmp_path):
    path = write(tmp_path, "dist.init_process_group('gloo')\nif dist.get_rank(): raise ValueError('mine')\n")
    with open(path, "a") as file:
        file.write("dist.barrier()\n")
    done = run(path)
    assert done.returncode == 1
    assert script_rank.__name__ + ".py" not in done.stderr
    assert "ValueError: mine" in done.stderr
    assert "never entered" not in done.stderr


def test_a_slow_rank_is_no_hang_and_a_thread_only_delays_the_verdict(tmp_path, monkeypatch):
    slow = write(
        tmp_path,
        """
import time
dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank(): time.sleep(script_seconds)
dist.barrier()
""".replace("script_seconds", str(script.STILL_WITH_THREADS + 2)),
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text("from ringzero.ranks import script\nscript.LONG_SECONDS = 3\n")
    done = run(slow)
    assert done.returncode == 0
    assert "ringzero: for 3 s no rank has called anything" in done.stderr
    (tmp_path / "sitecustomize.py").unlink()
    thread = write(
        tmp_path,
        """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
dist.init_process_group("gloo")
dist.barrier() if dist.get_rank() else dist.all_reduce(torch.ones(1))
""",
    )
    assert "the ranks disagree on collective #1" in run(thread).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_it_says_where_the_ranks_are_and_leaves_nothing(number, tmp_path):
    path = write(
        tmp_path,
        """
import time
dist.init_process_group("gloo")
import os
os.write(1, b"began\\n")
if dist.get_rank(): time.sleep(600)
dist.barrier()
""",
    )
    job = subprocess.Popen([RINGZERO, "run", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert [job.stdout.readline() for _ in range(2)] == ["began\n"] * 2
    time.sleep(0.5)
    ranks = [each for each in psutil.Process(job.pid).children(recursive=True) if "RANK" in each.environ()]
    assert len(ranks) == 2
    job.send_signal(number)
    _, said = job.communicate(timeout=60)
    if job.returncode != -9:
        assert job.returncode == 1
        sentence = r"rank 1 never entered barrier #1; rank 0 waits there, train.py line \d+; rank 1 is at <module>"
        assert re.search(sentence, said)
    _, alive = psutil.wait_procs(ranks, timeout=20)
    assert not alive


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--ranks", "0", "x.py"], "--ranks is 0"), (["none.py"], "none.py is no file"), (["-n", "2", "x.py"], "option")],
)
def test_bad_input_is_refused(words, said):
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_what_a_killed_run_left_in_memory_goes_with_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "SHARED_MEMORY", str(tmp_path))
    dead, alive = (tmp_path / f"{script.PREFIX}{name}" for name in ("dead", "alive"))
    for folder in (dead, alive):
        folder.mkdir()
        (folder / script.IN_USE).touch()
    with open(alive / script.IN_USE) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        script._remove_abandoned()
    assert (dead.exists(), alive.exists()) == (False, True)


def test_the_stack_signal_is_no_scripts():
    assert script_rank.STACK_SIGNAL not in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
    assert os.name == "posix"


LONG = """
import sys
dist.init_process_group("gloo")
rank, one = dist.get_rank(), torch.ones(1)
rare = dist.new_group([0, 1])
dist.barrier(group=rare)
for i in range(3 * 200):
    if i % 3 == 0:
        dist.recv(one, 0) if rank else dist.send(one, 1)
    dist.all_reduce(one)
HANG
"""
HANGS = {  # of a script whose records hold its last 64 operations, each said with no count of what was before
    "dist.all_reduce(one) if rank else dist.all_gather([one, one.clone()], one.clone())": (
        r"the ranks disagree on collective #601: rank 0 called all_gather \(collective #601 .*; rank 1 called all_red"
    ),
    "dist.recv(one, 1 - rank)": "a cycle: rank 0 waits to receive from rank 1",
    "dist.barrier(group=rare if rank else None)": "a cycle: rank 0 waits in barrier for rank 1",
    "if rank: dist.barrier(group=rare)": r"rank 0 never entered barrier \(collective #2 of its group\); rank 1 wait",
}  # fmt: skip


@pytest.mark.parametrize("hang", [*HANGS, "dist.barrier(group=rare)"])
def test_of_a_long_script_the_last_operations_are_enough(hang, tmp_path, monkeypatch):
    sites = tmp_path / "sitecustomize.py"
    sites.write_text("from ringzero.record import trace_file\ntrace_file.LAST = 64\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run(write(tmp_path, LONG.replace("HANG", hang)))
    assert done.returncode == int(hang in HANGS), done.stderr
    if hang in HANGS:
        assert re.search(HANGS[hang], done.stderr), done.stderr
