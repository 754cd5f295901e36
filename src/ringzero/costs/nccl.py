"""NCCL from the outside: what its ring does in one loop, and how much of a protocol's traffic is data.

Hu et al., "Demystifying NCCL", arXiv 2507.04786 (2025), after NCCL 2.19; the rings are in NCCL's ``src/device``.
"""

from ringzero.costs.page.inputs import known, ranks


def ring_primitives(collective: str, world_size: int) -> list[str]:
    """Names of the primitives of one loop, in order, when NCCL runs ``collective`` on one ring.

    In all-reduce, all-gather and reduce-scatter a loop is N chunks, and every rank runs all of the primitives, each on
    another chunk than its neighbour: 2N-1 in an all-reduce, N in the others. In broadcast and reduce a loop is one
    chunk, and each rank of the chain runs one primitive. A single rank runs none: it only copies.

    >>> ring_primitives("reduce_scatter", 4)
    ['send', 'recvReduceSend', 'recvReduceSend', 'recvReduceCopy']
    """
    between = ranks(world_size) - 2
    reduce = ["send"] + ["recvReduceSend"] * between
    copy = ["recvCopySend"] * between + ["recv"]
    rings = (
        ("all_reduce", reduce + ["recvReduceCopySend"] + copy),  # in the middle the sum is complete: kept and passed on
        ("all_gather", ["send"] + copy),
        ("reduce_scatter", reduce + ["recvReduceCopy"]),
        ("broadcast", ["send"] + copy),
        ("reduce", reduce + ["recvReduceCopy"]),
    )
    known(rings, collective, "collective")
    return dict(rings)[collective] if world_size > 1 else []


# Bytes of data and of flag that a protocol writes together. The flag tells the receiver that the data has arrived.
DATA_AND_FLAG_BYTES = (
    ("Simple", (1, 0)),  # no flags: memory fences, near full bandwidth, the most latency
    ("LL", (4, 4)),  # the least latency, at most half the bandwidth
    ("LL128", (120, 8)),  # needs links that store 128 bytes at once, such as NVLink
)


def payload_fraction(protocol: str) -> float:
    """Bytes of data over bytes sent, for the protocol "Simple", "LL" or "LL128".

    >>> payload_fraction("LL128")
    0.9375
    """
    known(DATA_AND_FLAG_BYTES, protocol, "protocol")
    data, flag = dict(DATA_AND_FLAG_BYTES)[protocol]
    return data / (data + flag)


def nvls_speedup(world_size: int, efficiency: float = 1.0) -> float:
    """How many times faster than a ring an all-reduce is whose sums are formed in the NVLink switch (NVLS).

    A GPU gives its whole buffer to the switch and takes a sum of 1/N from it, then gives this part and takes the whole:
    1 + 1/N buffers each way, where a ring sends 2(N-1)/N. ``efficiency``: of the links, beside the ring's.

    >>> round(nvls_speedup(8), 2)
    1.56
    """
    n = ranks(world_size)
    return efficiency * 2 * (n - 1) / (n + 1)
