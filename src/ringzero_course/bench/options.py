"""What the benchmarks' commands share: options, as click callbacks, and a bar that shows how far they are."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import click

Item = TypeVar("Item")

json_option = click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, writable=True), help="Also write the rows here."
)


def sizes(context: click.Context, parameter: Any, value: str) -> tuple[int, ...]:
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


def world_sizes(context: click.Context, parameter: Any, value: str) -> tuple[int, ...]:
    """ "2,4" as a tuple of world sizes."""
    try:
        numbers = tuple(int(item) for item in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of world sizes such as 2,4") from None
    if any(n < 1 for n in numbers):
        raise click.BadParameter(f"{value!r}: a world size is at least 1")
    return numbers


def progress(items: Iterable[Item], length: int | None = None) -> Iterator[Item]:
    """The ``items`` one by one, with a bar on stderr if a person is there to see it."""
    if not sys.stderr.isatty():
        yield from items
        return
    with click.progressbar(items, length=length, file=sys.stderr) as bar:
        yield from bar
