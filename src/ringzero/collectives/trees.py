"""Pipelined trees: the buffer flows down in pieces, and in a round no rank sends or receives more than one piece.

In one binary tree half the ranks are leaves, which never send, and the others send everything twice: 2S bytes. Now
take two trees over the same ranks, in which a leaf of one is an inner node of the other, and let each carry half the
buffer: every rank sends about S. Sanders, Speck & Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
and scan", Parallel Computing 35 (2009); in NCCL since 2.4.
"""

import numpy as np

from ringzero.collectives.compose import check_pieces, pipeline
from ringzero.collectives.schedule import Schedule, check_world_size


def binary_tree_broadcast(world_size: int, root: int = 0, chunks: int = 1) -> Schedule:
    """``chunks`` pieces down a binary tree, each to the left child, then to the right."""
    check_world_size(world_size, root)
    return Schedule("broadcast", "binary_tree", world_size, chunks, _one_tree(world_size, root, chunks), root)


def binary_tree_reduce(world_size: int, root: int = 0, chunks: int = 1) -> Schedule:
    """The broadcast backwards: ``chunks`` pieces up the tree, added on the way."""
    check_world_size(world_size, root)
    rounds = _one_tree(world_size, root, chunks).backwards(reduce=True)
    return Schedule("reduce", "binary_tree", world_size, chunks, rounds, root)


def binary_tree_all_reduce(world_size: int, chunks: int = 1) -> Schedule:
    """Reduce to rank 0, then broadcast from it."""
    check_world_size(world_size)
    down = _one_tree(world_size, 0, chunks)
    return Schedule("all_reduce", "binary_tree", world_size, chunks, down.backwards(reduce=True) + down)


def double_binary_tree_broadcast(world_size: int, root: int = 0, chunks: int = 1) -> Schedule:
    """Each half of the buffer in ``chunks`` pieces down a tree of its own: 2(ceil(log2 N) + K) rounds of S/2K bytes."""
    check_world_size(world_size, root)
    rounds = _two_trees(world_size, root, chunks)
    return Schedule("broadcast", "double_binary_tree", world_size, 2 * chunks, rounds, root)


def double_binary_tree_reduce(world_size: int, root: int = 0, chunks: int = 1) -> Schedule:
    """The broadcast backwards."""
    check_world_size(world_size, root)
    rounds = _two_trees(world_size, root, chunks).backwards(reduce=True)
    return Schedule("reduce", "double_binary_tree", world_size, 2 * chunks, rounds, root)


def double_binary_tree_all_reduce(world_size: int, chunks: int = 1) -> Schedule:
    """Reduce to rank 0, then broadcast from it: about 2S bytes a rank, as the ring, in O(log N) rounds."""
    check_world_size(world_size)
    down = _two_trees(world_size, 0, chunks)
    return Schedule("all_reduce", "double_binary_tree", world_size, 2 * chunks, down.backwards(reduce=True) + down)


def _one_tree(n, root, chunks):
    """Positions 0 to n-1, the root at 0; the children of p are 2p+1 and 2p+2."""
    child = np.arange(1, n)
    parent = (child - 1) // 2
    arrival = np.full(n, -1)  # when the first piece is there
    for position in range(1, n):
        arrival[position] = arrival[(position - 1) // 2] + (1 if position % 2 else 2)
    # Two children are served in turn. Of two ranks, the root has only one child.
    return pipeline((parent + root) % n, (child + root) % n, arrival[1:], chunks, period=1 if n == 2 else 2)


def _two_trees(n, root, chunks):
    """Positions 0 to n-1, the root at 0.

    Edge e of the first tree leads to position e + 1, and so does edge e + n - 1 of the second.
    """
    check_pieces(chunks)
    tree, child = np.divmod(np.arange(2 * (n - 1)), max(n - 1, 1)) + np.array([[0], [1]])
    parent = _parents(n)
    leaving = [[] for _ in range(n)]  # position -> the one or two edges that leave it
    for edge, position in enumerate(parent.tolist()):
        leaving[position].append(edge)
    color = _two_colors(parent.tolist(), leaving)
    start = np.zeros(len(parent), dtype=int)
    todo = [(edge, 0) for edge in leaving[0]]  # edges, each with the round from which its sender has the first piece
    for edge, soonest in todo:
        start[edge] = soonest + (soonest + color[edge]) % 2  # colour 0 is used in even rounds, colour 1 in odd ones
        todo += [(below, start[edge] + 1) for below in leaving[child[edge]] if tree[below] == tree[edge]]
    return pipeline((parent + root) % n, (child + root) % n, start, chunks, period=2, first=tree * chunks)


def _parents(n):
    """The parent of each of the positions 1 to n-1 in the first tree, then in the second. Shape ``(2 (n-1),)``.

    In the first tree odd positions are leaves. In the second even positions must be: it is the mirror image of the
    first if n is odd, else the first with every position moved by one.
    """
    position = np.arange(1, n)
    lowest = position & -position
    up = position ^ lowest | lowest << 1
    first = np.where(up < n, up, position ^ lowest)
    plays = position[::-1] if n % 2 else np.roll(position, -1)  # each position's place in the first tree
    played_by = np.zeros(n, dtype=int)
    played_by[plays] = position
    return np.concatenate((first, played_by[first[plays - 1]]))


def _two_colors(parent, leaving):
    """Colour the edges 0 and 1: the two that leave a position differ, and so do the two that lead to a position.

    Edges that must differ form paths and even cycles, so colours that alternate along them fit.
    """
    edges, color = len(parent), {}
    for first in [*leaving[0], *range(edges)]:
        todo = [(first, 0)]
        while todo:
            edge, its = todo.pop()
            if edge not in color:
                color[edge] = its
                differ = ((edge + edges // 2) % edges, *leaving[parent[edge]])
                todo += [(other, 1 - its) for other in differ if other != edge]
    return color
