"""``ringzero doctor``: what this machine can do, what is degraded, and how to mend it.

Where the course is installed, its checks come after the library's (``ringzero_course.needs``).
"""

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

OK, DEGRADED, BROKEN = "ok", "degraded", "broken"


@dataclass(frozen=True)
class Finding:
    """``state`` is "ok", "degraded" (the course runs, with less) or "broken"; ``fix`` says what to do about it."""

    name: str
    state: str
    what: str
    fix: str = ""


CHECKS: list[Callable[[], Finding]] = []


def check(function: Callable[[], Finding]) -> Callable[[], Finding]:
    """Add ``function`` to the checks that ``examine`` runs."""
    CHECKS.append(function)
    return function


def examine() -> list[Finding]:
    """Run every check; a check that itself fails is a finding too."""
    if importlib.util.find_spec("ringzero_course"):
        importlib.import_module("ringzero_course.needs")  # which adds its own checks
    findings = []
    for function in CHECKS:
        try:
            findings.append(function())
        except Exception as error:  # the other checks still say what they found
            findings.append(Finding(function.__name__, DEGRADED, f"could not be checked: {error}"))
    return findings


@check
def python() -> Finding:
    what = f"{platform.python_version()} at {sys.executable}"
    return Finding("Python", OK, what)


@check
def torch() -> Finding:
    try:
        import torch as module
        import torch.distributed as dist
    except ImportError as error:
        return Finding("torch", BROKEN, str(error), installing("torch"))
    if not dist.is_available() or not dist.is_gloo_available():
        return Finding("torch", BROKEN, f"{module.__version__} without gloo", "install torch from PyPI with pip")
    if tuple(map(int, module.__version__.split("+")[0].split(".")[:2])) < (2, 11):
        return Finding("torch", BROKEN, module.__version__, "pip install 'torch>=2.11'")
    return Finding("torch", OK, f"{module.__version__}, gloo")


@check
def gpus() -> Finding:
    import torch as module
    import torch.distributed as dist

    count = module.cuda.device_count()
    if count == 0:
        return Finding("GPUs", OK, "none; ranks run on the CPU with gloo, and by NCCL's rules: all the course needs")
    names = ", ".join(sorted({module.cuda.get_device_name(i) for i in range(count)}))
    peers = all(module.cuda.can_device_access_peer(a, b) for a in range(count) for b in range(count) if a != b)
    what = f"{count} × {names}, CUDA {module.version.cuda}"
    if not dist.is_nccl_available():
        return Finding("GPUs", DEGRADED, f"{what}, no NCCL", "install a torch built with NCCL (Linux, from PyPI)")
    nccl = ".".join(map(str, module.cuda.nccl.version()))
    if count > 1 and not peers:
        return Finding("GPUs", DEGRADED, f"{what}, NCCL {nccl}; not all reach each other", "see nvidia-smi topo -m")
    labs = f"labs use NCCL for up to {count} ranks" if count > 1 else "labs run on the CPU: NCCL takes one rank a GPU"
    return Finding("GPUs", OK, f"{what}, NCCL {nccl}; {labs}")


@check
def cores() -> Finding:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if count < 2:
        return Finding("cores", DEGRADED, f"{count}; ranks take turns, timings mean little", "give the machine two")
    return Finding("cores", OK, str(count))


@check
def memory() -> Finding:
    import psutil

    free, shm = (
        psutil.virtual_memory().available,
        shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0,
    )
    what = f"{free / 2**30:.1f} GiB free, {shm / 2**30:.1f} GiB of /dev/shm"
    if free < 2 * 2**30:
        return Finding("memory", DEGRADED, what, "close something: eight ranks want 2 GiB")
    return Finding("memory", OK, what)


@check
def ports() -> Finding:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return Finding("ports", OK, f"loopback gives out free ports ({listener.getsockname()[1]} just now)")


@check
def ranks() -> Finding:
    """The one check that runs what the course runs."""
    import torch.distributed as dist

    from ringzero.ranks import launch, pool

    try:
        returned = launch(dist.get_rank, world_size=2, device="cpu", timeout=300).returns
    except (RuntimeError, OSError) as error:
        fix = "see the message; a host name that does not resolve and a full /tmp are the usual causes"
        return Finding("ranks", BROKEN, str(error).splitlines()[0], fix)
    finally:
        pool.stop()
    return Finding(
        "ranks", OK if returned == [0, 1] else BROKEN, f"two ranks started with torchrun answered {returned}"
    )


@check
def leftovers() -> Finding:
    """This user's warm ranks whose notebook or run has ended; those of others, and those at work, are no leftovers.

    A pool of ranks is at work while a process holds its end of the socket that is named in the ranks' command lines.
    """
    import psutil

    holders = {each.laddr: each.pid for each in psutil.net_connections("unix") if each.laddr}
    left, at_work = [], set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            address = next((word for word in words if word.endswith("/pool.sock")), None)
            if address and "ringzero.ranks.warm_rank" in words and process.uids().real == os.getuid():
                if address in holders:
                    at_work.add(holders[address])
                else:
                    left.append(process.pid)
    if left:
        fix = f"kill {' '.join(map(str, left))}"
        return Finding("leftover ranks", DEGRADED, f"{len(left)} processes of ranks whose notebook has ended", fix)
    said = f"; ranks of process {', '.join(sorted(map(str, at_work)))} are at work" if at_work else ""
    return Finding("leftover ranks", OK, f"none{said}")


def installing(packages: str) -> str:
    """How to install them: a checkout has all of them, at the versions that its tests run with."""
    in_a_checkout = (Path(__file__).parents[2] / "requirements.txt").is_file()
    return f"pip install {'-r requirements.txt -c constraints.txt' if in_a_checkout else packages}"


@check
def cluster() -> Finding:
    from ringzero.ranks import cluster as emulated

    missing = emulated.missing_ability()
    if missing:
        ability, seen, fix = missing
        return Finding("cluster", DEGRADED, f"no emulated cluster without {ability}: {seen}", fix)
    return Finding("cluster", OK, "nodes with network namespaces and rate limits")


@check
def course() -> Finding:
    if importlib.util.find_spec("ringzero_course") is None:
        return Finding("course", DEGRADED, "not installed; the library needs none of it", installing("ringzero-course"))
    return Finding("course", OK, "labs, grading, figures and benches are here")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> None:
    """What this machine can do: versions, GPUs, ranks, sandbox, namespaces.

    The exit status is 1 only if the course cannot run.
    """
    findings = examine()
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        colours = {OK: "green", DEGRADED: "yellow", BROKEN: "red"}
        for finding in findings:
            click.echo(
                f"{click.style(f'{finding.state:>8}', fg=colours[finding.state])}  {finding.name}: {finding.what}"
            )
            if finding.fix:
                click.echo(f"{'':>8}  → {finding.fix}")
    sys.exit(any(finding.state == BROKEN for finding in findings))
