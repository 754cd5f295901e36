"""Every collective beside torch.distributed's own on the same backend, in nccl-tests' columns, and beside its price.

ringzero makes gloo's event thread a batch thread, which does not preempt the caller (``event_threads``). The peer is
measured as it comes, and once more with a batch thread ("calmed"), to show how much of the difference that makes.

For each collective, algorithm and number of ranks, alpha and beta are fitted to every second size. The alpha-beta model
(``costs.page.alpha_beta``) then predicts all of them; its errors at the sizes between are what counts.

The CPU's seconds stand beside each time. On one machine the cores copy every byte into the kernel and out of it. Where
they are busy all the time, as with more ranks than cores, no order of messages is faster than the copies.
"""

import itertools
import os
import statistics
from dataclasses import dataclass, replace

import click

from ringzero.collectives import algorithms as known
from ringzero.collectives.auto import chosen
from ringzero.costs.page import alpha_beta
from ringzero.measure.turns import CALMED, IN_PLACE, OUT_OF_PLACE
from ringzero.network import coefficients
from ringzero_course.bench import runner

SIZES = tuple(2**k for k in range(14, 27, 2))  # bytes; an odd number, so that both ends are fitted
TIMEOUT = 300.0
BACKENDS = {"cpu": "gloo", "cuda": "nccl"}
SHARED_OUT = ("all_gather", "reduce_scatter", "gather", "scatter", "all_to_all")  # nccl-tests counts one rank's part
ROOTED = ("broadcast", "reduce", "gather", "scatter")


@dataclass(frozen=True)
class Timing:
    """``seconds``: the median over iterations, each as long as its slowest rank. ``wrong``: elements, on all ranks.

    ``cpu``: seconds of all ranks' CPUs, the median too.
    """

    seconds: float
    cpu: float
    wrong: int


@dataclass(frozen=True)
class Line:
    """One implementation of one collective on one size. ``algorithm`` is the one of ours that ran, None of a peer.

    ``forms`` has a ``Timing`` for "in place" and one for "out of place", where the collective has both.
    """

    collective: str
    world_size: int
    size: int  # bytes of the buffer that is shared out or filled
    implementation: str
    algorithm: str | None
    forms: dict
    predicted: float | None = None  # seconds, of ``timing``
    fitted: bool = False  # whether alpha and beta were fitted to this line

    @property
    def timing(self):
        return self.forms.get(IN_PLACE) or self.forms[OUT_OF_PLACE]

    @property
    def error(self):
        return abs(self.predicted / self.timing.seconds - 1)

    def bandwidths(self, timing):
        """``(algbw, busbw)`` in bytes a second, as nccl-tests defines them; none of a barrier."""
        if self.collective == "barrier":
            return None
        arguments = (self.size, timing.seconds)
        return (
            alpha_beta.algorithm_bandwidth(*arguments),
            alpha_beta.bus_bandwidth(self.collective, self.world_size, *arguments),
        )


def rows(collectives=tuple(known.ALGORITHMS), algorithms=("auto",), world_sizes=(2, 4), sizes=SIZES, device=None,
         backend=None):  # fmt: skip
    """Every collective beside the backend's own (gloo, NCCL), in nccl-tests' columns.

    Rows: busbw (of a barrier, time) beside each peer, and the CPU's seconds; then the errors of the predictions.
    """
    device = device or {named: device for device, named in BACKENDS.items()}.get(backend, "cpu")
    if backend not in (None, BACKENDS[device]):
        raise click.ClickException(f"--backend {backend} takes no tensors on {device}; {device} has {BACKENDS[device]}")
    errors = []
    for collective, world_size in runner.progress([*itertools.product(collectives, world_sizes)]):
        found = lines(collective, world_size, sizes, algorithms, device)
        yield table(found)
        for ours, peer in itertools.product(found, found):
            if ours.algorithm and not peer.algorithm and ours.size == peer.size:
                yield _beside(ours, peer)
                yield from _cpu_beside(ours, peer)
        for line in found:  # of the sizes that were not fitted to
            if line.predicted and not line.fitted:
                errors.append(100 * line.error)
                yield runner.row(_name(line), "prediction error", errors[-1], None, None, "%")
    if errors:
        yield runner.row("median of all", "prediction error", statistics.median(errors), None, None, "%")


def lines(collective, world_size, sizes, algorithms=("auto",), device="cpu"):
    """Measure a collective on so many ranks, for a buffer of each size: a ``Line`` for each implementation."""
    series = {}
    for size in sizes if collective != "barrier" else sizes[:1]:
        for line in _measured(collective, world_size, size, algorithms, device):
            series.setdefault(line.implementation, []).append(line)
    return [line for members in series.values() for line in _predicted(members)]


def _measured(collective, world_size, size, algorithms, device):
    from ringzero import launch

    ours = [name for name in algorithms if name == "auto" or _exists(collective, name, world_size)]
    arguments = (collective, size, ours, BACKENDS[device])
    measured = launch(measure, *arguments, world_size=world_size, device=device, timeout=TIMEOUT).returns[0]
    forms = {}
    for (implementation, form), (seconds, cpu, wrong) in measured.items():
        forms.setdefault(implementation, {})[form] = Timing(*map(statistics.median, (seconds, cpu)), wrong)
    algorithm = {name: chosen(collective, name, world_size, size)[0] for name in ours}
    return [Line(collective, world_size, size, name, algorithm.get(name), forms[name]) for name in forms]


def _exists(collective, name, world_size):
    return name in known.ALGORITHMS[collective] and world_size in known.world_sizes(collective, name, world_size)


def measure(*arguments):
    """On each rank: ``measure.collective.measure``, imported there because that imports torch."""
    from ringzero.measure import collective

    return collective.measure(*arguments)


