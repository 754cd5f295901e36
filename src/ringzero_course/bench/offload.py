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

import click

from ringzero_course.bench import options, results
from ringzero_course.bench import steps as bench_steps

WIDTH, LAYERS = 1024, 12  # of the model that is stepped: 12.6 million parameters in 12 vectors
LINKS = (0.5e9, 2e9, 8e9)  # bytes a second
WINDOWS = (1, 2, 3, 6)
STEPS = 9
ADAMW = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def rows(links=LINKS, windows=WINDOWS, steps=STEPS, folder=None, progress=lambda cases: cases):
    """Rows of the update at each link rate, of the kinds of AdamW, of the window at the slowest link, and of files."""
    import ringzero

    for kind in progress(("adamw", "update", "window", "files")):
        if kind == "adamw":
            seconds = ringzero.launch(adamw_seconds, steps, world_size=1, device="cpu", timeout=600).returns[0]
            medians = {name: statistics.median(each) * 1e3 for name, each in seconds.items()}
            for name in ADAMW:
                yield results.row(name, "AdamW on the CPU", medians[name], medians["for-loop"], "for-loop", "ms")
        elif kind == "update":
            for link in links:
                found = ringzero.launch(update_seconds, link, steps, world_size=1, device="cpu", timeout=600).returns[0]
                step, copies, adam = (statistics.median(each) * 1e3 for each in found)
                name = f"link of {link / 1e9:g} GB/s"
                larger = "copies" if copies > adam else "AdamW"
                yield results.row(name, "update", step, max(copies, adam), larger, "ms")
        elif kind == "window":
            for window in windows:
                measured, predicted = ringzero.launch(
                    window_seconds, links[0], window, steps, world_size=1, device="cpu", timeout=600
                ).returns[0]
                yield results.row(
                    f"{window} of {LAYERS} layers", "pass", measured * 1e3, predicted * 1e3, "predicted", "ms"
                )
        else:
            with tempfile.TemporaryDirectory(dir=folder) as here:
                rate, disk = ringzero.launch(file_rate, here, steps, world_size=1, device="cpu", timeout=600).returns[0]
            yield results.row(
                "files", "read and written", rate / 1e6, disk / 1e6, "the disk alone", "MB/s", rate / disk
            )


def _model(home, **options):
    """A linear model of ``LAYERS`` layers on this rank, in ZeRO-3, each layer one vector."""
    import torch

    from ringzero.zero import ZeroStage3

    torch.manual_seed(0)
    module = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    return ZeroStage3(module, torch.optim.AdamW, lr=1e-4, fused=True, units=list(module), home=home, **options)


def _seconds(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def adamw_seconds(steps):
    """``{way: seconds of each step}``, in turns."""
    import torch

    from ringzero.measure import turns

    made = {}
    for name, way in ADAMW.items():
        parameters = [torch.nn.Parameter(torch.randn(WIDTH, WIDTH)) for _ in range(LAYERS)]
        for parameter in parameters:
            parameter.grad = torch.randn(WIDTH, WIDTH)
        made[name] = torch.optim.AdamW(parameters, lr=1e-4, **way)
    seconds = {name: [] for name in made}
    for turn in range(-2, steps):
        for name in turns.shuffled(made, turn):
            took = _seconds(made[name].step)
            if turn >= 0:
                seconds[name].append(took)
    return seconds


def update_seconds(link, steps):
    """Seconds of each ``step``, of its copies alone at the rate of the link, and of the AdamW alone."""
    import torch

    from ringzero.zero import Host

    model = _model(Host(bytes_per_second=link))
    masters = [torch.nn.Parameter(vector.master.detach().clone()) for vector in model.vectors()]
    alone = torch.optim.AdamW(masters, lr=1e-4, fused=True)
    copies = [sum(vector.shard.nbytes for vector in model.vectors()) / link] * steps
    step, adam = [], []
    for turn in range(-2, steps):
        model(torch.randn(4, WIDTH)).square().mean().backward()
        for master, vector in zip(masters, model.vectors(), strict=True):
            master.grad = vector.reduced.clone()
        took = _seconds(model.step), _seconds(alone.step)
        model.zero_grad()
        if turn >= 0:
            step.append(took[0])
            adam.append(took[1])
    return step, copies, adam


def window_seconds(link, window, steps):
    """Seconds of a forward and a backward pass through a window of layers: measured, and predicted."""
    import torch

    from ringzero.costs import offload
    from ringzero.zero import Host

    batch = torch.randn(512, WIDTH, requires_grad=True)
    layer = torch.nn.Linear(WIDTH, WIDTH, bias=False)
    forwards, backwards = [], []
    for _ in range(2 + steps):
        start = time.perf_counter()
        loss = layer(batch).sum()
        middle = time.perf_counter()
        loss.backward()
        forwards.append(middle - start)
        backwards.append(time.perf_counter() - middle)
    model = _model(Host(parameters=True, bytes_per_second=link), window=window)
    passes = []
    for turn in range(-1, steps):
        took = _seconds(lambda: model(batch).sum().backward())
        model.zero_grad()
        if turn >= 0:
            passes.append(took)
    copy = layer.weight.nbytes / link
    predicted = offload.forward_backward_seconds(
        [copy] * LAYERS, [statistics.median(forwards)] * LAYERS, [statistics.median(backwards)] * LAYERS, window
    )
    return statistics.median(passes), predicted


def file_rate(folder, steps):
    """Bytes a second that ``step`` reads and writes with all states in files, and those of the disk alone."""
    import torch

    from ringzero.measure import disk
    from ringzero.zero import File, resident

    model = _model(File(folder))
    generation = resident(model)["file"] // 2
    passes, alone = [], []
    for turn in range(-1, min(steps, 5)):
        model(torch.randn(4, WIDTH)).square().mean().backward()
        took = _seconds(model.step)
        model.zero_grad()
        if turn >= 0:
            passes.append(2 * generation / took)
            alone.append(disk.rates(folder, generation, repeat=1)["both"])
    return statistics.median(passes), statistics.median(alone)


@click.command("offload")
@click.option("--steps", default=STEPS, show_default=True, type=click.IntRange(min=1))
@click.option("--folder", type=click.Path(exists=True, file_okay=False), help="On the disk that should be measured.")
@options.json_option
def command(steps, folder, json_file):
    """States on the host and in files: a step's time beside what its copies, its AdamW and the disk must take."""
    bench_steps.print_and_write(rows(steps=steps, folder=folder, progress=options.progress), json_file)
