"""What a training step runs on, as numbers: how fast a rank computes and copies, and what its collectives take.

    dgx("DGX H100", nodes=16, reached=0.45)      from makers' data and the topology's price
    ringzero measure                             this machine's own (``measure.machine``)

A schedule takes ``latency + seconds_per_byte * bytes``: its price on a topology is such a line, and so is what is
fitted to measured times. Where a collective has several schedules, the fastest counts. Where it was measured, its
seconds at other sizes are on the line between the two nearest. Groups are "all" ranks, those of one "node", and one
rank of each of the "nodes".
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.collectives.schedule import Schedule
from ringzero.costs.page import hardware
from ringzero.network import machines
from ringzero.network.nccl_rings import nccl_rings
from ringzero.network.pricing import price
from ringzero.network.topology import Topology, switch

GROUPS = ("all", "node", "nodes")
ADAM_BYTES = 28
HOST_BANDWIDTH = 2 * 8 * 38.4e9 / 2  # a node of two processors with 8 channels of DDR5-4800; half of it is reached
Line = tuple[float, float]  # seconds of an empty message, seconds a byte


@dataclass(frozen=True)
class Machine:
    """``nodes`` of ``ranks_per_node`` ranks each, alike.

    ``flops``         FLOP/s that a rank reaches in large products
    ``products``      ``((tokens, inputs, outputs, forward FLOP/s, backward FLOP/s), ...)``: where it was measured what
                      linear layers of this shape reach
    ``memory_bandwidth``  bytes a second that a rank reads and writes
    ``adam``          seconds that AdamW takes for an element; by default 28 bytes at ``memory_bandwidth``: four fp32
                      numbers read, three written
    ``collectives``   ``{(collective, group): Lines of its schedules}``, for bytes of the whole buffer
    ``measured``      ``{(collective, group): ((bytes, seconds), ...)}``, by size, where its times were measured
    ``beside``        ``{(collective, group): ((bytes, seconds, factor), ...)}``: the same beside computing, and how
                      many times as long computing takes then
    ``message``       a message from one rank to another: ``{group: Line}``
    ``copies``        bytes a second between the device and the host's memory, each way
    ``host_adam``     the same on the host; by default as on the device
    ``hooks``         seconds of a unit in one pass in which ZeRO-3 gathers and frees it, whatever its size
    ``meeting``       seconds that ranks wait for the slowest of them where all meet in the middle of computing
    ``memory_bytes``  that a rank's device has
    ``peak_flops``    what MFU is a share of, where it is known
    """

    name: str
    nodes: int
    ranks_per_node: int
    flops: float
    memory_bandwidth: float
    collectives: Mapping[tuple[str, str], tuple[Line, ...]]
    message: Mapping[str, Line]
    copies: float = math.inf
    adam: float | None = None
    host_adam: float | None = None
    hooks: float = 0.0
    meeting: float = 0.0
    memory_bytes: float = math.inf
    peak_flops: float | None = None
    products: tuple[tuple[float, ...], ...] = ()
    measured: Mapping[tuple[str, str], tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    beside: Mapping[tuple[str, str], tuple[tuple[float, ...], ...]] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    def group_size(self, group: str) -> int:
        return {"all": self.ranks, "node": self.ranks_per_node, "nodes": self.nodes}[group]

    def seconds(self, collective: str, size: float, group: str = "all") -> float:
        """Of a collective on ``size`` bytes: the whole buffer, whatever share of it a rank has. 0 for one rank."""
        if self.group_size(group) == 1:
            return 0.0
        if points := self.measured.get((collective, group)):
            return _on_the_line([(at, seconds) for at, seconds in points], size)
        return min(latency + per_byte * size for latency, per_byte in self.collectives[collective, group])

    def beside_computing(self, collective: str, size: float, group: str = "all") -> tuple[float, float]:
        """Seconds of a collective beside computing, and how many times as long computing takes then."""
        alone, points = self.seconds(collective, size, group), self.beside.get((collective, group))
        if not points or not alone:
            return alone, 1.0
        seconds = _on_the_line([(at, beside) for at, beside, _ in points], size)
        factor = _on_the_line([(at, factor) for at, _, factor in points], min(size, points[-1][0]))
        return max(alone, seconds), max(1.0, factor)

    def message_seconds(self, size: float, group: str) -> float:
        """Of a message between two ranks. Raises ValueError where the machine does not say."""
        if group not in self.message:
            raise ValueError(f"{self.name} has no time of a message in the group {group!r}; give Machine(message=...)")
        latency, per_byte = self.message[group]
        return latency + per_byte * size

    def effective_bandwidth(self, collective: str, group: str = "all", size: float = math.inf) -> float:
        """Bytes a second that each rank sends, and receives, of a buffer of ``size`` bytes; large by default.

        Busbw, as nccl-tests defines it.
        """
        n = self.group_size(group)
        passes = {"all_reduce": 2.0}.get(collective, 1.0) * (n - 1) / n
        if size == math.inf:
            return passes / min(per_byte for _, per_byte in self.collectives[collective, group])
        return passes * size / self.seconds(collective, size, group)

    def adam_seconds(self, elements: float, on_host: bool = False) -> float:
        """Of AdamW on so many elements of one rank."""
        device = ADAM_BYTES / self.memory_bandwidth if self.adam is None else self.adam
        return elements * (self.host_adam if on_host and self.host_adam is not None else device)

    def product_seconds(self, tokens: float, inputs: float, outputs: float) -> tuple[float, float]:
        """Forward and backward, of a linear layer's products: the rate of the measured shapes nearest to this one.

        Between two numbers of tokens the seconds are on the line between them.
        """
        flops = 2 * tokens * inputs * outputs
        if not self.products:
            return flops / self.flops, 2 * flops / self.flops
        shape = min({row[1:3] for row in self.products}, key=lambda each: _distance(each, (inputs, outputs)))
        rows = sorted(row for row in self.products if row[1:3] == shape)
        scale = inputs * outputs / (shape[0] * shape[1])
        points = [(n, 2 * n * i * o / fw, 4 * n * i * o / bw) for n, i, o, fw, bw in rows]
        return tuple(_on_the_line([(n, pair[way]) for n, *pair in points], tokens) * scale for way in (0, 1))  # type: ignore[return-value]

    def faster(self, factor: float) -> "Machine":
        """The same, computing ``factor`` times as fast: for a machine whose speed has changed since it was measured.

        The network stays as it is.
        """
        rows = tuple((n, i, o, fw * factor, bw * factor) for n, i, o, fw, bw in self.products)
        more = {each: getattr(self, each) * factor for each in ("flops", "memory_bandwidth", "copies")}
        seconds = ("adam", "host_adam", "hooks", "meeting")
        less = {each: getattr(self, each) and getattr(self, each) / factor for each in seconds}
        return replace(self, products=rows, **more, **less)

    def save(self, file: str | Path) -> None:
        """As JSON."""
        plain = asdict(self) | {
            "collectives": [[*key, lines] for key, lines in self.collectives.items()],
            "measured": [[*key, points] for key, points in self.measured.items()],
            "beside": [[*key, points] for key, points in self.beside.items()],
            "message": [[key, *line] for key, line in self.message.items()],
        }
        known = {name: value for name, value in plain.items() if value != math.inf}  # which JSON cannot say
        Path(file).write_text(json.dumps(known, indent=1))


def load(file: str | Path) -> Machine:
    """What ``Machine.save`` wrote. Raises ValueError for another file."""
    try:
        plain: dict[str, Any] = json.loads(Path(file).read_text())
        tables: dict[str, Any] = {
            "collectives": {(c, g): tuple(map(tuple, lines)) for c, g, lines in plain.pop("collectives")},
            "measured": {(c, g): tuple(map(tuple, points)) for c, g, points in plain.pop("measured")},
            "beside": {(c, g): tuple(map(tuple, points)) for c, g, points in plain.pop("beside")},
            "message": {g: (a, b) for g, a, b in plain.pop("message")},
            "products": tuple(map(tuple, plain.pop("products"))),
        }
        return Machine(**plain, **tables)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{file} is no machine that `ringzero measure --json` wrote: {error!r}") from error


def dgx(name: str, nodes: int = 1, reached: float = 0.5) -> Machine:
    """``nodes`` of a row of ``costs.page.hardware.NODES``, such as "DGX H100", with NCCL's rings.

    ``reached``  the share of peak FLOP/s in large products

    Raises ValueError for an unknown node, and a share not in (0, 1].
    """
    row = hardware.node(name)
    return of_gpus(row["gpu"], nodes, row["gpus"], row["infiniband"], reached)


@cache  # a planner asks for the same few groups of GPUs thousands of times
def of_gpus(gpu: str, nodes: int = 1, gpus_per_node: int = 8, infiniband: str = "NDR", reached: float = 0.5,
            fabric: float = 1.0) -> Machine:  # fmt: skip
    """Any number of a GPU's kind in a node, each with an InfiniBand port. Collectives reach the share ``fabric`` of the
    links' bandwidth. Other arguments, and errors, as for ``dgx``.
    """
    for given, share in (("reached", reached), ("fabric", fabric)):
        if not 0 < share <= 1:
            raise ValueError(f"{given} is {share!r}; give a share of the peak, above 0 and at most 1")
    row, port = hardware.gpu(gpu), hardware.infiniband(infiniband) * 1e9 * fabric
    inside = (row["nvlink_gb_per_s"] or hardware.pcie(row["pcie_generation"])) * 1e9 * fabric
    node = switch(gpus_per_node, hardware.NVLINK_ALPHA, inside)
    topologies = {
        "all": machines.cluster(node, nodes, hardware.NETWORK_ALPHA, port, nics=gpus_per_node),
        "node": node,
        "nodes": switch(nodes, hardware.NETWORK_ALPHA, port),
    }
    return Machine(
        f"{nodes} x {gpus_per_node} {gpu}",
        nodes,
        gpus_per_node,
        flops=row["tflops"] * 1e12 * reached,
        memory_bandwidth=row["memory_gb_per_s"] * 1e9,
        collectives=priced(topologies, gpus_per_node),
        message={"node": (hardware.NVLINK_ALPHA, 1 / inside), "nodes": (hardware.NETWORK_ALPHA, 1 / port)},
        copies=hardware.pcie(row["pcie_generation"]) * 1e9,
        host_adam=ADAM_BYTES * gpus_per_node / HOST_BANDWIDTH,
        memory_bytes=row["memory_gb"] * 1e9,
        peak_flops=row["tflops"] * 1e12,
    )


def priced(topologies: Mapping[str, Topology], ranks_per_node: int) -> dict[tuple[str, str], tuple[Line, ...]]:
    """The lines of each collective and group that has more than one rank.

    In a node, and between nodes: a ring, and what takes log N rounds: the double binary tree of an all-reduce, Bruck's
    all-gather (NCCL's PAT). Over all ranks: NCCL's rings, and a collective between nodes together with one in them.
    """
    lines: dict[tuple[str, str], tuple[Line, ...]] = {}
    for collective, names in SCHEDULES.items():
        for group in ("node", "nodes"):
            topology = topologies[group]
            if topology.world_size > 1:
                schedules = [ALGORITHMS[collective][name](topology.world_size, **its) for name, its in names]
                lines[collective, group] = tuple(_line(schedule, topology) for schedule in schedules)
        node, nodes = (lines.get((collective, group), ()) for group in ("node", "nodes"))
        if node and nodes:
            part = 1 if collective == "all_to_all" else ranks_per_node  # of the buffer that a rank brings to the others
            lines[collective, "all"] = tuple((a + c, b / part + d) for a, b in nodes for c, d in node)
            if collective != "all_to_all":
                rings = nccl_rings(collective, topologies["nodes"].world_size, ranks_per_node)
                lines[collective, "all"] += (_line(rings, topologies["all"]),)
        elif node or nodes:
            lines[collective, "all"] = node or nodes
    return lines


SCHEDULES: dict[str, list[tuple[str, dict]]] = {
    "all_reduce": [("ring", {}), ("double_binary_tree", {"chunks": 1}), ("double_binary_tree", {"chunks": 16})],
    "reduce_scatter": [("ring", {}), ("bruck", {})],
    "all_gather": [("ring", {}), ("bruck", {})],
    "all_to_all": [("pairwise", {})],
}


def _line(schedule: Schedule, topology: Topology) -> Line:
    latency, transfer, reduction = price(schedule, 0, topology).coefficients
    return latency, transfer + reduction


def _distance(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    return sum(abs(math.log(x / y)) for x, y in zip(a, b, strict=True))


def _on_the_line(points: list[tuple[float, float]], x: float) -> float:
    """The value at ``x`` on the line through the two ``points`` around it, or the nearest two; never below 0.

    With one point, on the line through it and the origin.
    """
    if len(points) == 1:
        return points[0][1] * x / points[0][0]
    right = next((i for i, (at, _) in enumerate(points) if at >= x and i), len(points) - 1)
    (x0, y0), (x1, y1) = points[right - 1], points[right]
    return max(0.0, y0 + (y1 - y0) * (x - x0) / (x1 - x0))
