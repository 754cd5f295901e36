"""The emulated cluster beside what was asked of it, and what overlap is worth there.

Bandwidth: one rank a node, 32 MB (1 s at the slowest) from node to node. Overlap: one training step of an MLP on two
nodes, its gradients summed one by one after the backward pass (naive), or each as soon as it is there (overlapped).
"""

import statistics
import time

import click

from ringzero.bench import options

RATES = ("200mbit", "1gbit")
WIDTH, LAYERS, BATCH = 512, 12, 512  # 12.6 MB of gradients
STEPS = 7


def rows(rates=RATES, steps=STEPS, progress=lambda rates: rates):
    """For each rate a row of bandwidth (bits a second, ours measured, peer asked) and one of step time."""
    from ringzero.launch.cluster import Cluster, bytes_per_second

    made = []
    for rate in progress(rates):
        asked = bytes_per_second(rate)
        with Cluster(nodes=2, ranks_per_node=1, inter_node=rate) as cluster:
            seconds = max(cluster.launch(transfer_seconds, int(asked * 0.25), 5).returns)
            made.append(_row(f"bandwidth at {rate}", "bandwidth", asked * 0.25 / seconds * 8e-6, asked * 8e-6, "asked"))
            naive, overlapped = zip(*cluster.launch(step_seconds, steps, timeout=300).returns, strict=True)
        made.append(_row(f"step at {rate}", "step time", max(overlapped) * 1e3, max(naive) * 1e3, "naive", unit="ms"))
    return made


def _row(name, metric, ours, peer, peer_name, unit="Mbit/s"):
    ratio = peer / ours if unit == "ms" else ours / peer
    return {
        **{"name": name, "metric": metric, "ours": ours, "peer": peer},
        **{"peer_name": peer_name, "ratio": ratio, "unit": unit},
    }


def transfer_seconds(size, repeats):
    """On two ranks: the median time of ``size`` bytes from rank 0 to rank 1, as rank 1 sees it; 0.0 on rank 0."""
    import torch
    import torch.distributed as dist

    tensor, times = torch.zeros(size // 4), []
    for _ in range(repeats):
        dist.barrier()
        start = time.perf_counter()
        if dist.get_rank() == 0:
            dist.send(tensor, 1)
        else:
            dist.recv(tensor, 0)
        times.append(time.perf_counter() - start)
    return statistics.median(times) if dist.get_rank() else 0.0


def step_seconds(steps):
    """On each rank: ``(naive, overlapped)``, the median seconds of a training step, taken in turns."""
    import torch.distributed as dist

    model, loss = _model_and_loss()
    times = {naive_step: [], overlapped_step: []}
    for _ in range(steps):
        for step, samples in times.items():
            dist.barrier()
            start = time.perf_counter()
            step(model, loss)
            samples.append(time.perf_counter() - start)
    return tuple(statistics.median(samples[1:] or samples) for samples in times.values())


def _model_and_loss():
    import torch

    torch.manual_seed(0)
    layers = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(LAYERS)]
    model, batch = torch.nn.Sequential(*layers), torch.randn(BATCH, WIDTH)
    return model, lambda: model(batch).square().mean()


def naive_step(model, loss):
    """Backward, then one all-reduce after another."""
    import torch.distributed as dist

    model.zero_grad()
    loss().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def overlapped_step(model, loss):
    """Each gradient leaves as soon as it is there, while the backward pass goes on; all are waited for at the end."""
    import torch.distributed as dist

    model.zero_grad()
    on_the_way = []

    def send(parameter):
        on_the_way.append((dist.all_reduce(parameter.grad, async_op=True), parameter))

    hooks = [parameter.register_post_accumulate_grad_hook(send) for parameter in model.parameters()]
    loss().backward()
    for work, parameter in on_the_way:
        work.wait()
        parameter.grad /= dist.get_world_size()
    for hook in hooks:
        hook.remove()


@click.command("cluster")
@click.option("--rates", default=",".join(RATES), show_default=True, help="Of the link between the nodes.")
@options.json_option
def command(rates, json_file):
    """Bandwidth of the emulated cluster beside what was asked; a training step there, overlapped beside naive."""
    from tqdm import tqdm

    from ringzero.launch.cluster import ClusterUnavailable

    try:
        made = rows(rates.split(","), progress=tqdm)
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for row in made:
        click.echo(
            f"{row['name']:<24} {row['ours']:>8.1f} {row['unit']} vs {row['peer']:>8.1f} {row['peer_name']}: "
            f"{row['ratio']:.3f}"
        )
    options.write(made, json_file)
