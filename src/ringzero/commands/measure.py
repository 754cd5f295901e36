"""``ringzero measure``: this machine as numbers, for predictions of training steps on it."""

from pathlib import Path

import click


@click.command()
@click.option("--ranks", default=2, show_default=True, help="Ranks that compute and talk at once, on one node.")
@click.option("--inter-node", help="Two emulated nodes instead, with this link between them, such as 1gbit.")
@click.option("--json", "file", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Save it here.")
def measure(ranks: int, inter_node: str | None, file: Path | None) -> None:
    """Measure products by shape, memory, collectives, and what computing and communication take from each other."""
    from contextlib import nullcontext

    import ringzero
    from ringzero.measure import machine

    if ranks < 2:
        raise click.ClickException(f"--ranks is {ranks}; give 2 or more, so that there are collectives to measure")
    if inter_node is not None and ranks % 2:
        raise click.ClickException(f"--ranks is {ranks}; two nodes need an even number")
    try:
        cluster = (
            nullcontext(machine.OneNode(ranks))
            if inter_node is None
            else ringzero.Cluster(nodes=2, ranks_per_node=ranks // 2, inter_node=inter_node)
        )
    except ValueError as error:
        raise click.ClickException(f"--inter-node is {inter_node}, --ranks {ranks}: {error}") from error
    click.echo(f"measuring {ranks} ranks, about half a minute ...", err=True)
    try:
        with cluster as here:
            found, spread, _ = machine.measure(here)
    except ringzero.ClusterUnavailable as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{found.name}")
    for tokens, inputs, outputs, forward, backward in found.products:
        shape = f"{tokens:g} tokens x {inputs:g} x {outputs:g}"
        click.echo(f"  products, {shape:24} forward {forward / 1e9:6.1f} GFLOP/s, backward {backward / 1e9:6.1f}")
    click.echo(f"  memory, read and written {found.memory_bandwidth / 1e9:6.1f} GB/s")
    click.echo(f"  AdamW                    {found.adam_seconds(1) * 1e9:6.2f} ns an element")
    for (collective, group), ((latency, per_byte), *_) in found.collectives.items():
        if group == "all":
            busbw = found.effective_bandwidth(collective) / 1e9
            click.echo(
                f"  {collective:24} {latency * 1e6:6.0f} µs and {per_byte * 1e9:.3f} ns a byte: busbw {busbw:.2f} GB/s"
            )
            if measured := found.measured.get((collective, group)):
                size = measured[-1][0]
                beside, factor = found.beside_computing(collective, size)
                longer = beside / found.seconds(collective, size)
                click.echo(
                    f"{'':27}{size / 2**20:g} MiB beside computing: {longer:.2f} times as long; computing {factor:.2f}"
                )
    if spread > machine.QUIET:
        click.echo(
            f"this machine is busy: equal work took up to {spread:.0%} longer in its slower quarter than in its faster "
            f"one. Measure again when nothing else runs; a quiet machine stays under {machine.QUIET:.0%}.",
            err=True,
        )
    if file is not None:
        found.save(file)
        click.echo(f"saved: {file}")
