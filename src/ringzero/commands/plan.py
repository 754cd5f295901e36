"""``ringzero plan``: how to train a model on a cluster, ranked, and why other plans are out."""

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path

import click

from ringzero.steps import planner
from ringzero.steps.plan import Cluster, Estimate
from ringzero.steps.transformer import MODELS, Transformer

GB = 1e9
FITTING = {
    "reached": "a share, above 0 and up to 1",
    "dollars": "dollars, 0 or more",
    "tokens": "a number of tokens above 0",
}


@click.command()
@click.argument("model", type=click.Choice(list(MODELS)))
@click.option("--gpu", default="H100", show_default=True, help="A GPU of the hardware table: A100, H100, B200, ...")
@click.option("--gpus", type=int, required=True, help="How many.")
@click.option("--gpus-per-node", type=int, default=8, show_default=True)
@click.option("--infiniband", default="NDR", show_default=True, help="The port of each GPU: HDR, NDR, XDR, ...")
@click.option("--batch", type=int, required=True, help="Sequences in a step, of all GPUs together.")
@click.option("--sequence", type=int, help="Tokens in a sequence; the model's own by default.")
@click.option("--reached", type=float, default=Cluster.reached, show_default=True, help="Share of peak in products.")
@click.option("--dollars", type=float, default=Cluster.dollars, show_default=True, help="A GPU-hour.")
@click.option("--tokens", type=float, help="Of the whole run, for its days and dollars.")
@click.option("--top", type=int, default=5, show_default=True, help="How many plans to show.")
@click.option("--json", "file", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Write all here.")
def plan(model: str, gpu: str, gpus: int, gpus_per_node: int, infiniband: str, batch: int, sequence: int | None,
         reached: float, dollars: float, tokens: float | None, top: int, file: Path | None) -> None:  # fmt: skip
    """Rank plans to train MODEL: ZeRO's stage, degrees of parallelism, micro-batch, recomputation, offloading."""
    for name, value in {
        "gpus": gpus,
        "gpus-per-node": gpus_per_node,
        "batch": batch,
        "sequence": sequence,
        "top": top,
    }.items():
        if value is not None and value < 1:
            raise click.ClickException(f"--{name} is {value}; give a whole number, 1 or more")
    for name, share in {"reached": reached, "dollars": dollars, "tokens": tokens}.items():
        largest = 1 if name == "reached" else inf
        if share is not None and not (0 < share <= largest and share < inf or share == 0 and name == "dollars"):
            raise click.ClickException(f"--{name} is {share:g}; give {FITTING[name]}")
    shape = MODELS[model] if sequence is None else MODELS[model]._replace(sequence=sequence)
    nodes, rest = divmod(gpus, gpus_per_node)
    if rest and gpus > gpus_per_node:
        raise click.ClickException(f"--gpus is {gpus}; nodes have {gpus_per_node} GPUs each: give a multiple of that")
    in_node = gpus_per_node if nodes else gpus
    try:
        cluster = Cluster(gpu, max(1, nodes), in_node, infiniband, reached, dollars=dollars)
        ranking = planner.rank(shape, cluster, batch)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    parameters = f"{shape.parameters / 1e9:.3g} billion parameters"
    click.echo(f"{model}, {parameters}, {batch} sequences of {shape.sequence} on {gpus:,} {gpu}: ", nl=False)
    click.echo(f"{ranking.tried:,} plans, {len(ranking.fitting):,} fit")
    if not ranking.fitting:
        raise click.ClickException(_nearest(ranking.too_large[0], cluster))
    best = planner.best_of_each(ranking)[:top]
    for place, each in enumerate(best, start=1):
        click.echo(f"\n{place}. {each.plan}\n   {_in_words(each, cluster)}")
        if tokens is not None:
            click.echo(f"   {_whole_run(each, shape, batch, tokens)}")
    click.echo("\nWhy not, beside the first:")
    for question, other in planner.neighbours(best[0].plan, cluster).items():
        click.echo(f"   {question}: {planner.verdict(shape, cluster, batch, other, best[0])}")
    if file is not None:
        file.write_text(json.dumps([_plain(each) for each in ranking.fitting], indent=1))


def _nearest(smallest: Estimate, cluster: Cluster) -> str:
    missing = (smallest.bytes - cluster.memory_bytes) / GB
    parts = ", ".join(f"{name} {size / GB:.0f}" for name, size in smallest.memory.items() if size > GB)
    return (
        f"nothing fits. The nearest plan, {smallest.plan}, needs {smallest.bytes / GB:.0f} GB of each GPU ({parts}), "
        f"{missing:.0f} GB more than the {cluster.memory_bytes / GB:.0f} that may be used"
    )


def _in_words(each: Estimate, cluster: Cluster) -> str:
    times = ", ".join(f"{part} {seconds:.2f}" for part, seconds in each.time.items() if seconds >= 0.005)
    held = f"{each.bytes / GB:.0f} of {cluster.memory_bytes / GB:.0f} GB"
    return f"{each.seconds:.2f} s a step ({times}), MFU {each.mfu:.1%}, {held}, {each.dollars:,.2f} dollars a step"


def _whole_run(each: Estimate, model: Transformer, batch: int, tokens: float) -> str:
    steps = tokens / (batch * model.sequence)
    days, dollars = steps * each.seconds / 86400, steps * each.dollars
    return f"{days:,.1f} days and {dollars:,.0f} dollars for {tokens:g} tokens"


def _plain(each: Estimate) -> dict[str, object]:
    parts: Sequence[tuple[str, object]] = [("plan", each.plan._asdict()), ("seconds", each.seconds), ("mfu", each.mfu)]
    return dict(parts) | {"time": each.time, "memory": each.memory, "dollars_a_step": each.dollars}
