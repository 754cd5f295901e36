"""The links of a cluster, measured: alpha and bandwidth inside a node and between nodes, as a ``Topology``."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from ringzero.collectives.ring import ring_all_reduce
from ringzero.costs.page.alpha_beta import fit_alpha_beta
from ringzero.measure.turns import times
from ringzero.network import Topology, emulated_cluster, laptop, price
from ringzero.ranks import Ranks

PROBES = (2**12, 2**16, 2**20, 2**22)  # bytes


class Nodes(Protocol):
    """A ``ringzero.Cluster``, or what stands in for one where nodes cannot be emulated (``lab.cluster``)."""

    @property
    def nodes(self) -> int: ...
    @property
    def ranks_per_node(self) -> int: ...
    @property
    def launch(self) -> Callable[..., Ranks]: ...


def fit_links(cluster: Nodes, tries: int = 9) -> Topology:
    """The cluster, or one node with all the ranks, as a ``Topology`` with measured links.

    Inside a node alpha and bandwidth are fitted to a ring all-reduce of its ranks,
    on all nodes at once, because they share the cores. Between nodes alpha is the
    time of the smallest message. The bandwidth comes from the two largest messages:
    after a pause a link sends the bytes of its first millisecond at once, whatever
    the message, and the difference of two sizes does not contain them.
    """
    ranks = cluster.ranks_per_node
    found = cluster.launch(_probe, ranks, PROBES, tries, timeout=120).returns
    inside, between = map(_slowest, zip(*found, strict=True))
    counts = price(ring_all_reduce(ranks), 0, laptop(ranks, 1, 1)).coefficients
    alpha, beta = fit_alpha_beta(counts, [float(size) for size in PROBES], inside)
    alpha = max(alpha, 0.0)
    if cluster.nodes == 1:
        return laptop(ranks, alpha, 1 / beta)
    bandwidth = (PROBES[-1] - PROBES[-2]) / (between[-1] - between[-2])
    link = {"inter_node_bandwidth": bandwidth, "inter_node_alpha": between[0]}
    return emulated_cluster(cluster.nodes, ranks, **link, alpha=alpha, bandwidth=1 / beta)


def _slowest(ranks: Sequence[Sequence[float]]) -> list[float]:
    """Of the seconds that each rank measured for each size, the largest."""
    return [max(seconds) for seconds in zip(*ranks, strict=True)]


def _probe(ranks_per_node: int, sizes: Sequence[int], tries: int) -> tuple[list[float], list[float]]:
    """On each rank: seconds of an all-reduce inside its node, and of a message from node 0 to node 1, for each size."""
    import torch
    import torch.distributed as dist

    import ringzero

    rank, world_size = dist.get_rank(), dist.get_world_size()
    firsts = range(0, world_size, ranks_per_node)
    node = [dist.new_group(list(range(first, first + ranks_per_node))) for first in firsts][rank // ranks_per_node]

    def there_and_back(x: torch.Tensor) -> None:
        if rank == 0 and ranks_per_node < world_size:
            dist.send(x, ranks_per_node)
            dist.recv(x, ranks_per_node)
        elif rank == ranks_per_node:
            dist.recv(x, 0)
            dist.send(x, 0)

    tensors = [torch.ones(size // 4) for size in sizes]
    inside_node = partial(ringzero.all_reduce, group=node)
    inside = [min(times(inside_node, x, tries=5 * tries)) for x in tensors]  # milliseconds each, so more often
    between = [min(times(there_and_back, x, tries=tries)) / 2 for x in tensors]
    return inside, between
