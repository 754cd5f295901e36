"""Seconds of a collective on nodes of GPUs, latency and all: the closed form of what ``steps.machine.dgx`` prices.

>>> h100 = {"inside": 450e9, "port": 50e9}
>>> round(1e6 * seconds("all_reduce", 25e6, nodes=16, **h100))  # one of PyTorch's buckets: microseconds
682
>>> round(bandwidth("all_reduce", 25e6, nodes=16, **h100) / 1e9), round(bandwidth("all_reduce", nodes=16, **h100) / 1e9)
(73, 400)

Each GPU has a link of ``inside`` bytes a second to the others of its node, and a network card of ``port`` bytes a
second. A message takes ``hardware.NVLINK_ALPHA`` seconds inside a node and ``hardware.NETWORK_ALPHA`` across. The
fastest counts of: rings through all GPUs, one on each card; and a collective across nodes, of each GPU's share, before
or after one inside them, each a ring or in log N rounds. ValueError for an argument that is not above 0.
"""

from ringzero.costs.page import alpha_beta, hardware
from ringzero.costs.page.coefficients import COEFFICIENTS
from ringzero.costs.page.inputs import known, positive

SCHEDULES = (  # of a group: name, and the pieces where it is pipelined
    ("all_reduce", (("ring", None), ("double_binary_tree", 1), ("double_binary_tree", 16))),
    ("reduce_scatter", (("ring", None), ("bruck", None))),
    ("all_gather", (("ring", None), ("bruck", None))),
)


def seconds(
    collective: str, size: float, nodes: int, gpus_per_node: int = 8, inside: float = 450e9, port: float = 50e9
) -> float:
    """Of an "all_reduce", "all_gather" or "reduce_scatter" on a whole buffer of ``size`` bytes; 0 for one GPU."""
    positive(size=size)
    return min([fixed + each * size for fixed, each in _lines(collective, nodes, gpus_per_node, inside, port)])


def bandwidth(
    collective: str,
    size: float | None = None,
    nodes: int = 1,
    gpus_per_node: int = 8,
    inside: float = 450e9,
    port: float = 50e9,
) -> float:
    """Bytes a second that each GPU sends meanwhile: the ``bandwidth`` of ``page.overlap``. None: a very large buffer.

    ValueError for one GPU, which sends nothing.
    """
    lines = _lines(collective, nodes, gpus_per_node, inside, port)
    factor = alpha_beta.bus_bandwidth_factor(collective, nodes * gpus_per_node)
    if not factor > 0:
        raise ValueError(f"nodes is {nodes}, of {gpus_per_node} GPU each; give 2 GPUs or more, one sends nothing")
    if size is None:
        return factor / min([each for _, each in lines])
    return factor * size / seconds(collective, size, nodes, gpus_per_node, inside, port)


def _lines(collective, nodes, gpus_per_node, inside, port):
    """``(seconds of an empty buffer, seconds a byte)`` of each way."""
    known(SCHEDULES, collective, "collective")
    positive(nodes=nodes, gpus_per_node=gpus_per_node, inside=inside, port=port)

    def of_a_group(size, alpha, rate):
        found = []
        for name, pieces in dict(SCHEDULES)[collective]:
            of = COEFFICIENTS[collective][name]
            messages, sent, _ = of(size) if pieces is None else of(size, pieces)
            found.append((messages * alpha, sent / rate))
        return found

    within = of_a_group(gpus_per_node, hardware.NVLINK_ALPHA, inside)
    if nodes == 1:
        return within
    across = of_a_group(nodes, hardware.NETWORK_ALPHA, port)
    if gpus_per_node == 1:
        return across
    lines = [(a + c, b / gpus_per_node + d) for a, b in across for c, d in within]
    messages, sent, _ = COEFFICIENTS[collective]["ring"](nodes * gpus_per_node)
    return lines + [(messages * hardware.NETWORK_ALPHA, sent / min(inside, gpus_per_node * port))]
