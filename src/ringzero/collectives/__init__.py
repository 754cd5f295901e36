"""Collectives as schedules: data that is run, proved, counted and drawn."""

from ringzero.collectives.algorithms import ALGORITHMS, options, shapes, world_sizes
from ringzero.collectives.binomial import (
    binomial_all_reduce,
    binomial_broadcast,
    binomial_gather,
    binomial_reduce,
    binomial_scatter,
    scatter_bruck_broadcast,
    scatter_ring_broadcast,
)
from ringzero.collectives.exchange import bruck_all_to_all, pairwise_all_to_all
from ringzero.collectives.flat import (
    flat_all_gather,
    flat_all_reduce,
    flat_all_to_all,
    flat_barrier,
    flat_broadcast,
    flat_gather,
    flat_reduce,
    flat_reduce_scatter,
    flat_scatter,
)
from ringzero.collectives.grid import (
    hierarchical_all_reduce,
    hierarchical_scattered_all_reduce,
    mesh_2d_all_reduce,
    torus_2d_all_reduce,
    torus_3d_all_reduce,
)
from ringzero.collectives.parameter_server import parameter_server_all_reduce, sharded_parameter_server_all_reduce
from ringzero.collectives.recursive import (
    bruck_all_gather,
    bruck_all_reduce,
    bruck_reduce_scatter,
    dissemination_barrier,
    rabenseifner_all_reduce,
    recursive_doubling_all_gather,
    recursive_doubling_all_reduce,
    recursive_halving_reduce_scatter,
)
from ringzero.collectives.ring import (
    ring_all_gather,
    ring_all_reduce,
    ring_broadcast,
    ring_reduce,
    ring_reduce_scatter,
)
from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, Transfer, chunk_bounds
from ringzero.collectives.trees import (
    binary_tree_all_reduce,
    binary_tree_broadcast,
    binary_tree_reduce,
    double_binary_tree_all_reduce,
    double_binary_tree_broadcast,
    double_binary_tree_reduce,
)
from ringzero.collectives.verify import ScheduleError, verify

_NEED_TORCH = (
    "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
)  # fmt: skip

__all__ = [
    *_NEED_TORCH,
    "ALGORITHMS",
    "Round",
    "Rounds",
    "Schedule",
    "ScheduleError",
    "Traffic",
    "Transfer",
    "binary_tree_all_reduce",
    "binary_tree_broadcast",
    "binary_tree_reduce",
    "binomial_all_reduce",
    "binomial_broadcast",
    "binomial_gather",
    "binomial_reduce",
    "binomial_scatter",
    "bruck_all_gather",
    "bruck_all_reduce",
    "bruck_all_to_all",
    "bruck_reduce_scatter",
    "chunk_bounds",
    "dissemination_barrier",
    "double_binary_tree_all_reduce",
    "double_binary_tree_broadcast",
    "double_binary_tree_reduce",
    "flat_all_gather",
    "flat_all_reduce",
    "flat_all_to_all",
    "flat_barrier",
    "flat_broadcast",
    "flat_gather",
    "flat_reduce",
    "flat_reduce_scatter",
    "flat_scatter",
    "hierarchical_all_reduce",
    "hierarchical_scattered_all_reduce",
    "mesh_2d_all_reduce",
    "options",
    "pairwise_all_to_all",
    "parameter_server_all_reduce",
    "rabenseifner_all_reduce",
    "recursive_doubling_all_gather",
    "recursive_doubling_all_reduce",
    "recursive_halving_reduce_scatter",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_broadcast",
    "ring_reduce",
    "ring_reduce_scatter",
    "scatter_bruck_broadcast",
    "scatter_ring_broadcast",
    "shapes",
    "sharded_parameter_server_all_reduce",
    "torus_2d_all_reduce",
    "torus_3d_all_reduce",
    "verify",
    "world_sizes",
]


def __getattr__(name):
    if name in _NEED_TORCH:
        from ringzero.collectives import api

        globals()[name] = getattr(api, name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
