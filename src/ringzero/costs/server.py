"""A parameter server: bytes through its link and through a worker's, and the seconds of a step.

>>> numel, n = 1_000_000, 8
>>> one, four, all_serve = [exchanged_bytes(slice_sizes(numel, s), n, servers=s) for s in (1, 4, 8)]
>>> [max(sent for sent, _ in by_rank) / 4e6 for by_rank in (one, four, all_serve)]  # in sizes of the parameters
[7.000672, 2.573104, 1.7866]
>>> 2 * (n - 1) / n  # an all-reduce
1.75
>>> [exchange_seconds(4e6, n, bandwidth=1e9, servers=s, header_bytes=0) for s in (1, 2, 4)]  # more servers, less time
[0.056, 0.028, 0.014]

In a step each worker pushes its gradients to the servers, and pulls the parameters back. Every slice is a message with
a header of 24 bytes. Ranks 0 to s-1 serve: they train as well, and their own slices cross no link, or they are
``dedicated`` and do nothing else. Slice i is with server i mod s. A link sends and receives at the same time.

Li et al., "Scaling distributed machine learning with the parameter server" (2014); Jayarajan et al., "Priority-based
parameter propagation for distributed DNN training" (P3, 2019).
"""

import math

from ringzero.costs.page.inputs import known, positive, ranks

HEADER = 24  # bytes: three int64
ORDERS = (
    ("backward", "as the backward pass makes them: first in, first out"),
    ("priority", "what the next forward pass needs first"),
)


# ---- bytes


