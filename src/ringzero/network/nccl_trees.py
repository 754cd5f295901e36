"""The claim made for NCCL 2.4: on 24,576 GPUs of Summit, double binary trees have up to 180 times less latency.

    latency_advantage()        {"ring": seconds, "tree": seconds, "ratio": ...}

Jeaugey, "Massively scale your deep learning training with NCCL 2.4", NVIDIA developer blog (2019). Here ring and tree
are priced for an empty buffer on 4,096 nodes of six V100, and every rank goes on as soon as it has what it needs. A hop
takes what NCCL's tuner gives it under the protocol for small messages (LL): over the network 5.0 microseconds in a
tree, 2.7 in a ring. The ratio found is more than was claimed. NCCL's own cost models also give more: 340 to 740 by
version, from 2.4 to 2.30. A model of hops leaves out the launch of the kernel, the GPU's own time and a busy network.
These add more to the tree's few hops than to the ring's many, so the real ratio is smaller.
"""

import numpy as np

from ringzero.collectives.compose import side_by_side
from ringzero.collectives.ring import ring_all_reduce, ring_broadcast
from ringzero.collectives.schedule import Schedule
from ringzero.collectives.trees import double_binary_tree_all_reduce
from ringzero.costs.nccl_tuner import hop_latency
from ringzero.network.machines import summit
from ringzero.network.pricing import critical_path


def nccl_tree_all_reduce(nodes: int, ranks_per_node: int) -> Schedule:
    """As NCCL builds it: a chain to the first rank of each node, two binary trees over those, and the chain back."""
    world_size = nodes * ranks_per_node
    node, halves = np.arange(world_size).reshape(nodes, ranks_per_node), np.arange(2)
    chain = side_by_side(ring_broadcast(ranks_per_node).rounds, node, halves.reshape(1, 1, 2))
    trees = side_by_side(double_binary_tree_all_reduce(nodes).rounds, node[:, :1].T, halves.reshape(1, 2, 1))
    return Schedule("all_reduce", "nccl_tree", world_size, 2, chain.backwards(reduce=True) + trees + chain)


def latency_advantage(nodes: int = 4096, protocol: str = "LL") -> dict[str, float]:
    """Seconds of the ring and of NCCL's tree for an empty buffer on Summit, and how many times faster the tree is."""
    schedules = {"ring": ring_all_reduce(6 * nodes), "tree": nccl_tree_all_reduce(nodes, 6)}
    took = {}
    for name, schedule in schedules.items():
        alphas = hop_latency(name, protocol, "nvlink"), hop_latency(name, protocol, "net")
        took[name] = critical_path(schedule, 0, summit(nodes, alphas))
    return {**took, "ratio": took["ring"] / took["tree"]}
