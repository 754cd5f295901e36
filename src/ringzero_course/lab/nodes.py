"""A cluster for a lab: the emulated one, or a single node where this machine cannot emulate one; a line says so."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ringzero


@dataclass(frozen=True)
class OneNode:
    """What a lab gets instead of a ``Cluster``: as many ranks, all on this machine, without a slow network."""

    world_size: int
    nodes: int = 1

    @property
    def ranks_per_node(self) -> int:
        return self.world_size

    @property
    def launch(self) -> Callable:
        return functools.partial(ringzero.launch, world_size=self.world_size, device="cpu")


@contextlib.contextmanager
def cluster(nodes: int = 2, ranks_per_node: int = 2, **options: Any) -> Iterator[ringzero.Cluster | OneNode]:
    """``ringzero.Cluster`` with these options; one node with as many ranks, and a line that says why, if that fails."""
    with contextlib.ExitStack() as stack:
        try:
            emulated: ringzero.Cluster | OneNode = stack.enter_context(
                ringzero.Cluster(nodes, ranks_per_node, **options)
            )
        except ringzero.ClusterUnavailable as why:
            print(f"One node with {nodes * ranks_per_node} ranks instead of {nodes} nodes: timings will differ. {why}")
            emulated = OneNode(nodes * ranks_per_node)
        yield emulated
