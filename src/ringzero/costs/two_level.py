"""Bytes across nodes and inside nodes in a step of ZeRO-3 on P nodes of G ranks, and of its two-level variants.

>>> gpt = {"params": 1e9, "nodes": 8, "ranks_per_node": 8}
>>> cross_node_bytes(**gpt) / 1e9  # ZeRO-3, all ranks together
47.25
>>> cross_node_bytes(**gpt, sharding="hybrid") / 1e9  # only a shard's all-reduce leaves a node
28.0
>>> round(cross_node_bytes(**gpt, weights="int8", gradients="int4", secondary=True) / 1e9, 2)  # ZeRO++
11.61

Ranks are numbered node by node, so a ring of all ranks crosses between nodes P times. The rest are links inside nodes.

flat     parameters are sharded over all N = P G ranks. Forward and backward each all-gather them, and the gradients
         are reduce-scattered, all by rings of N ranks
ZeRO++   flat, with any of: ``weights`` gathered in fewer bits (qwZ); the backward all-gather from a ``secondary``
         shard inside each node (hpZ); ``gradients`` in fewer bits, by an all-to-all inside nodes and one across (qgZ)
hybrid   HSDP and MiCS: parameters are sharded inside a node and replicated across. All-gathers and the
         reduce-scatter stay inside; each shard's gradient is all-reduced by a ring of P ranks

A step is one micro-batch. Shards are equal: the last is padded.

Wang et al., "ZeRO++" (2023); Zhao et al., "PyTorch FSDP" (2023); Zhang et al., "MiCS" (2022).
"""

from typing import Any

from ringzero.costs.page.inputs import known, positive

BITS = (("fp32", 32), ("bf16", 16), ("int8", 8), ("int4", 4))  # of a number on the wire
SCALE = 4  # bytes of the fp32 scale of a block of integers
SHARDINGS = (("flat", "over all ranks"), ("hybrid", "inside nodes"))
COLLECTIVES = (  # of a step of ZeRO++: the format of what crosses between nodes, or None where nothing does
    ("forward_all_gather", "int8"),
    ("backward_all_gather", None),
    ("backward_reduce_scatter", "int4"),
)


def payload_bytes(numel: float, kind: str, block: int = 256) -> float:
    """Bytes of ``numel`` numbers on the wire as ``kind``, a name in ``BITS``.

    "int8" and "int4" add an fp32 scale for each ``block`` numbers; the last block may be shorter. Two int4 share a
    byte.

    >>> payload_bytes(257, "int4"), payload_bytes(257, "bf16")
    (137, 514)
    """
    known(BITS, kind, "kind")
    positive(numel=numel, block=block)
    scales = -(-numel // block) * SCALE if kind.startswith("int") else 0
    return scales + -(-numel * dict(BITS)[kind] // 8)


def step_traffic(
    params: float,
    nodes: int,
    ranks_per_node: int,
    sharding: str = "flat",
    kind: str = "bf16",
    weights: str | None = None,
    gradients: str | None = None,
    secondary: bool = False,
    block: int = 256,
) -> list[tuple[str, float, float]]:
    """``(name, across, inside)`` of each collective: bytes of all ranks together to other nodes, and inside nodes.

    ``sharding`` is "flat" or "hybrid". ``kind`` is the format of parameters and gradients, a name in ``BITS``.
    ``weights`` and ``gradients`` are formats in its place, and ``block`` numbers of an integer format share a scale.
    The backward all-gather is like the forward one; with ``secondary`` it is of ``kind`` and inside nodes.
    """
    positive(params=params, nodes=nodes, ranks_per_node=ranks_per_node)
    known(SHARDINGS, sharding, "sharding")
    names, world_size = [name for name, _ in COLLECTIVES], nodes * ranks_per_node
    shard = -(-params // world_size)  # elements

    def ring(size):
        """Of all ranks in one ring, which leaves each node once; each sends ``size`` bytes N-1 times."""
        links = nodes if nodes > 1 else 0  # across
        return links * (world_size - 1) * size, (world_size - links) * (world_size - 1) * size

    def rings_inside(size):
        return 0, world_size * (ranks_per_node - 1) * size

    if sharding == "hybrid":
        if weights or gradients or secondary:
            raise ValueError("sharding is 'hybrid'; weights, gradients and secondary are for 'flat' (ZeRO++)")
        piece = payload_bytes(shard, kind, block)
        inside = rings_inside(nodes * piece)
        return [(name, *inside) for name in names] + [("all_reduce_across", world_size * 2 * (nodes - 1) * piece, 0)]
    gather = again = ring(payload_bytes(shard, weights or kind, block))
    if secondary:
        again = rings_inside(payload_bytes(nodes * shard, kind, block))
    if gradients is None:
        reduced = ring(payload_bytes(shard, kind, block))
    else:  # to each neighbour what is for the ranks of its place in all nodes; of the sums, to each node its shard
        part, sums = payload_bytes(nodes * shard, gradients, block), payload_bytes(shard, gradients, block)
        reduced = world_size * (nodes - 1) * sums, world_size * (ranks_per_node - 1) * part
    return [(names[0], *gather), (names[1], *again), (names[2], *reduced)]


def cross_node_bytes(*arguments: Any, **options: Any) -> float:
    """Bytes that all ranks together send to other nodes in a step; arguments as for ``step_traffic``."""
    return sum(across for _, across, _ in step_traffic(*arguments, **options))


def inside_node_bytes(*arguments: Any, **options: Any) -> float:
    """Bytes that all ranks together send inside their nodes in a step; arguments as for ``step_traffic``."""
    return sum(inside for _, _, inside in step_traffic(*arguments, **options))


def secondary_shard_bytes(params: float, ranks_per_node: int, bytes_per_element: float = 2) -> float:
    """Bytes that hpZ's second copy of the parameters, sharded inside each node, takes on every rank: M p / G.

    >>> secondary_shard_bytes(8e9, ranks_per_node=8) / 1e9
    2.0
    """
    positive(params=params, ranks_per_node=ranks_per_node, bytes_per_element=bytes_per_element)
    return -(-params // ranks_per_node) * bytes_per_element


def zeropp_cross_node_volume(collective: str = "total", zeropp: bool = True) -> float:
    """What a node sends to others, in sizes M of the model in 16 bits (Wang et al. 2023, table 2).

    ``collective`` is a name in ``COLLECTIVES`` or "total". The paper's convention: very many nodes, scales left out.
    ZeRO-3 sends 1 M in each of the three; ZeRO++ sends its bits over 16, and nothing where it stays inside nodes.

    >>> [zeropp_cross_node_volume(name) for name, _ in COLLECTIVES], zeropp_cross_node_volume()
    ([0.5, 0.0, 0.25], 0.75)
    """
    known((*COLLECTIVES, ("total", None)), collective, "collective")
    bits: dict[str | None, int] = {None: 0, **dict(BITS)}
    return sum((bits[kind] if zeropp else 16) / 16 for name, kind in COLLECTIVES if collective in (name, "total"))
