"""How ``torchrun`` is started, and the environment of the ranks that it starts."""

import os
import sys
from pathlib import Path

from ringzero.processes import box

# ``python -m torch.distributed.run``, importing as ``warm_rank.import_once`` does: it takes a tenth less time.
TORCHRUN = "import gc; gc.disable(); from torch.distributed.run import main; gc.freeze(); gc.enable(); main()"
# glibc gives freed memory back to the system, and every page that is taken again costs a microsecond: up to a tenth of
# a training step. A rank keeps up to 256 MiB of what it frees, in pieces of up to 32 MiB.
KEPT = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25}
LOOPBACK = {"linux": "lo", "darwin": "lo0"}  # the interface's name


def torchrun_command(workers: int, log_directory: str | Path, program: str = TORCHRUN) -> list[str]:
    """The command line of one node's ``torchrun`` for so many ``workers``; ``--standalone`` takes a free port."""
    command = [sys.executable, "-c", program, "--standalone", "--nproc-per-node", str(workers)]
    return [*command, "--log-dir", str(log_directory)]


def rank_environment(world_size: int, interface: str | None = None) -> dict[str, str]:
    """The environment of a new rank; ``interface`` is its node's to the other nodes. What the user has set stays,
    but in a box, where it may hold secrets."""
    asked = box.asked_for()
    environment = dict(os.environ) if asked is None else asked.environment()
    environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // world_size)))
    for name, size in KEPT.items():
        environment.setdefault(name, str(size))
    if interface is not None:
        environment["GLOO_SOCKET_IFNAME"] = interface
    elif sys.platform in LOOPBACK:
        # All ranks are on this machine; gloo would otherwise look up the host's name, which may not resolve.
        environment.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK[sys.platform])
    # macOS ends a forked process in which a system library is used that started before the fork; ranks are forked.
    environment.setdefault("OBJC_DISABLE_INITIALIZE_FORK_SAFETY", "YES")
    # A rank finds the package that started it, installed or not.
    package_root = str(Path(__file__).resolve().parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([package_root, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))])
    )
    return environment
