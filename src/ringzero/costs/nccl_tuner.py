"""What NCCL's tuner expects of an algorithm: its latency, and the limits of its bandwidth.

>>> round(latency("all_reduce", "ring", "LL", world_size=8) * 1e6, 1)  # microseconds: 6.6, and 14 steps of 0.6
15.0

NCCL chooses an algorithm and a protocol for each size by such a model, and not by trying. Tables and model are those of
``src/graph/tuning.cc`` (NVIDIA/nccl 5067397, 2026-06-11). The tables are in its units, microseconds and GB/s; the
functions are in seconds and bytes a second. ValueError for a name in no table.
"""

from collections.abc import Mapping
from math import log2
from typing import Any

from ringzero.costs.page.inputs import known, positive, ranks

PROTOCOLS = {"LL": 0, "LL128": 1, "Simple": 2}  # and its column in the tables of latencies

# Microseconds. 0 stands for an algorithm that NCCL does not run with a protocol or over a link.
BASE_LATENCY = {  # before the first message
    "tree": (6.8, 14.0, 8.4),
    "ring": (6.6, 14.0, 8.4),
    "collnet_direct": (0, 0, 0),
    "collnet_chain": (0, 0, 0),
    "nvls": (0, 0, 0),
    "nvls_tree": (0, 0, 0),
    "pat": (8.0, 8.0, 8.0),
}
HOP_LATENCY = {  # of each message that waits for another one, by the link it crosses
    "nvlink": {
        "tree": (0.6, 1.25, 4.0),
        "ring": (0.6, 1.9, 3.4),
        "collnet_direct": (0, 0, 3.7),
        "collnet_chain": (0, 0, 2.8),
        "nvls": (0, 0, 25),
        "nvls_tree": (0, 0, 25),
        "pat": (0, 0, 4.0),
    },
    "pci": {
        "tree": (1.0, 1.9, 4.0),
        "ring": (1.0, 2.5, 5.7),
        "collnet_direct": (0, 0, 3.7),
        "collnet_chain": (0, 0, 2.8),
        "nvls": (0, 0, 0),
        "nvls_tree": (0, 0, 0),
        "pat": (0, 0, 4.0),
    },
    "net": {
        "tree": (5.0, 8.5, 14),
        "ring": (2.7, 4.0, 14.0),
        "collnet_direct": (0, 0, 31),
        "collnet_chain": (0, 0, 30),
        "nvls": (0, 0, 18),
        "nvls_tree": (0, 0, 20.9),
        "pat": (0, 0, 14),
    },
}

# GB/s on one node, on two, and on more; per channel unless it says otherwise.
GENERATIONS = ("Volta", "Ampere", "Hopper", "Blackwell")
BANDWIDTH_LIMITS = {
    # Of all channels together, ring or tree. On several nodes NCCL goes by the CPU and not by the GPU: it takes the
    # row of Volta for Intel's, that of Ampere for AMD's.
    "ll_max_bandwidth": ((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.0, 90.0, 70.0)),
    "per_channel_ring_ll128": ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 36.7), (40.0, 40.0, 40.0)),
    "per_channel_tree_ll128": ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 29.0), (55.6, 31.67, 20.0)),
    "per_channel_tree": ((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0), (70.0, 42.8, 24.0)),
    "per_channel_nvls_tree": ((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (0.0, 57.7, 45.5), (0.0, 96.0, 80.0)),
}
NVLS_EFFICIENCY = {"Hopper": 0.85, "Blackwell": 0.74}  # of the links' bandwidth, when the NVLink switch adds
NVLINK_PAYLOAD = {"Ampere": 20.0, "Hopper": 20.6, "Blackwell": 40.1}  # GB/s of a link's 25, 25 and 50 (topo.h)
LL_ROWS_ACROSS_NODES = {"Intel": "Volta", "AMD": "Ampere"}  # whose row of "ll_max_bandwidth" goes by the CPU

