"""``ringzero explain``: why a job hangs, from the dumps of torch's Flight Recorder."""

import json
from pathlib import Path
from typing import TextIO

import click

from ringzero.drawing import standalone


@click.command("explain")
@click.argument("dumps", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--world-size", type=int, help="How many ranks the job had, where its last ranks left no dump.")
@click.option("--svg", type=click.File("w"), help="Draw the ranks' last operations.")
@click.option("--json", "as_json", type=click.File("w"), help="Write all of it as JSON; - prints it.")
def command(dumps: tuple[Path, ...], world_size: int | None, svg: TextIO | None, as_json: TextIO | None) -> None:
    """Say why a job hangs: who waits in which collective, and who is missing there or called something else.

    DUMPS are files of torch's Flight Recorder, pickles or JSON, one for each rank, or the folder that holds them.
    Nothing in them is run. Exit status: 0 nothing is wrong, 1 something is, 2 the dumps cannot be read.
    """
    from ringzero.dumps.findings import explain

    try:
        found = explain(dumps, world_size)
        drawn = standalone(found.figure()) if svg is not None else ""
    except ValueError as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(2) from None
    if svg is not None:
        svg.write(drawn)
    if as_json is not None:
        json.dump(found.as_json(), as_json, indent=1)
        as_json.write("\n")
    if as_json is None or as_json.name != "<stdout>":
        click.echo(str(found))
    raise SystemExit(1 if found.is_wrong else 0)