# ---- prediction


def _predicted(series):
    """Lines of one implementation with their predicted times, from alpha and beta fitted to every second line."""
    fit = series[::2]
    if series[0].algorithm is None or len(fit) < 2 or series[0].world_size == 1:
        return series
    # t = m alpha + s beta is t/m = alpha + s/m beta, so that sizes with another algorithm or more pieces fit too.
    per_message = [(messages, sent * line.size / messages) for line in series for messages, sent, _ in [_cost(line)]]
    fitted = alpha_beta.fit_alpha_beta(
        (1, 1, 0),
        [size for _, size in per_message[::2]],
        [line.timing.seconds / messages for line, (messages, _) in zip(fit, per_message[::2], strict=True)],
    )
    return [
        replace(line, predicted=messages * alpha_beta.seconds((1, 1, 0), size, *fitted), fitted=line in fit)
        for line, (messages, size) in zip(series, per_message, strict=True)
    ]


def _cost(line):
    """The coefficients of the algorithm that ran, with the options that it had."""
    name, n = line.algorithm, line.world_size
    _, its_options = chosen(line.collective, name, n, line.size)
    return coefficients(known.ALGORITHMS[line.collective][name](n, **its_options))


# ---- rows and tables


def _beside(ours, peer):
    seconds, peer_name = (ours.timing.seconds, peer.timing.seconds), _peer_name(peer)
    if ours.collective == "barrier":
        return runner.row(_name(ours), "time", seconds[0] * 1e6, seconds[1] * 1e6, peer_name, "us")
    busbw = [line.bandwidths(line.timing)[1] / 1e9 for line in (ours, peer)]
    return runner.row(_name(ours), "busbw", *busbw, peer_name, "GB/s", seconds[1] / seconds[0])


def _cpu_beside(ours, peer):
    """Rows: the CPU's seconds of all ranks, and how busy that made the cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cpu = [line.timing.cpu for line in (ours, peer)]
    busy = [min(1.0, line.timing.cpu / line.timing.seconds / cores) for line in (ours, peer)]
    for metric, unit, factor, values in (("CPU", "ms", 1e3, cpu), (f"{cores} cores busy", "%", 100, busy)):
        yield runner.row(_name(ours), metric, *(factor * value for value in values), _peer_name(peer), unit)


def _peer_name(peer):
    return "gloo, calmed too" if peer.implementation == CALMED else peer.implementation


def _name(line):
    size = "" if line.collective == "barrier" else f" {line.size} B"
    return f"{line.collective}{size}, {line.world_size} ranks, {line.implementation}"


def table(found):
    """Lines of one collective as nccl-tests prints them; time in microseconds, bandwidths in GB/s (1e9)."""
    collective, world_size = found[0].collective, found[0].world_size
    text = [f"# {collective}, {world_size} ranks; median of the slowest rank's time", *HEAD]
    text += map(_row, sorted(found, key=lambda line: line.size))
    for name in dict.fromkeys(line.implementation for line in found if collective != "barrier"):
        its = [line for line in found if line.implementation == name]
        speeds = [line.bandwidths(timing)[1] for line in its for timing in line.forms.values()]
        text.append(f"# Avg bus bandwidth, {name}: {statistics.mean(speeds) / 1e9:.4f}")
    return "\n".join(text)


HEAD = (
    f"#{'':>66}{OUT_OF_PLACE:^34} {IN_PLACE:^34}",
    f"#{'size':>11} {'count':>12} {'type':>6} {'redop':>6} {'root':>5} {'what':>20}"
    + f" {'time':>10} {'algbw':>7} {'busbw':>7} {'#wrong':>7}" * 2
    + f" {'predicted':>10} {'error':>6}",
    f"#{'(B)':>11} {'(elements)':>12} {'':>6} {'':>6} {'':>5} {'':>20}"
    + f" {'(us)':>10} {'(GB/s)':>7} {'(GB/s)':>7} {'':>7}" * 2
    + f" {'(us)':>10} {'':>6}",
)


def _row(line):
    numel = 0 if line.collective == "barrier" else line.size // 4
    count = numel // line.world_size if line.collective in SHARED_OUT else numel
    redop = "sum" if "reduce" in line.collective else "none"
    what = line.implementation if line.algorithm in (None, line.implementation) else f"auto: {line.algorithm}"
    text = f"{4 * numel:>12} {count:>12} {'float':>6} {redop:>6} {-(line.collective not in ROOTED):>5} {what:>20}"
    for form in (OUT_OF_PLACE, IN_PLACE):
        text += _columns(line, line.forms.get(form))
    if line.predicted:
        text += f" {line.predicted * 1e6:>10.2f} {line.error:>6.0%}" + " fitted" * line.fitted
    return text


def _columns(line, timing):
    if timing is None:
        return f" {'N/A':>10} {'N/A':>7} {'N/A':>7} {'N/A':>7}"
    algbw, busbw = line.bandwidths(timing) or (0, 0)
    return f" {timing.seconds * 1e6:>10.2f} {algbw / 1e9:>7.2f} {busbw / 1e9:>7.2f} {timing.wrong:>7}"


command = runner.command(
    rows,
    collectives=(runner.names(known.ALGORITHMS), "Comma separated."),
    algorithms=(
        runner.names(("auto", *{name for named in known.ALGORITHMS.values() for name in named})),
        "Of ours, where the collective has it: auto,ring,...",
    ),
    world_sizes=(runner.ranks, "Ranks, comma separated."),
    sizes=(runner.sizes, "Buffer sizes."),
    device=(click.Choice(list(BACKENDS)), "By default the backend's, else cpu."),
    backend=(click.Choice(list(BACKENDS.values())), "By default the device's."),
)
