"""What waits for what past the GPU's memory, as lanes: steps with the optimizer on the host, an update vector by
vector, a window of layers, a layer read over one link or over all."""

from collections.abc import Sequence
from typing import NamedTuple

from ringzero.drawing.figure import Figure
from ringzero_course.figures.lanes import Work, lanes

GPU, DOWN, CPU, UP = "GPU", "link, down", "CPU", "link, up"
WAYS = ("all on the GPU", "offloaded", "offloaded, one step late")
FORWARD, BACKWARD, STEP, COPY = 4, 1, 2, 5  # colours


class Seconds(NamedTuple):
    """Of a step: passes, all gradients (or all parameters) over the link, and the optimizer in either place."""

    forward: float
    backward: float
    copy: float
    adam_on_gpu: float
    adam_on_host: float


def steps(way: str, takes: Seconds, count: int = 3, pieces: int = 4) -> tuple[dict[str, list[Work]], float]:
    """The work of each lane in ``count`` steps, in ms, and the share of the last of them in which the GPU is busy.

    A piece of the gradients goes down once the backward pass has made it. The CPU steps when all are there, since
    clipping needs the norm of all; a piece of the parameters goes up once it is stepped. One step late, a pass takes
    the parameters of the update before the last.

    >>> steps("offloaded", Seconds(1, 2, 1, 0.1, 3))[1] < steps("offloaded, one step late", Seconds(1, 2, 1, 0.1, 3))[1]
    True
    """
    if way not in WAYS:
        raise ValueError(f"way is {way!r}; it is one of {', '.join(WAYS)}")
    rows: dict[str, list[Work]] = {GPU: [], DOWN: [], CPU: [], UP: []}
    starts, updated = [], [0.0, 0.0]  # when each pass begins; when the parameters for each pass are there

    def work(lane, label, start, seconds, colour):
        rows[lane].append((label, start * 1e3, (start + seconds) * 1e3, colour))
        return start + seconds

    free = 0.0  # the GPU, from then on
    for number in range(count):
        start = max(free, updated[number + (way != WAYS[2])])
        starts.append(start)
        middle = work(GPU, "forward", start, takes.forward, FORWARD)
        free = work(GPU, "backward", middle, takes.backward, BACKWARD)
        if way == WAYS[0]:
            free = work(GPU, "step", free, takes.adam_on_gpu, STEP)
            updated.append(free)
            continue
        down = 0.0
        for piece in range(pieces):
            ready = middle + (piece + 1) * takes.backward / pieces
            down = work(DOWN, "", max(down, ready), takes.copy / pieces, COPY)
        begin = max(down, updated[-1])
        end = work(CPU, "step", begin, takes.adam_on_host, STEP)
        up = 0.0
        for piece in range(pieces):
            ready = begin + (piece + 1) * takes.adam_on_host / pieces
            up = work(UP, "", max(up, ready), takes.copy / pieces, COPY)
        updated.append(max(end, up))
    busy = takes.forward + takes.backward + (takes.adam_on_gpu if way == WAYS[0] else 0.0)
    return rows, busy / (starts[-1] - starts[-2])


def offload_step(way: str, takes: Seconds, *, span: float | None = None) -> tuple[Figure, list[tuple[str, str]]]:
    """Draw three steps, with the share of the time in which the GPU is busy; ``span`` in ms."""
    rows, share = steps(way, takes)
    period = (takes.forward + takes.backward + (takes.adam_on_gpu if way == WAYS[0] else 0.0)) / share
    facts = [("a step", f"{period * 1e3:,.0f} ms"), ("the GPU is busy", f"{share:.0%} of the time")]
    return lanes(rows, unit="ms", title=f"Three steps, {way}", span=span), facts


def update(vectors: int, copies: float, adam: float) -> Figure:
    """An update whose gradients are on the host: ``adam`` and ``copies`` back, ms of all vectors, one by one."""
    stepped, copied, free = [], [], 0.0
    for v in range(vectors):
        end = (v + 1) * adam / vectors
        free = max(free, end) + copies / vectors
        stepped.append((f"{v}", end - adam / vectors, end, v))
        copied.append((f"{v}", free - copies / vectors, free, v))
    return lanes({"Adam": stepped, "copy back": copied}, unit="ms", title="Update of the parameters", span=36)


def window(copies: Sequence[float], compute: float, k: int) -> Figure:
    """One pass over layers of which ``k`` are on the device, in ms: a lane for each of its slots."""
    copied, done = 0.0, [0.0]
    bars: dict[str, list[Work]] = {"copy in": [], "compute": []}
    for layer, copy in enumerate(copies):
        start = max(copied, done[layer + 1 - k] if layer >= k else 0.0)
        copied = start + copy
        begin = max(copied, done[-1])
        done.append(begin + compute)
        bars["copy in"].append((f"{layer}", start, copied, layer))
        bars["compute"].append((f"{layer}", begin, done[-1], layer))
    for slot in range(k):
        slots = range(slot, len(copies), k)
        bars[f"slot {slot}"] = [(f"{n}", bars["copy in"][n][1], bars["compute"][n][2], n) for n in slots]
    return lanes(bars, unit="ms", title=f"A window of {k} over {len(copies)} layers", span=20)


def path(size: float, readers: int, ranks: int, pcie: float, nvlink: float) -> tuple[Figure, float]:
    """A layer of ``size`` bytes from the host to all ``ranks``, read by ``readers`` of them; and the ms it takes."""
    each = size / readers / pcie * 1e3
    end = each + size * (ranks - 1) / ranks / nvlink * 1e3
    label, collective = (f"1/{readers}", "all-gather") if readers > 1 else ("the whole layer", "broadcast")
    rows: dict[str, list[Work]] = {f"PCIe, GPU {n}": [(label, 0, each, n)] * (n < readers) for n in range(ranks)}
    rows["NVLink"] = [(collective, each, end, 5)]
    title = f"A layer comes up, read by {readers} of {ranks}"
    return lanes(rows, unit="ms", title=title, span=size / pcie * 1.2e3), end