ALGORITHMS = {  # the algorithms that NCCL has for a collective
    "all_reduce": ("ring", "tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
    "all_gather": ("ring", "collnet_direct", "nvls", "pat"),
    "reduce_scatter": ("ring", "collnet_direct", "nvls", "pat"),
    "broadcast": ("ring",),
    "reduce": ("ring",),
}


def base_latency(algorithm: str, protocol: str) -> float:
    """Seconds that the tuner adds once."""
    return _in(BASE_LATENCY, algorithm, "algorithm")[_in(PROTOCOLS, protocol, "protocol")] * 1e-6


def hop_latency(algorithm: str, protocol: str, link: str) -> float:
    """Seconds that the tuner adds for each step over a ``link``: "nvlink", "pci" or "net"."""
    row = _in(_in(HOP_LATENCY, link, "link"), algorithm, "algorithm")
    return row[_in(PROTOCOLS, protocol, "protocol")] * 1e-6


def bandwidth_limit(table: str, generation: str, nodes: int = 1) -> float:
    """Bytes a second of an entry of ``BANDWIDTH_LIMITS``, for GPUs of a generation ("Hopper") on so many nodes."""
    row = _in(dict(zip(GENERATIONS, _in(BANDWIDTH_LIMITS, table, "table"), strict=True)), generation, "generation")
    positive(nodes=nodes)
    return row[0 if nodes <= 1 else 1 if nodes <= 2 else 2] * 1e9


def ll_bandwidth_limit(generation: str, nodes: int = 1, cpu: str = "Intel") -> float:
    """Bytes a second of bus bandwidth beyond which the tuner expects nothing of LL, on GPUs of a generation.

    >>> [ll_bandwidth_limit("Hopper", nodes) / 1e9 for nodes in (1, 2, 4)]
    [141.0, 39.0, 20.4]

    On one node the limit goes by the GPUs, on several by the maker of the CPUs, "Intel" or "AMD". Half of the links'
    bandwidth is the other limit.
    """
    on_one_node = bandwidth_limit("ll_max_bandwidth", generation)
    by_cpu = bandwidth_limit("ll_max_bandwidth", _in(LL_ROWS_ACROSS_NODES, cpu, "cpu"), nodes)
    return on_one_node if nodes <= 1 else by_cpu


def latency(
    collective: str, algorithm: str, protocol: str, world_size: int, nodes: int = 1, link: str = "nvlink"
) -> float:
    """Seconds that the tuner expects of a collective beside those of its bytes: the time of a very small one.

    >>> for algorithm in ("ring", "tree"):  # on eight nodes of eight
    ...     print(algorithm, round(latency("all_reduce", algorithm, "LL", 64, nodes=8) * 1e6))
    ring 156
    tree 45

    ``link`` is that inside nodes, "nvlink" or "pci". What a network's plugin reports as its own latency is left out,
    and posting a message takes 1 us, as on Intel's CPUs. All channels have the same order of ranks.
    Raises ValueError for a combination that NCCL does not run, and if ``nodes`` does not divide ``world_size``.
    """
    if algorithm not in _in(ALGORITHMS, collective, "collective"):
        names = ", ".join(ALGORITHMS[collective])
        raise ValueError(f"algorithm is {algorithm!r}; NCCL runs {collective} as one of {names}")
    known((("nvlink", 0), ("pci", 0)), link, "link")
    if algorithm not in ("ring", "tree") and protocol != "Simple":
        raise ValueError(f"protocol is {protocol!r}; NCCL runs {algorithm} with 'Simple' alone")
    if not nodes >= 1 or ranks(world_size) % nodes:
        raise ValueError(f"nodes is {nodes}; give a number that divides world_size, {world_size}")
    inside = hop_latency(algorithm, protocol, link)
    # With one rank a node nothing inside nodes hides the network, and the tuner takes the tree's latency for all.
    across = hop_latency("tree" if world_size == nodes else algorithm, protocol, "net")
    base = base_latency(algorithm, protocol)
    a_node = world_size // nodes
    doublings = int(log2(nodes) + 1e-9)
    if collective in ("broadcast", "reduce"):
        return base + hop_latency("ring", protocol, link if nodes == 1 else "net")
    if algorithm == "ring":
        passes = 2 if collective == "all_reduce" else 1
        if nodes > 1:
            inside = max(inside, 3e-6 if protocol == "Simple" else 1e-6)  # Simple posts three messages
        crossings = passes * (nodes - 1)
        return base + (passes * (world_size - 1) - crossings) * inside + crossings * across
    if algorithm == "tree":
        return base + 2 * ((a_node - 1) * inside + doublings * across)
    if algorithm == "collnet_direct":  # 0.4 us for each GPU of a node that the others' data is handed to in turn
        return base + 2 * (min(1, a_node - 1) * inside + (a_node - 1) * 0.4e-6) + across
    if algorithm == "collnet_chain":
        return base + 2 * (a_node - 1) * inside + across
    if algorithm == "nvls":
        return inside + (across if nodes > 1 else 0)
    if algorithm == "nvls_tree":
        return base + inside + 2 * doublings * across
    return base + doublings * across / 3.5 + world_size * 2.8e-6  # PAT


def _in(table: Mapping[str, Any], name: str, what: str) -> Any:
    """The entry of a table, or ValueError that names those there are."""
    known(tuple(table.items()), name, what)
    return table[name]
