"""NCCL from the outside: what its ring does to one chunk, and how much of a protocol's traffic is data.

Hu et al., "Demystifying NCCL", arXiv 2507.04786 (2025), after NCCL 2.19; the rings are in NCCL's ``src/device``.
"""


def ring_primitives(collective, world_size):
    """The primitives a chunk meets, in order, when NCCL runs ``collective`` on one ring. A list of their names.

    In all-reduce, all-gather and reduce-scatter every rank runs them all, each on another chunk than its neighbour.
    In broadcast and reduce each is run by one rank, along the chain. Alone, a rank only copies.

    >>> ring_primitives("reduce_scatter", 4)
    ['send', 'recvReduceSend', 'recvReduceSend', 'recvReduceCopy']
    """
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}; give at least 1 rank")
    between = world_size - 2
    rings = {
        "all_reduce": ["send"]
        + ["recvReduceSend"] * between
        + ["recvReduceCopySend"]  # the sum is complete: keep it, and pass it on
        + ["recvCopySend"] * between
        + ["recv"],
        "all_gather": ["send"] + ["recvCopySend"] * between + ["recv"],
        "reduce_scatter": ["send"] + ["recvReduceSend"] * between + ["recvReduceCopy"],
        "broadcast": ["send"] + ["recvCopySend"] * between + ["recv"],
        "reduce": ["send"] + ["recvReduceSend"] * between + ["recvReduceCopy"],
    }
    if collective not in rings:
        raise ValueError(f"collective is {collective}; NCCL has a ring for {', '.join(rings)}")
    return rings[collective] if world_size > 1 else []


PROTOCOLS = {  # (bytes of data, bytes of flag) written together; a receiver sees from the flag that the data is there
    "Simple": (1, 0),  # no flags: memory fences, near full bandwidth, the most latency
    "LL": (4, 4),  # the least latency, at most half the bandwidth
    "LL128": (120, 8),  # needs links that store 128 bytes at once, such as NVLink
}


def payload_fraction(protocol):
    """The part of what a protocol sends that is data.

    >>> payload_fraction("LL128")
    0.9375
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol is {protocol}; it is one of {', '.join(PROTOCOLS)}")
    data, flag = PROTOCOLS[protocol]
    return data / (data + flag)
