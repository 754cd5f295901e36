"""``launch`` beside other ways to call a function on N ranks: the caller's time, from the call to the result in hand.

Every contender does the same: N ranks form a gloo group, all-reduce four numbers, and each rank's sum comes back.
``torchrun``, ``launch(..., warm=False)`` and ``torch.multiprocessing.spawn`` start new interpreters. accelerate's
``notebook_launcher`` forks its caller, torch imported; it has no CPU mode, so the function itself asks for gloo.
ipyparallel's engines run, with torch imported, before the clock starts, and form a new group in each call. They stay
from call to call, while ``launch`` has a clean process each time. Each peer is called from a process of its own.
"""

import concurrent.futures
import contextlib
import functools
import importlib.util
import inspect
import json
import multiprocessing
import multiprocessing.connection
import os
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from ringzero import processes
from ringzero_course.bench import runner

OURS = "launch"
MARK = "RINGZERO_BENCH"  # in the environment of all that a peer starts: its temporary folder


def sum_of_ranks(rank, world_size, store):
    """On a rank without a group: form one, all-reduce."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world_size)
    total = torch.full((4,), float(rank))
    dist.all_reduce(total)
    dist.destroy_process_group()
    return total.tolist()


def leave_sum(rank, world_size, store, directory):
    """The same, for callers that get nothing back from a rank but a file."""
    with open(f"{directory}/{rank}.json", "w") as file:
        json.dump(sum_of_ranks(rank, world_size, store), file)


def leave_sum_as_told(directory):
    """The same, where rank and world size are in the environment."""
    leave_sum(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "env://", directory)


SCRIPT = "\n".join(
    ["import json, os, sys", *(inspect.getsource(each) for each in (sum_of_ranks, leave_sum, leave_sum_as_told))]
    + ["leave_sum_as_told(sys.argv[1])"]
)


def call_launch(world_size, directory, warm=True):
    from ringzero import launch

    def sum_of_ranks():  # by value, as from a notebook
        import torch
        import torch.distributed as dist

        total = torch.full((4,), float(dist.get_rank()))
        dist.all_reduce(total)
        return total.tolist()

    return launch(sum_of_ranks, world_size=world_size, device="cpu", warm=warm).returns


def call_launch_cold(world_size, directory):
    return call_launch(world_size, directory, warm=False)


def call_torchrun(world_size, directory):
    from ringzero.ranks.torchrun import torchrun_command

    script = directory / "script.py"
    script.write_text(SCRIPT)
    subprocess.run([*torchrun_command(world_size, directory / "logs"), str(script), str(directory)], check=True)
    return _left(world_size, directory)


def call_spawn(world_size, directory):
    import torch.multiprocessing

    arguments = (world_size, f"file://{directory}/store", directory)
    torch.multiprocessing.spawn(leave_sum, args=arguments, nprocs=world_size)
    return _left(world_size, directory)


def call_notebook_launcher(world_size, directory):
    import accelerate
    import torch  # noqa: F401  (as in a notebook: the ranks are forks of it)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    accelerate.notebook_launcher(leave_sum_as_told, (directory,), num_processes=world_size, use_port=str(port))
    return _left(world_size, directory)


def call_engines(world_size, directory):
    ranks, stores = range(world_size), [f"file://{directory}/store"] * world_size
    return _engines(world_size)[:].map_sync(sum_of_ranks, ranks, [world_size] * world_size, stores)


@functools.cache
def _engines(world_size):
    import atexit

    import ipyparallel

    cluster = ipyparallel.Cluster(n=world_size)
    atexit.register(cluster.stop_cluster_sync)
    return cluster.start_and_connect_sync()


def _left(world_size, directory):
    return [json.loads((directory / f"{rank}.json").read_text()) for rank in range(world_size)]


@dataclass(frozen=True)
class Peer:
    """``call(world_size, directory)`` returns the sums; ``warm`` when it keeps something from one call to the next."""

    call: Callable
    warm: bool = False
    package: str = "torch"


PEERS = {
    "torchrun, cold": Peer(call_torchrun),
    "launch(..., warm=False)": Peer(call_launch_cold),
    "torch.multiprocessing.spawn": Peer(call_spawn),
    "accelerate notebook_launcher": Peer(call_notebook_launcher, warm=True, package="accelerate"),
    "ipyparallel, warm engines": Peer(call_engines, warm=True, package="ipyparallel"),
}


def timed(call, world_size):
    """Seconds of one call. Raises RuntimeError when its sums are wrong."""
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        sums = call(world_size, Path(directory))
        seconds = time.perf_counter() - start
    if sums != [[sum(range(world_size))] * 4] * world_size:
        raise RuntimeError(f"{call.__name__} on {world_size} ranks returned {sums}")
    return seconds


def rows(world_sizes=(2, 4, 8), calls=200, repeats=5, peers_at=4):
    """A call on N warm ranks beside torchrun, spawn, notebook_launcher, ipyparallel.

    A row about ours alone has no peer, and None for its ratio.
    """
    there = [name for name, peer in PEERS.items() if importlib.util.find_spec(peer.package) is not None]
    for name in [name for name in PEERS if name not in there]:
        package = PEERS[name].package
        yield f'not measured: {name}: {package} is not installed: pip install "ringzero-course[bench]"'
    sizes, samples = sorted({*world_sizes, peers_at}), {}
    with contextlib.ExitStack() as stack:
        callers = {OURS: functools.partial(timed, call_launch)}
        callers |= {name: stack.enter_context(_caller(name, peers_at)) for name in there}
        callers[OURS](sizes[-1])  # warm contenders start their ranks before they are timed
        for name in there:
            if PEERS[name].warm:
                callers[name](peers_at)
        for name, world_size in runner.progress(_plan(callers, sizes, calls, min(repeats, calls), peers_at)):
            samples.setdefault((name, world_size), []).append(callers[name](world_size))
    for n in sizes:
        for metric, value in _summary(samples[OURS, n]).items():
            yield runner.row(f"{OURS}, {n} ranks", metric, value, None, None, "s")
    for name in there:
        ours, peer = (statistics.median(samples[which, peers_at]) for which in (OURS, name))
        yield runner.row(f"{OURS}, {peers_at} ranks", "median", ours, peer, name, "s")


def _plan(names, world_sizes, calls, repeats, peers_at):
    """``[(contender, world_size)]``: ours ``calls`` times at each size, each peer ``repeats`` times among them."""
    plan = []
    for world_size in world_sizes:
        for call in range(calls):
            plan.append((OURS, world_size))
            if world_size == peers_at and call * repeats % calls < repeats:
                plan += [(name, world_size) for name in names if name != OURS]
    return plan


@contextlib.contextmanager
def _caller(name, world_size):
    """A process that calls ``name`` when told to, as ``seconds = caller(world_size)``."""
    from ringzero.ranks.torchrun import rank_environment

    with tempfile.TemporaryDirectory(prefix="ringzero-bench-") as directory:
        environment = rank_environment(world_size) | {"TMPDIR": directory, "IPYTHONDIR": directory, MARK: directory}
        spawn = multiprocessing.get_context("spawn")
        try:
            with concurrent.futures.ProcessPoolExecutor(1, spawn, _settle, (environment,)) as executor:
                yield lambda world_size: executor.submit(timed, PEERS[name].call, world_size).result()
        finally:
            _end_marked(directory)


def _settle(environment):
    """In that process: mark all that it starts, print into a file, and end all when the benchmark ends or is killed."""
    os.environ.update(environment)
    tempfile.tempdir = None
    log = os.open(os.path.join(environment["TMPDIR"], "log"), os.O_WRONLY | os.O_CREAT)
    for output in (1, 2):
        os.dup2(log, output)
    threading.Thread(target=_end_with_the_benchmark, args=(environment[MARK],), daemon=True).start()


def _end_with_the_benchmark(directory):
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    _end_marked(directory)
    processes.remove(directory)
    os._exit(1)


def _end_marked(directory):
    """End what a peer left running, such as ipyparallel's controller and engines; not this process."""
    processes.end(lambda: (each for each in processes.marked(MARK, directory) if each.pid != os.getpid()))


def _summary(seconds):
    return {
        "median": statistics.median(seconds),
        "p99": statistics.quantiles(seconds, n=100, method="inclusive")[98],
        f"slowest of {len(seconds)}": max(seconds),
    }


command = runner.command(
    rows,
    world_sizes=(runner.ranks, "Ranks."),
    calls=(click.IntRange(2), "Of ours, at each size."),
    repeats=(runner.COUNT, "Of each peer."),
    peers_at=(click.IntRange(2), "Ranks of the peers."),
)
