"""The ``ringzero`` command. Each subcommand imports what it needs when it runs, so ``--help`` is immediate."""

import importlib
import json

import click


class LazyGroup(click.Group):
    """A group whose subcommands are ``{name: "module:attribute"}``, imported when asked for."""

    def __init__(self, *args, lazy=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.lazy = lazy or {}

    def list_commands(self, context):
        return sorted([*super().list_commands(context), *self.lazy])

    def get_command(self, context, name):
        if name not in self.lazy:
            return super().get_command(context, name)
        module, attribute = self.lazy[name].split(":")
        return getattr(importlib.import_module(module), attribute)


@click.group(cls=LazyGroup, lazy={"doctor": "ringzero.doctor:doctor", "mutants": "ringzero.grading.mutants:mutants"})
@click.version_option(package_name="ringzero")
def main():
    """Ring AllReduce and ZeRO, and the course built on them."""


@main.group()
def bench():
    """Measure ours beside a peer, alternately, in one run."""


def _sizes(context, parameter, value):
    """ "64K,1M,64M" as a tuple of bytes."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    try:
        sizes = tuple(
            int(item[:-1]) * units[item[-1]] if item[-1:] in units else int(item) for item in value.upper().split(",")
        )
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of sizes such as 64K,1M,64M") from None
    if any(size < 4 or size % 4 for size in sizes):
        raise click.BadParameter(f"{value!r}: a size is a multiple of 4 bytes (float32), from 4")
    return sizes


def _world_sizes(context, parameter, value):
    try:
        world_sizes = tuple(int(item) for item in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of world sizes such as 2,4") from None
    if any(n < 1 for n in world_sizes):
        raise click.BadParameter(f"{value!r}: a world size is at least 1")
    return world_sizes


@bench.command("collectives")
@click.option("--world-sizes", default="2,4", callback=_world_sizes, help="Ranks, comma separated.", show_default=True)
@click.option("--sizes", default="64K,256K,1M,4M,16M,64M", callback=_sizes, help="Buffer sizes.", show_default=True)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, writable=True), help="Also write the rows here.")
def bench_collectives(world_sizes, sizes, device, json_file):
    """Ring all-reduce beside the backend's own (gloo, NCCL) and beside reduce + broadcast."""
    from tqdm import tqdm

    from ringzero.bench import collectives

    try:
        table, comparison = collectives.rows(world_sizes, sizes, device, progress=tqdm)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    click.echo(collectives.table_text(table))
    click.echo(collectives.comparison_text(comparison))
    if json_file:
        with open(json_file, "w") as file:
            json.dump(comparison, file, indent=1)


if __name__ == "__main__":
    main()
