"""A cluster for a lab: the emulated one, or one node where this machine has none, which is said and not hidden."""

import contextlib
import functools
from dataclasses import dataclass

import ringzero


@dataclass(frozen=True)
class OneNode:
    """What a lab gets instead of a ``Cluster``: as many ranks, all on this machine, with nothing between them."""

    world_size: int
    nodes: int = 1

    @property
    def ranks_per_node(self):
        return self.world_size

    @property
    def launch(self):
        return functools.partial(ringzero.launch, world_size=self.world_size, device="cpu")


@contextlib.contextmanager
def cluster(nodes=2, ranks_per_node=2, **options):
    """``ringzero.Cluster`` with these options; one node with as many ranks, and a line that says why, without it."""
    with contextlib.ExitStack() as stack:
        try:
            emulated = stack.enter_context(ringzero.Cluster(nodes, ranks_per_node, **options))
        except ringzero.ClusterUnavailable as why:
            print(f"One node with {nodes * ranks_per_node} ranks instead of {nodes} nodes: timings will differ. {why}")
            emulated = OneNode(nodes * ranks_per_node)
        yield emulated
