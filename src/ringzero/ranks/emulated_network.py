"""The wires of an emulated cluster: a bridge, a network namespace a node, a rate limit on every link.

``unshare --user --map-root-user --net python -m ringzero.ranks.emulated_network SPEC`` runs this in a user namespace of
its own, where an ordinary user may do all of it. It prints the process ids that hold the nodes' namespaces, one JSON
list, and keeps them until its standard input is closed; with the last process of a namespace its links disappear.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from pyroute2 import IPRoute

from ringzero.processes import die_with_parent

CLONE_NEWNET = 0x40000000
MTU = 9000  # jumbo frames, as clusters use: headers take under 1 % of the rate
SMALLEST_BURST = 32 * 1024  # bytes: a few frames
BURST_SECONDS = 1e-3  # what a link may send at once after a pause: enough not to depend on the kernel's clock
QUEUE_SECONDS = 0.2  # longer than TCP lets wait, so that nothing is dropped


def main(nodes: int, inter_node: float | None) -> None:
    """``inter_node`` is in bytes a second, or None for no limit."""
    holders = [_hold_namespace(number, inter_node) for number in range(nodes)]
    with IPRoute() as network:
        bridge = _add(network, "bridge0", kind="bridge")
        for number, (pid, turn) in enumerate(holders):
            next(turn)  # the namespace is there
            with open(f"/proc/{pid}/ns/net") as namespace:
                port = _add(
                    network, f"port{number}", kind="veth", peer={"ifname": "eth0", "net_ns_fd": namespace.fileno()}
                )
            network.link("set", index=port, master=bridge)
            _limit(network, port, inter_node)  # what comes down to the node
            next(turn)  # the node has set up its own side
    print(json.dumps([pid for pid, _ in holders]), flush=True)
    sys.stdin.read()
    for pid, _ in holders:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def probe() -> None:
    """Print ``{kernel module: why it cannot be used, or None}``, as JSON, of all that a cluster may use."""
    with IPRoute() as network:
        trials = {
            "bridge": lambda: network.link("add", ifname="bridge0", kind="bridge"),
            "veth": lambda: network.link("add", ifname="port0", kind="veth", peer={"ifname": "eth0"}),
            "sch_tbf": lambda: _limit(network, network.link_lookup(ifname="port0")[0], 1e6),
        }
        print(json.dumps({module: _error_of(trial) for module, trial in trials.items()}))


def _error_of(trial: Callable[[], Any]) -> str | None:
    try:
        trial()
    except Exception as error:
        return str(error)
    return None


def _hold_namespace(number: int, inter_node: float | None) -> tuple[int, Iterator[None]]:
    """Fork a process into a new network namespace: its id, and an iterator, each step of which waits for its turn."""
    to_child, to_parent = os.pipe(), os.pipe()
    pid = os.fork()
    if pid:
        os.close(to_child[0])
        os.close(to_parent[1])
        return pid, _turns(to_parent[0], to_child[1])
    try:
        os.close(to_child[1])
        os.close(to_parent[0])
        die_with_parent()  # no node outlives the network
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET)")
        os.write(to_parent[1], b".")
        os.read(to_child[0], 1)
        with IPRoute() as network:
            loopback, link = (network.link_lookup(ifname=name)[0] for name in ("lo", "eth0"))
            network.link("set", index=loopback, state="up")
            network.addr("add", index=link, address=f"10.0.0.{number + 1}", prefixlen=24)
            network.link("set", index=link, state="up", mtu=MTU)
            _limit(network, link, inter_node)
        os.write(to_parent[1], b".")
        os.read(to_child[0], 1)  # until the switch ends
    except BaseException as error:
        print(f"node {number}: {error!r}", file=sys.stderr, flush=True)
    os._exit(0)


def _turns(heard: int, tell: int) -> Iterator[None]:
    """Wait until the node's process writes to ``heard``; when resumed, let it go on by ``tell``."""
    while True:
        if not os.read(heard, 1):
            raise SystemExit(1)  # the node's process ended, and printed why
        yield
        os.write(tell, b".")


def _add(network: IPRoute, name: str, **what: Any) -> int:
    network.link("add", ifname=name, **what)
    index = network.link_lookup(ifname=name)[0]
    network.link("set", index=index, state="up", mtu=MTU)
    return index


def _limit(network: IPRoute, index: int, rate: float | None) -> None:
    if rate is not None:
        burst = max(SMALLEST_BURST, int(rate * BURST_SECONDS))
        limit = burst + int(rate * QUEUE_SECONDS)
        network.tc("add", "tbf", index=index, handle="1:", rate=int(rate), burst=burst, limit=limit)


if __name__ == "__main__":
    if sys.argv[1] == "probe":
        probe()
    else:
        main(**json.loads(sys.argv[1]))