def slice_sizes(numel: int, servers: int = 1, slice_bytes: float = 256 * 1024, bytes_per_element: int = 4) -> list[int]:
    """Bytes of the slices that ``numel`` parameters are cut into: at most ``slice_bytes``, and one for each server.

    >>> slice_sizes(10, servers=2, slice_bytes=16)
    [16, 16, 8]
    """
    positive(numel=numel, servers=servers, slice_bytes=slice_bytes, bytes_per_element=bytes_per_element)
    longest = max(1, math.floor(min(slice_bytes / bytes_per_element, -(-numel // servers))))
    return [min(longest, numel - start) * bytes_per_element for start in range(0, numel, longest)]


def exchanged_bytes(
    sizes: list[int],
    world_size: int,
    servers: int = 1,
    dedicated: bool = False,
    steps: int = 1,
    header_bytes: int = HEADER,
) -> list[tuple[int, int]]:
    """``(sent, received)`` bytes of each rank in ``steps`` steps. ``sizes``: bytes of each slice.

    >>> exchanged_bytes([400, 400], world_size=3, servers=2, header_bytes=0)
    [(1200, 1200), (1200, 1200), (800, 800)]
    >>> exchanged_bytes([400, 400], world_size=3, servers=2, dedicated=True)
    [(424, 424), (424, 424), (848, 848)]
    """
    _check_servers(world_size, servers, dedicated)
    if not steps >= 0:
        raise ValueError(f"steps is {steps}; give 0 or more")
    sent, received = [0] * world_size, [0] * world_size
    for number, size in enumerate(sizes):
        server, message = number % servers, size + header_bytes
        for worker in range(servers if dedicated else 0, world_size):
            if worker != server:
                for sender, receiver in ((worker, server), (server, worker)):  # pushed, pulled
                    sent[sender] += steps * message
                    received[receiver] += steps * message
    return [(sent[rank], received[rank]) for rank in range(world_size)]


# ---- seconds of an exchange


def exchange_seconds(
    size: float,
    world_size: int,
    bandwidth: float,
    servers: int = 1,
    dedicated: bool = False,
    slices: int = 1,
    header_bytes: int = HEADER,
) -> float:
    """Seconds in which all workers push at once, the servers add, and all pull. Latency and adding are left out.

    ``size``: bytes of all parameters; each server has an equal part of them, in ``slices`` slices. ``bandwidth``: bytes
    a second of every link, each way. The busiest link is a server's, through which W workers push: W part / bandwidth,
    and as long for the pulls. A slice is answered when it has come from all workers, so only the first slice's way in
    and the others' way out do not overlap: 1 + 1/slices instead of 2.

    Where ranks serve and train, W is N-1, and their links also carry their own pushes, while they answer: the time is
    at least that of N + s - 2 parts one way.

    >>> [exchange_seconds(1e6, 5, 1e6, dedicated=True, slices=k, header_bytes=0) for k in (1, 4)]
    [8.0, 5.0]
    """
    _check_servers(world_size, servers, dedicated)
    positive(size=size, bandwidth=bandwidth, slices=slices)
    part = size / servers + header_bytes * slices
    if dedicated:
        parts = max(world_size - servers, servers) * (1 + 1 / slices)  # of the server's link, or of a worker's
    else:
        parts = max((world_size - 1) * (1 + 1 / slices), world_size + servers - 2)
    return parts * part / bandwidth


# ---- what travels first


def scheduled_step_seconds(
    forwards: list[float],
    backwards: list[float],
    sizes: list[float],
    bandwidth: float,
    order: str = "backward",
    slice_bytes: float | None = None,
    header_bytes: int = HEADER,
) -> float:
    """Seconds of a step of which the communication overlaps the backward pass and the next forward pass.

    ``forwards``, ``backwards``: seconds of each layer, and ``sizes`` bytes of its parameters. A layer's gradients leave
    when its backward pass ends, in messages of at most ``slice_bytes`` (None: whole layers). The server answers each
    message with parameters as large. A layer's next forward pass needs all of its parameters. ``order``: a name in
    ``ORDERS``, for what leaves first of all that waits, both ways; a message that has begun is sent to its end.
    ``bandwidth``: bytes a second each way; where W workers share the server's link, a W-th of it.

    All parameters are back before the next backward pass, so every step takes as long.

    >>> layers = {"forwards": [1, 1, 1], "backwards": [2, 2, 2], "sizes": [3e6, 3e6, 3e6], "bandwidth": 1e6}
    >>> [scheduled_step_seconds(**layers, header_bytes=0, order=order) for order, _ in ORDERS]
    [17.0, 17.0]
    >>> [scheduled_step_seconds(**layers, header_bytes=0, order=order, slice_bytes=5e5) for order, _ in ORDERS]
    [14.5, 12.5]
    """
    known(ORDERS, order, "order")
    positive(bandwidth=bandwidth)
    if not len(forwards) == len(backwards) == len(sizes):
        lengths = f"{len(forwards)}, {len(backwards)} and {len(sizes)}"
        raise ValueError(f"forwards, backwards and sizes have {lengths} layers; give one number each for every layer")
    if slice_bytes is not None:
        positive(slice_bytes=slice_bytes)
    if min(*forwards, *backwards, *sizes, 0) < 0:
        raise ValueError("a layer's seconds or bytes are below 0; give 0 or more")

    messages: list[tuple[float, int, int, float]] = []  # when ready, layer, number, seconds
    now = 0.0
    for layer in range(len(sizes) - 1, -1, -1):
        now += backwards[layer]
        for size in _cut(sizes[layer], slice_bytes):
            messages.append((now, layer, len(messages), (size + header_bytes) / bandwidth))
    arrived = [0.0] * len(sizes)
    for end, layer, _, _ in _through_link(_through_link(messages, order), order):
        arrived[layer] = end  # of its last message: they come in the order of time
    for layer, seconds in enumerate(forwards):
        now = max(now, arrived[layer]) + seconds
    return now


def _cut(size, slice_bytes):
    if slice_bytes is None:
        return [size] if size else []
    slices = math.ceil(size / slice_bytes)
    return [min(slice_bytes, size - i * slice_bytes) for i in range(slices)]


def _through_link(messages, order):
    """Messages ``(ready, layer, number, seconds)``, sent one at a time, with the time when each has arrived."""
    now, waiting, arrived = 0.0, list(messages), []
    while waiting:
        now = max(now, min(waiting)[0])
        ready = [message for message in waiting if message[0] <= now]
        first = min(ready, key=lambda message: message[1:3] if order == "priority" else (message[0], message[2]))
        waiting.remove(first)
        now += first[3]
        arrived.append((now, *first[1:]))
    return arrived


def _check_servers(world_size, servers, dedicated):
    most = ranks(world_size) - (1 if dedicated else 0)
    if not 1 <= servers <= most:
        trains = ", of which one must train," if dedicated else ""
        raise ValueError(f"servers is {servers}; with {world_size} ranks{trains} it is 1 to {most}")
