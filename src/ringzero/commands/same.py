"""``ringzero same``: is training on N ranks the same as on one?"""

import json
from pathlib import Path

import click


@click.command()
@click.argument("program", metavar="FILE.py:STEP")
@click.option("--ranks", default=2, show_default=True, help="Ranks to compare with one process.")
@click.option("--steps", default=4, show_default=True, help="Calls of the step to compare.")
@click.option("--data", "samples", metavar="NAME", help="What the file calls its batches, loader or dataset.")
@click.option("--as-written", is_flag=True, help="In the program's own number types; else in float64 where it can.")
@click.option("--timeout", default=120.0, show_default=True, help="Seconds for each run.")
@click.option("--json", "file", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Save it here.")
def same(
    program: str, ranks: int, steps: int, samples: str | None, as_written: bool, timeout: float, file: Path | None
) -> None:
    """Run a training step on N ranks and in one process with the same samples, and compare.

    STEP is what FILE.py calls a whole training step: a function of a batch, or of nothing if it takes its batches from
    a DataLoader of its own; a function or class that makes one; or an object with a method step. For a function of a
    batch the file has a list "batches" of whole batches, which is cut for the ranks, or a DataLoader "loader".
    Processes are connected before the file runs. Where N ranks do not train as one, or wait for ever, the cause is
    named; steps count from 1. Exit status: 0 the same, 1 not the same, 2 it cannot be compared.

    What is as wrong in one process is not seen: a last window of an accumulation that is divided as a full one, an
    evaluation that counts samples twice, what a checkpoint lacks.
    """
    from ringzero.same import ProgramError, compare

    path, _, step = program.rpartition(":")
    if not path:
        raise click.UsageError(f"{program!r} names no step: write {program}:step, the file and what it calls its step")
    try:
        verdict = compare(path, step, ranks=ranks, steps=steps, samples=samples, as_written=as_written, timeout=timeout)
    except (ProgramError, ValueError) as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(2) from None
    if file is not None:
        data = {"same": verdict.same, "first": verdict.first, "causes": [cause._asdict() for cause in verdict.causes]}
        file.write_text(json.dumps(data | {"ranks": ranks, "steps": verdict.steps, "tolerance": verdict.tolerance}))
    click.echo(str(verdict))
    raise SystemExit(0 if verdict.same else 1)
