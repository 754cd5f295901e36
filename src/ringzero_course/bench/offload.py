"""Past the device's memory: what a step costs when states are on the host or in files, beside what it must cost.

Update: the time of ``step`` with the states on the host, beside the larger of what its copies take at the link's rate
and what the CPU's AdamW takes alone. Both tiers are this machine's memory, and the link between them is slowed down to
a set rate. At the fastest rate the cores that copy are missing in AdamW; a GPU copies by itself.

AdamW: torch's three ways to step on a CPU. Window: one forward and backward pass over layers in the host's memory,
beside the prediction from one layer's seconds. Files: bytes that a step reads and writes, over its time, beside the
same disk with nothing to compute.
"""

import statistics
import tempfile
import time
from functools import partial

import click

from ringzero_course.bench import runner, trainers

WIDTH, LAYERS = 1024, 12  # of the model that is stepped: 12.6 million parameters in 12 vectors
LINKS = (0.5e9, 2e9, 8e9)  # bytes a second
WINDOWS = (1, 2, 3, 6)
FOR_LOOP = "for-loop"
ADAMW = {FOR_LOOP: {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def rows(steps=9, folder=None, links=LINKS, windows=WINDOWS):
    """States on the host and in files: a step's time beside what its copies, its AdamW and the disk must take."""
    import ringzero

    launch = partial(ringzero.launch, world_size=1, device="cpu", timeout=600)
    seconds = launch(adamw, steps).returns[0]
    for name in ADAMW:
        yield runner.milliseconds(name, seconds[name], seconds[FOR_LOOP], FOR_LOOP, "AdamW on the CPU")
    for link in links:
        step, copies, alone = launch(update, link, steps).returns[0]
        larger = "copies" if copies > alone else "AdamW"
        name = f"link of {link / 1e9:g} GB/s"
        yield runner.row(name, "update", step * 1e3, max(copies, alone) * 1e3, larger, "ms")
    for window in windows:
        measured, predicted = launch(passes, links[0], window, steps).returns[0]
        name = f"{window} of {LAYERS} layers"
        yield runner.row(name, "pass", measured * 1e3, predicted * 1e3, "predicted", "ms")
    with tempfile.TemporaryDirectory(dir=folder) as here:
        rate, disk = launch(files, here, min(steps, 5)).returns[0]
    yield runner.row("files", "read and written", rate / 1e6, disk / 1e6, "the disk alone", "MB/s", rate / disk)


def adamw(steps):
    """``{way: seconds of each step}``, in turns."""
    from ringzero.measure.gpu.offload import adam

    made = {name: adam(WIDTH, LAYERS, **way).step for name, way in ADAMW.items()}
    return trainers.seconds_in_turns(made, steps, None)


def _model(home, **options):
    from ringzero.measure.gpu.offload import stack
    from ringzero.zero import ZeroStage3

    return stack(ZeroStage3, "cpu", WIDTH, LAYERS, home=home, **options)


def update(link, steps):
    """Seconds of ``step``, of its copies alone at the rate of the link, and of the AdamW alone."""
    import torch

    from ringzero.measure.gpu.offload import adam, medians
    from ringzero.zero import Host

    model = _model(Host(bytes_per_second=link))
    found = medians(model, torch.randn(4, WIDTH), steps, beside=adam(WIDTH, LAYERS).step)
    return found["step"], LAYERS * WIDTH * WIDTH * 4 / link, found["beside"]


def passes(link, window, steps):
    """Seconds of a forward and a backward pass through a window of layers: measured, and predicted."""
    import torch

    from ringzero.costs import offload
    from ringzero.measure.gpu.offload import medians
    from ringzero.zero import Host

    batch, layer = torch.randn(512, WIDTH, requires_grad=True), trainers.stack(WIDTH, 1)
    forwards, backwards = [], []
    for _ in range(2 + steps):
        start = time.perf_counter()
        loss = layer(batch).sum()
        middle = time.perf_counter()
        loss.backward()
        forwards.append(middle - start)
        backwards.append(time.perf_counter() - middle)
    forward, backward = (statistics.median(seconds[2:]) for seconds in (forwards, backwards))
    copy = WIDTH * WIDTH * 4 / link
    predicted = offload.forward_backward_seconds([copy] * LAYERS, [forward] * LAYERS, [backward] * LAYERS, window)
    model = _model(Host(parameters=True, bytes_per_second=link), window=window)
    return medians(model, batch, steps)["pass"], predicted


def files(folder, steps):
    """Bytes a second that ``step`` reads and writes with all states in files, and those of the disk alone."""
    import torch

    from ringzero.measure import disk
    from ringzero.measure.gpu.offload import medians
    from ringzero.zero import File, resident

    model, alone = _model(File(folder)), []
    generation = resident(model)["file"] // 2
    beside = lambda: alone.append(disk.rates(folder, generation, repeat=1)["both"])  # noqa: E731
    found = medians(model, torch.randn(4, WIDTH), steps, beside)
    return 2 * generation / found["step"], statistics.median(alone)


command = runner.command(
    rows,
    steps=(runner.COUNT, "Of each that count."),
    folder=(click.Path(exists=True, file_okay=False), "On the disk that should be measured."),
)
