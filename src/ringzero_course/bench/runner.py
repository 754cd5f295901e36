"""What all benchmarks share: rows, the command that prints and writes them, types of options.

A benchmark is a generator function ``rows``. It yields rows, which are printed as they come and written in the end,
also after an interruption, and lines of text, which are only printed.
"""

import inspect
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import click

Item = TypeVar("Item")
Row = dict[str, Any]  # name, metric, ours, peer, peer_name, ratio, unit: ready for JSON
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


# ---- rows


def row(
    name: str, metric: str, ours: float, peer: float | None, peer_name: str | None, unit: str,
    ratio: float | None = None,
) -> Row:  # fmt: skip
    """One comparison. ``ratio`` above 1 means ours is better; by default ``peer / ours``, as for times.

    ``peer``, ``peer_name`` and ``ratio`` are None where nothing comparable exists.
    """
    if ratio is None and peer is not None:
        ratio = peer / ours
    values = {"ours": ours, "peer": peer, "peer_name": peer_name, "ratio": ratio, "unit": unit}
    return {"name": name, "metric": metric, **values}


def milliseconds(
    name: str, ours: Sequence[float], peer: Sequence[float], peer_name: str, metric: str = "step time"
) -> Row:
    """The medians of seconds that were measured in turns; the ratio is the median of each turn's."""
    mine, theirs = (statistics.median(each) * 1e3 for each in (ours, peer))
    paired = statistics.median(b / a for a, b in zip(ours, peer, strict=True))
    return row(name, metric, mine, theirs, peer_name, "ms", paired)


def line(row: Row) -> str:
    """A row as it is printed."""
    text = f"{row['name']:<44} {row['metric']:<24} {row['ours']:>10.4g} {row['unit']:<5}"
    if row["peer"] is None:
        return text.rstrip()
    return f"{text} vs {row['peer']:>10.4g} {row['peer_name']}: {row['ratio']:.2f}"


def show(rows: Iterable[Row | str], json_file: str | None) -> None:
    """Print rows and lines of text as they come; write the rows that came to ``json_file``, also when interrupted."""
    from ringzero.ranks.cluster import ClusterUnavailable

    made = []
    try:
        for each in rows:
            if isinstance(each, dict):
                made.append(each)
            if sys.stderr.isatty():
                click.echo("\r\033[K", err=True, nl=False)  # in place of the bar
            click.echo(each if isinstance(each, str) else line(each))
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        if json_file:
            with open(json_file, "w") as file:
                json.dump(made, file, indent=1)


def progress(items: Iterable[Item]) -> Iterator[Item]:
    """The ``items`` one by one, with a bar on stderr if a person is there to see it."""
    if not sys.stderr.isatty():
        yield from items
        return
    with click.progressbar(items, file=sys.stderr) as bar:
        yield from bar


# ---- the command


def command(rows: Callable[..., Iterable[Row | str]], **options: tuple[Any, str]) -> click.Command:
    """The command of a benchmark, with the name of its module and ``rows``' first paragraph as help.

    ``options`` are ``{parameter of rows: (its type, help)}``, and defaults are the parameters'.
    """
    parameters = inspect.signature(rows).parameters
    file = click.Path(dir_okay=False, writable=True)
    given: list[click.Parameter] = [
        _option(name, kind, parameters[name].default, text) for name, (kind, text) in options.items()
    ]
    given.append(click.Option(["--json", "json_file"], type=file, help="Also write the rows here."))

    def run(json_file: str | None, **chosen: Any) -> None:
        show(rows(**chosen), json_file)

    help = (inspect.getdoc(rows) or "").partition("\n\n")[0]
    return click.Command(rows.__module__.rpartition(".")[2], params=given, callback=run, help=help)


def _option(name: str, kind: Any, default: Any, text: str) -> click.Option:
    if isinstance(default, tuple):
        default = ",".join(map(_written if kind is sizes else str, default))
    return click.Option(
        [f"--{name.replace('_', '-')}"], type=kind, default=default, show_default=default is not None, help=text,
        metavar="LIST" if inspect.isfunction(kind) else None,
    )  # fmt: skip


COUNT = click.IntRange(min=1)  # a type of option, as the functions below


def ranks(text: str) -> tuple[int, ...]:
    """ "2,4" as a tuple of numbers of ranks."""
    try:
        numbers = tuple(int(item) for item in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of world sizes such as 2,4") from None
    if any(n < 1 for n in numbers):
        raise click.BadParameter(f"{text!r}: a world size is at least 1")
    return numbers


def sizes(text: str) -> tuple[int, ...]:
    """ "64K,1M,64M" as a tuple of bytes."""
    try:
        found = tuple(
            int(item[:-1]) * UNITS[item[-1]] if item[-1:] in UNITS else int(item) for item in text.upper().split(",")
        )
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of sizes such as 64K,1M,64M") from None
    if any(size < 4 or size % 4 for size in found):
        raise click.BadParameter(f"{text!r}: a size is a multiple of 4 bytes (float32), from 4")
    return found


def _written(size: int) -> str:
    unit = next((letter for letter in "GMK" if size % UNITS[letter] == 0), "")
    return f"{size // UNITS.get(unit, 1)}{unit}"


def rates(text: str) -> tuple[str, ...]:
    """ "200mbit,1gbit" as a tuple of rates of links."""
    return tuple(text.split(","))


def rates_or_none(text: str) -> tuple[str, ...]:
    """The same, and "none" is none of them."""
    return () if text == "none" else rates(text)


def names(choices: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """A type for a list of some of ``choices``; "all" is all of them."""
    known = tuple(choices)

    def parse(text: str) -> tuple[str, ...]:
        found = known if text == "all" else tuple(text.split(","))
        for name in found:
            if name not in known:
                raise click.BadParameter(f"{name!r} is none of {', '.join(known)}")
        return found

    return parse
