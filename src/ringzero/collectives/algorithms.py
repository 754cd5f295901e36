"""Every algorithm by collective and name: ``ALGORITHMS["all_reduce"]["ring"](8)`` is a schedule.

All take the number of ranks first, and some take more by keyword (``options`` says which): ``root``; ``chunks``, how
many pieces follow each other through a pipeline; ``servers``; ``shape``, the sides of the grid that the ranks form, by
default the most even one. A number of ranks that an algorithm cannot take raises ValueError (``world_sizes`` lists
those it can take).
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from inspect import signature

from ringzero.collectives import binomial, direct, exchange, flat, grid, parameter_server, recursive, ring, trees
from ringzero.collectives.schedule import Schedule, check_world_size


def world_sizes(collective: str, name: str, limit: int) -> list[int]:
    """The numbers of ranks up to ``limit`` that the algorithm takes.

    >>> world_sizes("all_gather", "recursive_doubling", 16)
    [1, 2, 4, 8, 16]
    """
    possible = []
    for world_size in range(1, limit + 1):
        with suppress(ValueError):
            ALGORITHMS[collective][name](world_size)
            possible.append(world_size)
    return possible


def options(collective: str, name: str) -> list[str]:
    """The names of what the algorithm takes besides the number of ranks.

    >>> options("broadcast", "ring")
    ['root', 'chunks']
    """
    return list(signature(ALGORITHMS[collective][name]).parameters)[1:]


def shapes(world_size: int, sides: int) -> list[tuple[int, ...]]:
    """All grids of ``world_size`` ranks with so many sides.

    >>> shapes(6, 2)
    [(1, 6), (2, 3), (3, 2), (6, 1)]
    """
    if sides == 1:
        return [(world_size,)]
    divisors = [side for side in range(1, world_size + 1) if world_size % side == 0]
    return [(side, *rest) for side in divisors for rest in shapes(world_size // side, sides - 1)]


def _in_a_grid(generator):
    """``generator`` with ``world_size`` and ``shape`` in place of an argument for each side; ``sides`` names these."""
    sides = list(signature(generator).parameters)

    def schedule(world_size, shape=None):
        check_world_size(world_size)
        possible = shapes(world_size, len(sides))
        if shape is None:
            shape = min(possible, key=max)
        if (tuple(shape) if isinstance(shape, Iterable) else shape) not in possible:
            known = ", ".join("x".join(map(str, each)) for each in possible)
            raise ValueError(f"shape is {shape!r}; {' x '.join(sides)} must be {world_size}: one of {known}")
        return generator(*shape)

    schedule.__name__, schedule.__doc__, schedule.sides = generator.__name__, generator.__doc__, sides
    return schedule


ALGORITHMS: dict[str, dict[str, Callable[..., Schedule]]] = {
    "all_reduce": {
        "ring": ring.ring_all_reduce,
        "flat": flat.flat_all_reduce,
        "binomial": binomial.binomial_all_reduce,
        "binary_tree": trees.binary_tree_all_reduce,
        "double_binary_tree": trees.double_binary_tree_all_reduce,
        "recursive_doubling": recursive.recursive_doubling_all_reduce,
        "rabenseifner": recursive.rabenseifner_all_reduce,
        "bruck": recursive.bruck_all_reduce,
        "hierarchical": _in_a_grid(grid.hierarchical_all_reduce),
        "hierarchical_scattered": _in_a_grid(grid.hierarchical_scattered_all_reduce),
        "torus_2d": _in_a_grid(grid.torus_2d_all_reduce),
        "torus_3d": _in_a_grid(grid.torus_3d_all_reduce),
        "mesh_2d": _in_a_grid(grid.mesh_2d_all_reduce),
        "parameter_server": parameter_server.parameter_server_all_reduce,
        "sharded_parameter_server": parameter_server.sharded_parameter_server_all_reduce,
        "bidirectional_ring": ring.bidirectional_ring_all_reduce,
        "two_shot": direct.two_shot_all_reduce,
    },
    "reduce_scatter": {
        "ring": ring.ring_reduce_scatter,
        "flat": flat.flat_reduce_scatter,
        "recursive_halving": recursive.recursive_halving_reduce_scatter,
        "bruck": recursive.bruck_reduce_scatter,
    },
    "all_gather": {
        "ring": ring.ring_all_gather,
        "flat": flat.flat_all_gather,
        "recursive_doubling": recursive.recursive_doubling_all_gather,
        "bruck": recursive.bruck_all_gather,
    },
    "broadcast": {
        "ring": ring.ring_broadcast,
        "flat": flat.flat_broadcast,
        "binomial": binomial.binomial_broadcast,
        "scatter_ring": binomial.scatter_ring_broadcast,
        "scatter_bruck": binomial.scatter_bruck_broadcast,
        "binary_tree": trees.binary_tree_broadcast,
        "double_binary_tree": trees.double_binary_tree_broadcast,
    },
    "reduce": {
        "ring": ring.ring_reduce,
        "flat": flat.flat_reduce,
        "binomial": binomial.binomial_reduce,
        "binary_tree": trees.binary_tree_reduce,
        "double_binary_tree": trees.double_binary_tree_reduce,
    },
    "gather": {"flat": flat.flat_gather, "binomial": binomial.binomial_gather},
    "scatter": {"flat": flat.flat_scatter, "binomial": binomial.binomial_scatter},
    "all_to_all": {
        "pairwise": exchange.pairwise_all_to_all,
        "flat": flat.flat_all_to_all,
        "bruck": exchange.bruck_all_to_all,
    },
    "barrier": {"dissemination": recursive.dissemination_barrier, "flat": flat.flat_barrier},
}
