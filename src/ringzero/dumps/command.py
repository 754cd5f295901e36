"""``ringzero explain``: why a job hangs, from the dumps of torch's Flight Recorder."""

import json
from pathlib import Path
from typing import TextIO

import click

from ringzero.drawing import standalone


@click.command("explain")
@click.argument("dumps", nargs=-1, type=click.Path(path_type=Path))
@click.option("--torchrun", type=int, metavar="PID", help="Of a torchrun whose job hangs now, instead of DUMPS.")
@click.option("--pid", "pids", type=int, multiple=True, metavar="PID", help="Of a rank that hangs now; repeat it.")
@click.option("--world-size", type=int, help="How many ranks the job had, where its last ranks left no dump.")
@click.option("--svg", type=click.File("w"), help="Draw the ranks' last operations.")
@click.option("--json", "as_json", type=click.File("w"), help="Write all of it as JSON; - prints it.")
def command(
    dumps: tuple[Path, ...],
    torchrun: int | None,
    pids: tuple[int, ...],
    world_size: int | None,
    svg: TextIO | None,
    as_json: TextIO | None,
) -> None:
    """Say why a job hangs: who waits in which collective, and who is missing there or called something else.

    DUMPS are files of torch's Flight Recorder, pickles or JSON, one for each rank, or the folder that holds them.
    Nothing in them is run. With --torchrun or --pid the job still hangs: its stacks are read by py-spy, and NCCL's
    recorder is asked for its dumps where it has a pipe (TORCH_NCCL_DEBUG_INFO_PIPE_FILE). Exit status: 0 nothing is
    wrong, or the job is at work; 1 something is; 2 the dumps or the processes cannot be read.

    "all_reduce #3" is the third all_reduce of its group on that rank.
    """
    from ringzero.dumps.findings import explain

    if bool(dumps) + (torchrun is not None) + bool(pids) != 1:
        raise click.UsageError("give the dumps, or --torchrun, or --pid: one of them")
    try:
        if not dumps:
            dumps = _of_running(torchrun, pids, as_json, world_size is not None or svg is not None)
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


def _of_running(
    torchrun: int | None, pids: tuple[int, ...], as_json: TextIO | None, needs_dumps: bool
) -> tuple[Path, ...]:
    """The dumps of a job that hangs now. Where it writes none, say where its ranks stand, and exit.

    Raises ValueError where an option that was given ``needs_dumps``, and there are none.
    """
    from ringzero.dumps import live

    ranks = live.ranks_under(torchrun) if torchrun is not None else {live.rank_of(pid): pid for pid in pids}
    if written := live.dumps(ranks):
        return tuple(written)
    if needs_dumps:
        raise ValueError("--svg and --world-size are for dumps, and this job writes none: leave them out")
    stacks = live.look(ranks)
    if as_json is not None:
        json.dump(stacks.as_json(), as_json, indent=1)
        as_json.write("\n")
    if as_json is None or as_json.name != "<stdout>":
        click.echo(str(stacks))
    raise SystemExit(int(not stacks.moving))
