"""An emulated cluster: nodes with a network between them whose bandwidth you set, on one Linux machine, without root.

>>> with Cluster(nodes=2, ranks_per_node=2, inter_node="1gbit") as cluster:    # doctest: +SKIP
...     cluster.launch(train, timeout=60)
...     cluster.run("torchrun", "--nnodes", "2", ..., "train.py")

Each node is a network namespace with an address of its own and one link to a switch. What crosses the link really
waits for it; memory and cores are shared, so computing is no faster than on one machine.
"""

import contextlib
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import psutil

from ringzero.ranks import call, node
from ringzero.ranks.job import Job
from ringzero.ranks.results import Ranks
from ringzero.ranks.torchrun import rank_environment

NEW_NETWORK = ("unshare", "--user", "--map-root-user", "--net")
UNITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


class ClusterUnavailable(RuntimeError):  # noqa: N818  (it says what is unavailable)
    """This machine cannot emulate a cluster. The message says which ability is missing and how to get it."""


class Cluster:
    """``nodes`` × ``ranks_per_node`` ranks. Use it in a ``with``.

    ``inter_node`` limits each node's link in each direction, in bits a second, as "200mbit" or "1gbit"; None for no
    limit.

    Raises ValueError for what no cluster can be, ClusterUnavailable where this machine cannot.
    """

    def __init__(
        self,
        nodes: int = 2,
        ranks_per_node: int = 2,
        inter_node: str | None = "1gbit",
    ):
        for name, value in (("nodes", nodes), ("ranks_per_node", ranks_per_node)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 250:
                raise ValueError(f"{name} is {value!r}; give a whole number from 1 to 250")
        self.nodes, self.ranks_per_node, self.world_size = nodes, ranks_per_node, nodes * ranks_per_node
        self._rate = bytes_per_second(inter_node)
        self._switch: subprocess.Popen[str] | None = None
        self._holders: list[int] = []  # process ids, one in each node

    def __enter__(self) -> "Cluster":
        try:
            switch = self._switch = _switch(
                json.dumps({"nodes": self.nodes, "inter_node": self._rate}), stdin=subprocess.PIPE
            )
            assert switch.stdout is not None
            assert switch.stderr is not None
            line = switch.stdout.readline()
            if not line:
                raise OSError(switch.stderr.read())
            self._holders = json.loads(line)
        except OSError as error:
            self.close()
            raise ClusterUnavailable(_why_not() or str(error)) from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the network."""
        switch, self._switch = self._switch, None
        if switch is not None:
            pipes = [pipe for pipe in (switch.stdin, switch.stdout, switch.stderr) if pipe is not None]
            with contextlib.suppress(OSError):
                pipes[0].close()  # at the end of its input the switch ends the network
            switch.wait()
            for pipe in pipes[1:]:
                pipe.close()

    def launch(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float = 60.0,
        trace: bool = False,
        may_lose: bool = False,
    ) -> Ranks:
        """``ringzero.launch`` on all ranks of this cluster, on the CPU. Node n has the ranks n·r to n·r + r - 1.

        The ranks are those of ``launch``: for each call, a fork of each enters its node.
        """
        pickled = call.prepare(fn, args, self.world_size, timeout)
        job = Job(self.world_size, "cpu", timeout, bool(trace), bool(may_lose), tuple(self._holders))
        return call.on_ranks(pickled, job)

    def run(self, *command: str, timeout: float = 120.0) -> list[str]:
        """Run a command on every node at once, as Slurm's ``srun`` does; the nodes' outputs, a list of strings.

        It finds SLURM_NODEID and SLURM_NNODES in its environment. Node n's address is ``address(n)``.
        Raises RuntimeError with what the first node that failed, or did not end in ``timeout`` seconds, had printed.
        """
        with tempfile.TemporaryDirectory(prefix="ringzero-cluster-") as directory, contextlib.ExitStack() as cleanup:
            outputs = [open(f"{directory}/{number}", "w+") for number in range(self.nodes)]  # noqa: SIM115
            processes = []
            for number, output in enumerate(outputs):
                cleanup.callback(output.close)
                environment = rank_environment(self.world_size, node.INTERFACE)
                environment |= {"SLURM_NODEID": str(number), "SLURM_NNODES": str(self.nodes)}
                process = subprocess.Popen(
                    [*self._enter(number), *command],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
                cleanup.callback(_end, process)
                processes.append(process)
            deadline = time.monotonic() + timeout
            while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
                if any(process.poll() for process in processes):
                    deadline = min(deadline, time.monotonic() + 5.0)  # the others wait for the one that failed
                time.sleep(0.02)
            said = []
            for output in outputs:
                output.seek(0)
                said.append(output.read())
            for number, process in sorted(enumerate(processes), key=lambda pair: pair[1].returncode is None):
                if process.returncode != 0:
                    how = (
                        f"ended with {process.returncode}"
                        if process.returncode
                        else f"was not done after {timeout:g} s"
                    )
                    raise RuntimeError(f"node {number}: {shlex.join(command)} {how}:\n{said[number]}")
            return said

    def _enter(self, number: int) -> tuple[str, ...]:
        return ("nsenter", "--preserve-credentials", "--user", "--net", "--target", str(self._holders[number]), "--")

    def __repr__(self) -> str:
        limit = "no limits" if self._rate is None else f"inter_node {self._rate * 8 / 1e6:g} Mbit/s"
        return f"<Cluster: {self.nodes} nodes × {self.ranks_per_node} ranks; {limit}>"


def missing_ability() -> tuple[str, str, str] | None:
    """None if this machine can emulate a cluster, else ``(what is missing, what was seen, how to get it)``."""
    if sys.platform != "linux":
        return "Linux", f"this is {sys.platform}", "Use a Linux machine or a virtual one"
    if missing := [program for program in ("unshare", "nsenter") if shutil.which(program) is None]:
        return " and ".join(missing), "not on the PATH", "apt-get install util-linux"
    if importlib.util.find_spec("pyroute2") is None:
        return "pyroute2", "not installed", 'pip install "ringzero[cluster]"'
    tried = subprocess.run([*NEW_NETWORK, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        fix = "As root: sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
        return "user namespaces", tried.stderr.strip() or f"unshare ended with {tried.returncode}", fix
    with _switch("probe", stdin=subprocess.DEVNULL) as switch:
        said, wrong = switch.communicate()
    if switch.returncode:
        return "network namespaces", wrong.strip()[-300:], "See the message"
    for module, error in json.loads(said).items():
        if error:
            return f"the kernel's {module}", error, f"As root: modprobe {module}; some kernels are built without it"
    return None


def _why_not() -> str | None:
    missing = missing_ability()
    return "An emulated cluster needs {}: {}. {}.".format(*missing) if missing else None


def _switch(argument: str, stdin: int) -> subprocess.Popen[str]:
    """Start ``ringzero.ranks.emulated_network`` in a network of its own."""
    return subprocess.Popen(
        [*NEW_NETWORK, sys.executable, "-m", "ringzero.ranks.emulated_network", argument],
        env=rank_environment(1),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C in the terminal reaches the notebook only
    )


def _end(process: subprocess.Popen[Any]) -> None:
    """Kill a process and all it started, if it still runs."""
    if process.poll() is None:
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        process.kill()
    process.wait()


def address(node: int) -> str:
    """The address of a node in its cluster."""
    return f"10.0.0.{node + 1}"


def bytes_per_second(rate: str | None) -> float | None:
    """ "200mbit" in bytes a second; None stays None.

    >>> bytes_per_second("200mbit")
    25000000.0
    """
    if rate is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?bit)", str(rate).strip().lower())
    if match is None or not float(match[1]):
        raise ValueError(
            f'{rate!r} is not a rate; write it in bits a second as "200mbit" or "1gbit", None for no limit'
        )
    bits = float(match[1]) * UNITS[match[2]]
    if bits > 30e9:
        raise ValueError(f"{rate!r} is more than an emulated link can carry; use None for no limit")
    return bits / 8
