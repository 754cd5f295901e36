"""The claim made for NCCL 2.4: on 24,576 GPUs of Summit, double binary trees have up to 180 times less latency.

    latency_advantage()        {"ring": seconds, "tree": seconds, "ratio": ...}

Jeaugey, "Massively scale your deep learning training with NCCL 2.4", NVIDIA developer blog (2019). Here ring and tree
are priced for an empty buffer on 4,096 nodes of six V100, with the hop times of the protocol that NCCL uses for small
messages (LL), and every rank goes on as soon as it has what it needs. The ratio found is some hundreds, more than was
claimed. NCCL's own cost models also give more: 340 to 740 by version, from 2.4 to 2.30. A model of hops leaves out the
launch of the kernel, the GPU's own time and a busy network. These add more to the tree's few hops than to the ring's
many, so the real ratio is smaller.
"""

import numpy as np

from ringzero.collectives.compose import side_by_side
from ringzero.collectives.ring import ring_all_reduce, ring_broadcast
from ringzero.collectives.schedule import Schedule
from ringzero.collectives.trees import double_binary_tree_all_reduce
from ringzero.network.choose import protocol_factors
from ringzero.network.machines import summit
from ringzero.network.pricing import critical_path
from ringzero.network.topology import Topology


def nccl_tree_all_reduce(nodes: int, ranks_per_node: int) -> Schedule:
    """As NCCL builds it: a chain to the first rank of each node, two binary trees over those, and the chain back."""
    world_size = nodes * ranks_per_node
    node, halves = np.arange(world_size).reshape(nodes, ranks_per_node), np.arange(2)
    chain = side_by_side(ring_broadcast(ranks_per_node).rounds, node, halves.reshape(1, 1, 2))
    trees = side_by_side(double_binary_tree_all_reduce(nodes).rounds, node[:, :1].T, halves.reshape(1, 2, 1))
    return Schedule("all_reduce", "nccl_tree", world_size, 2, chain.backwards(reduce=True) + trees + chain)


def latency_advantage(topology: Topology | None = None, protocol: str = "LL") -> dict[str, float]:
    """Seconds of the ring and of NCCL's tree for an empty buffer, and how many times faster the tree is.

    ``topology``: under a ring's hops of the protocol Simple; Summit when None. In NCCL's model a hop of a tree takes
    another time than a hop of a ring: over the network 5 us under LL, where the ring's takes 2.7.
    """
    topology = topology or summit()
    ring, tree = (
        critical_path(schedule, 0, topology.scaled(*protocol_factors(protocol, algorithm)))
        for algorithm, schedule in (
            ("ring", ring_all_reduce(topology.world_size)),
            ("tree", nccl_tree_all_reduce(*topology.shape)),
        )
    )
    return {"ring": ring, "tree": tree, "ratio": ring / tree}
