"""Ranks in a grid: nodes and their ranks, rows and columns of a mesh or torus. Ranks are numbered row by row.

Hierarchical all-reduce: first inside the nodes, on the fast links, then between them, then inside again. 2-D torus:
Mikami et al., "Massively distributed SGD: ImageNet/ResNet-50 training in a flash" (Sony), arXiv 1811.05233 (2018).
"""

from math import prod

import numpy as np

from ringzero.collectives.binomial import binomial_broadcast
from ringzero.collectives.compose import side_by_side
from ringzero.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from ringzero.collectives.schedule import Schedule, check_world_size


def hierarchical_all_reduce(nodes: int, ranks_per_node: int) -> Schedule:
    """Reduce to each node's first rank (binomial), ring all-reduce among those leaders, broadcast inside the nodes.

    Little goes between the nodes, but all of it through one rank of each node, while the others wait. The leader of
    node i is rank ``i * ranks_per_node``.
    """
    world_size = _check_shape(nodes, ranks_per_node)
    node = np.arange(world_size).reshape(nodes, ranks_per_node)
    whole = np.arange(nodes).reshape(1, 1, nodes)
    down = side_by_side(binomial_broadcast(ranks_per_node).rounds, node, whole)
    across = side_by_side(ring_all_reduce(nodes).rounds, node[:, :1].T, whole.reshape(1, nodes, 1))
    return Schedule("all_reduce", "hierarchical", world_size, nodes, down.backwards(reduce=True) + across + down)


def hierarchical_scattered_all_reduce(nodes: int, ranks_per_node: int) -> Schedule:
    """Reduce-scatter inside each node, all-reduce each chunk between the nodes, all-gather inside: all by rings.

    Every rank takes part between the nodes, with its share of the buffer: as many rings run at once as a node has
    ranks. The messages are those of a 2-D torus whose rows are the nodes.
    """
    world_size = _check_shape(nodes, ranks_per_node)
    rounds = _torus_rounds((nodes, ranks_per_node))
    return Schedule("all_reduce", "hierarchical_scattered", world_size, world_size, rounds)


def torus_2d_all_reduce(rows: int, columns: int) -> Schedule:
    """Reduce-scatter along the rows, all-reduce along the columns, all-gather along the rows.

    2(N-1)/N of the buffer a rank, as few as a ring of all, in 2(columns-1) + 2(rows-1) rounds.
    """
    world_size = _check_shape(rows, columns)
    return Schedule("all_reduce", "torus_2d", world_size, world_size, _torus_rounds((rows, columns)))


def torus_3d_all_reduce(planes: int, rows: int, columns: int) -> Schedule:
    """The same with a 2-D torus in the middle: reduce-scatter along the rows, 2-D all-reduce, all-gather."""
    world_size = _check_shape(planes, rows, columns)
    return Schedule("all_reduce", "torus_3d", world_size, world_size, _torus_rounds((planes, rows, columns)))


def mesh_2d_all_reduce(rows: int, columns: int) -> Schedule:
    """A whole all-reduce along each row, then another along each column: about 4S bytes a rank.

    Twice what a torus needs, since the columns carry the whole buffer again. A mesh has no link from a row's last rank
    to its first. That message goes back along the row, over the links of the other direction, which are idle.
    """
    world_size = _check_shape(rows, columns)
    chunks = np.lcm(rows, columns)  # the buffer in `columns` pieces for the rows, in `rows` for the columns
    rank, chunk = np.arange(world_size).reshape(rows, columns), np.arange(chunks)
    along_rows = side_by_side(ring_all_reduce(columns).rounds, rank, chunk.reshape(1, columns, -1))
    along_columns = side_by_side(ring_all_reduce(rows).rounds, rank.T, chunk.reshape(1, rows, -1))
    return Schedule("all_reduce", "mesh_2d", world_size, int(chunks), along_rows + along_columns)


def _torus_rounds(shape):
    *outer, columns = shape
    if not outer:
        return ring_all_reduce(columns).rounds
    rows = prod(outer)
    rank, chunk = np.arange(rows * columns).reshape(rows, columns), np.arange(rows * columns).reshape(columns, rows)
    scatter = side_by_side(ring_reduce_scatter(columns).rounds, rank, chunk[None])
    middle = side_by_side(_torus_rounds(outer), rank.T, chunk[:, :, None])  # each column all-reduces its own chunks
    gather = side_by_side(ring_all_gather(columns).rounds, rank, chunk[None])
    return scatter + middle + gather


def _check_shape(*shape):
    for side in shape:
        check_world_size(side)
    return prod(shape)
