"""Machines to price a schedule on, from the hardware table.

    dgx_h100(4)                                                     32 GPUs
    emulated_cluster(2, 4, 125e6, local_alpha=60e-6)                two network namespaces, 1 Gbit/s

Bandwidths are those the makers state (``page.hardware``); programs reach less. Alphas are what a hop takes in NCCL
2.30's own cost model, for a ring and the protocol Simple (src/graph/tuning.cc); ``topology.scaled(*PROTOCOLS[name])``
gives the machine under another protocol.
"""

from ringzero.costs.page import hardware
from ringzero.costs.page.hardware import NETWORK_ALPHA, NVLINK_ALPHA
from ringzero.network.topology import Topology, bus, cluster, switch


def dgx_a100(nodes: int = 1, **fabric: object) -> Topology:
    """``nodes`` DGX A100; ``fabric``: what ``cluster`` takes, such as ``nodes_per_leaf`` and ``oversubscription``."""
    return _dgx("DGX A100", nodes, fabric)


def dgx_h100(nodes: int = 1, **fabric: object) -> Topology:
    """``nodes`` DGX H100; ``fabric`` as for ``dgx_a100``."""
    return _dgx("DGX H100", nodes, fabric)


def dgx_b200(nodes: int = 1, **fabric: object) -> Topology:
    """``nodes`` DGX B200; ``fabric`` as for ``dgx_a100``."""
    return _dgx("DGX B200", nodes, fabric)


def dgx_b300(nodes: int = 1, **fabric: object) -> Topology:
    """``nodes`` DGX B300; ``fabric`` as for ``dgx_a100``."""
    return _dgx("DGX B300", nodes, fabric)


def _dgx(name, nodes, fabric):
    """GPUs on an NVSwitch, a network card for each; the cards on a network that does not block."""
    row = hardware.node(name)
    node = switch(row["gpus"], NVLINK_ALPHA, hardware.nvlink(row["gpu"]) * 1e9)
    port = hardware.infiniband(row["infiniband"]) * 1e9
    return cluster(node, nodes, NETWORK_ALPHA, port, nics=row["gpus"], name=f"{nodes} {name}", **fabric)


def summit(nodes: int = 4096) -> Topology:
    """Nodes of Summit (2018): six V100, each with two NVLinks to each of its two neighbours, and two EDR ports.

    GPUs of the two sockets count as joined as fast as those of one.
    """
    node = switch(6, NVLINK_ALPHA, hardware.nvlink("V100") / 3 * 1e9)
    port = hardware.infiniband("EDR") * 1e9
    return cluster(node, nodes, NETWORK_ALPHA, port, nics=2, name=f"{nodes} nodes of Summit")


def laptop(ranks: int, alpha: float = 50e-6, bandwidth: float = 2e9, gamma: float = 0.0) -> Topology:
    """Processes of one computer, which all copy through its memory. The defaults are round; pass what you measured.

    To measure, time an all-reduce at two sizes or more. With all rates 1 the price counts alphas and bytes, and
    ``fit_alpha_beta(price(schedule, 0, laptop(ranks, 1, 1)).coefficients, sizes, times)`` gives alpha and 1/bandwidth.
    """
    return bus(ranks, alpha, bandwidth, gamma, name="laptop")


def emulated_cluster(
    nodes: int,
    ranks_per_node: int,
    inter_node_bandwidth: float,
    inter_node_alpha: float = 100e-6,
    alpha: float = 50e-6,
    bandwidth: float = 2e9,
    gamma: float = 0.0,
) -> Topology:
    """A cluster on one computer: network namespaces, each with one virtual card that its ranks share.

    The card carries ``inter_node_bandwidth`` bytes a second each way. ``bandwidth`` is what all copies within a node
    get together. The other defaults are round figures; pass what you measured, as for ``laptop``. Measure ``alpha`` and
    ``bandwidth`` on one node, and the two inter-node values between nodes of one rank, where the formulas for a switch
    hold.
    """
    node = laptop(ranks_per_node, alpha, bandwidth, gamma)
    return cluster(node, nodes, inter_node_alpha, inter_node_bandwidth, name=f"emulated cluster of {nodes} nodes")
