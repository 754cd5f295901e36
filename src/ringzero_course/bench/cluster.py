"""The emulated cluster beside what was asked of it, and what overlap is worth there.

Bandwidth: one rank a node, 32 MB (1 s at the slowest) from node to node. Overlap: one training step of an MLP on two
nodes, its gradients summed one by one after the backward pass (naive), or each as soon as it is there (overlapped).
"""

import click

from ringzero_course.bench import options, results

RATES = ("200mbit", "1gbit")
STEPS = 7


def rows(rates=RATES, steps=STEPS, progress=lambda rates: rates):
    """For each rate a row of bandwidth (bits a second, ours measured, peer asked) and one of step time."""
    from ringzero.measure.steps import step_seconds, transfer_seconds
    from ringzero.ranks.cluster import Cluster, bytes_per_second

    made = []
    for rate in progress(rates):
        asked = bytes_per_second(rate)
        with Cluster(nodes=2, ranks_per_node=1, inter_node=rate) as cluster:
            seconds = max(cluster.launch(transfer_seconds, int(asked * 0.25), 5).returns)
            mbit = asked * 0.25 / seconds * 8e-6, asked * 8e-6
            ratio = mbit[0] / mbit[1]
            made.append(results.row(f"bandwidth at {rate}", "bandwidth", *mbit, "asked", "Mbit/s", ratio))
            naive, overlapped = zip(*cluster.launch(step_seconds, steps, timeout=300).returns, strict=True)
        made.append(results.row(f"step at {rate}", "step time", max(overlapped) * 1e3, max(naive) * 1e3, "naive", "ms"))
    return made


@click.command("cluster")
@click.option("--rates", default=",".join(RATES), show_default=True, help="Of the link between the nodes.")
@options.json_option
def command(rates, json_file):
    """Bandwidth of the emulated cluster beside what was asked; a training step there, overlapped beside naive."""
    from ringzero.ranks.cluster import ClusterUnavailable

    try:
        made = rows(rates.split(","), progress=options.progress)
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for row in made:
        click.echo(
            f"{row['name']:<24} {row['ours']:>8.1f} {row['unit']} vs {row['peer']:>8.1f} {row['peer_name']}: "
            f"{row['ratio']:.3f}"
        )
    results.write(made, json_file)
