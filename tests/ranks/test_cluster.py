"""An emulated cluster: real namespaces, real limits, and an error that helps where there are none."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, RankTimeout, launch
from ringzero.ranks import cluster as module
from ringzero.ranks.cluster import Cluster, ClusterUnavailable, address, bytes_per_second, missing_ability

emulated = pytest.mark.skipif(missing_ability() is not None, reason=f"no emulated cluster here: {missing_ability()}")


def place():
    return [dist.get_rank(), *(int(os.environ[name]) for name in ("GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"))]


def transfer(source, target, numel):
    """Bytes a second from one rank to another: the best of three, from the moment both are ready."""
    rank, tensor, best = dist.get_rank(), torch.zeros(numel), 0.0
    for _ in range(3):
        dist.barrier()
        start = time.perf_counter()
        if rank == source:
            dist.send(tensor, target)
        elif rank == target:
            dist.recv(tensor, source)
            best = max(best, tensor.nbytes / (time.perf_counter() - start))
    return best


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=2, ranks_per_node=2, inter_node="200mbit") as cluster:
        yield cluster


@emulated
def test_ranks_know_their_place(cluster):
    assert cluster.launch(place).returns == [[0, 0, 0, 2], [1, 0, 1, 2], [2, 1, 0, 2], [3, 1, 1, 2]]


@emulated
def test_a_rank_may_be_lost(cluster):
    def die_on_the_second_node():
        if dist.get_rank() == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return dist.get_rank()

    ranks = cluster.launch(die_on_the_second_node, may_lose=True)
    assert (ranks.returns, ranks.lost) == ([0, 1, 2, None], [3])


@emulated
def test_the_link_between_nodes_is_limited_and_inside_a_node_it_is_not(cluster):
    """A limit holds from above however busy the machine is; how close it comes is for the bench to say."""
    numel = 2_500_000  # 10 MB: 0.4 s at 200 Mbit/s
    across = cluster.launch(transfer, 0, 2, numel).returns[2]
    inside = cluster.launch(transfer, 0, 1, numel).returns[1]
    assert across < 1.1 * bytes_per_second("200mbit")
    assert inside > 2 * across


@emulated
def test_a_trace_and_an_error_come_back_as_from_one_machine(cluster):
    def work():
        dist.all_reduce(torch.ones(1000))
        return dist.get_rank()

    ranks = cluster.launch(work, trace=True)
    assert [(op.rank, op.kind, op.bytes) for op in ranks.trace] == [(r, "all_reduce", 4000) for r in range(4)]

    def fails():
        if dist.get_rank() == 3:
            raise ValueError("on the second node")
        dist.barrier()

    with pytest.raises(RankError, match=r"^rank 3 failed:\n(.*\n)*ValueError: on the second node"):
        cluster.launch(fails)

    def hangs():
        if dist.get_rank() == 2:
            dist.barrier()

    with pytest.raises(RankTimeout, match="ranks 0, 1, 3 never entered barrier #1; rank 2 waits there"):
        cluster.launch(hangs)
    assert cluster.launch(work).returns == [0, 1, 2, 3]


@emulated
def test_run_gives_each_node_its_number(cluster):
    said = cluster.run("sh", "-c", "echo node $SLURM_NODEID of $SLURM_NNODES")
    assert said == ["node 0 of 2\n", "node 1 of 2\n"]
    with pytest.raises(RuntimeError, match=r"node 1: sh -c .* ended with 3:\nsorry"):
        cluster.run("sh", "-c", 'echo sorry; [ "$SLURM_NODEID" = 0 ] || exit 3')
    with pytest.raises(RuntimeError, match=r"node 0: sleep 50 was not done after 0.5 s"):
        cluster.run("sleep", "50", timeout=0.5)


EXAMPLES = Path(__file__).resolve().parents[2] / "book" / "examples"


@emulated
def test_the_slurm_script_trains_on_two_nodes_as_one_machine_does(cluster, tmp_path):
    """The script as it stands in the book; only Slurm's own two programs are played."""
    played = {"scontrol": f"echo {address(0)}; echo {address(1)}", "srun": 'printf "%s\\0" "$@" > srun.args'}
    for program, body in played.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / program).chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "RANKS_PER_NODE": "2", "SLURM_JOB_NODELIST": "n[1-2]"}
    subprocess.run(["bash", EXAMPLES / "train.sbatch"], cwd=tmp_path, env=environment, check=True)
    command = (tmp_path / "srun.args").read_text().split("\0")[:-1]
    said = cluster.run("sh", "-c", f'cd {EXAMPLES}; PATH={path} exec "$@"', "sh", *command)
    alone = subprocess.run(
        [sys.executable, EXAMPLES / "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    losses = {n: re.search(rf"{n} ranks: (.*)", text)[1] for n, text in ((2, alone.stdout), (4, said[0]))}
    assert losses[2] == losses[4]
    assert "ranks:" not in said[1]


CLOCKS = """
import os, time
import torch, torch.distributed as dist
from ringzero import launch

if os.environ["RANK"] != "0":
    real = time.time
    time.time = lambda: real() + 100.0 * int(os.environ["RANK"])  # a clock that is wrong

def work():
    dist.barrier()
    dist.all_reduce(torch.ones(10))
    return [os.environ["LOCAL_RANK"], dist.get_rank()]

ranks = launch(work, trace=True)
if os.environ["RANK"] == "3":
    print("returned", ranks.returns)
    print("ends", *(op.end for op in ranks.trace if op.kind == "all_reduce"))
"""


@emulated
def test_under_torchrun_launch_joins_its_ranks_and_aligns_their_clocks(cluster, tmp_path):
    (tmp_path / "script.py").write_text(CLOCKS)
    nodes = f"--nnodes 2 --node-rank $SLURM_NODEID --nproc-per-node 2 --master-addr {address(0)} --master-port 29501"
    torchrun = f"{sys.executable} -m torch.distributed.run {nodes} {tmp_path}/script.py"
    said = cluster.run("sh", "-c", torchrun)[1]
    assert "returned [['0', 0], ['1', 1], ['0', 2], ['1', 3]]" in said
    ends = [float(end) for end in re.search(r"ends (.*)", said)[1].split()]
    assert len(ends) == 4
    assert max(ends) - min(ends) < 1.0  # of clocks that are 300 s apart


def alive(pids):
    """Those of ``pids`` that do not end; whether anybody has collected the ended ones does not matter."""
    deadline = time.monotonic() + 300
    while (left := list(filter(_runs, pids))) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@emulated
def test_nothing_is_left_even_when_the_body_fails():
    launch(dist.get_rank, world_size=3)  # warm ranks stay: they are this process's, not the cluster's
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    started = set()

    def fail_inside():
        with Cluster(nodes=3, ranks_per_node=1) as cluster:
            assert cluster.launch(dist.get_rank).returns == [0, 1, 2]
            started.update({process.pid for process in psutil.Process().children(recursive=True)} - before)
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert len(started) >= 1 + 3  # the switch, and who holds each node
    assert not alive(started)


@emulated
def test_the_network_ends_with_the_process_that_made_it():
    code = """
import os, signal
from ringzero.ranks import pool
from ringzero.ranks.cluster import Cluster
cluster = Cluster(nodes=2, ranks_per_node=1).__enter__()
cluster.launch(os.getpid)
print(*cluster._holders, *pool._current.pids[:2], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 4, done.stderr
    assert not alive(pids)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": 0}, "nodes is 0; give a whole number from 1 to 250"),
        ({"ranks_per_node": 1.5}, "ranks_per_node is 1.5; give a whole number"),
        ({"inter_node": "fast"}, "'fast' is not a rate; write it in bits a second"),
        ({"inter_node": "0mbit"}, "'0mbit' is not a rate"),
        ({"inter_node": "400gbit"}, "'400gbit' is more than an emulated link can carry"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Cluster(**options)


def test_rates():
    assert [bytes_per_second(rate) for rate in ("1gbit", "200 Mbit", "0.5mbit", "8bit", None)] == [
        *(125e6, 25e6, 62500.0, 1.0),
        None,
    ]


def test_a_machine_that_cannot_says_what_is_missing_and_how_to_get_it(monkeypatch):
    def seen(message):
        with pytest.raises(ClusterUnavailable, match=message), Cluster():
            pass

    with monkeypatch.context() as without:
        without.setattr(module, "NEW_NETWORK", ("sh", "-c", "echo unshare failed: Operation not permitted >&2; exit 1"))
        seen("needs user namespaces: unshare failed: Operation not permitted. As root: sysctl ")
    with monkeypatch.context() as without:
        without.setattr(module, "NEW_NETWORK", ("false",))
        without.setattr(module.shutil, "which", lambda program: None)
        seen("needs unshare and nsenter: not on the PATH. apt-get install util-linux")
    with monkeypatch.context() as without:
        without.setattr(module, "NEW_NETWORK", ("false",))
        without.setattr(importlib.util, "find_spec", lambda name: None)
        seen(r'needs pyroute2: not installed. pip install "ringzero\[cluster\]"')
    with monkeypatch.context() as without:
        without.setattr(sys, "platform", "darwin")
        without.setattr(module, "NEW_NETWORK", ("false",))
        seen("needs Linux: this is darwin. Use a Linux machine")


def test_a_lab_falls_back_to_one_node_and_says_so(monkeypatch, capsys):
    from ringzero_course import lab

    monkeypatch.setattr(module, "NEW_NETWORK", ("sh", "-c", "echo Operation not permitted >&2; exit 1"))
    with lab.cluster(nodes=2, ranks_per_node=1, inter_node="1gbit") as cluster:
        assert (cluster.nodes, cluster.ranks_per_node, cluster.world_size) == (1, 2, 2)
        assert cluster.launch(dist.get_rank).returns == [0, 1]
    said = capsys.readouterr().out
    assert said.startswith(
        "One node with 2 ranks instead of 2 nodes: timings will differ. An emulated cluster needs user"
    )


@emulated
def test_a_lab_gets_the_cluster_where_there_is_one(capsys):
    from ringzero_course import lab

    with lab.cluster(nodes=2, ranks_per_node=1) as cluster:
        assert isinstance(cluster, Cluster)
    assert capsys.readouterr().out == ""
