"""``ringzero run``: a script on N ranks, as torchrun runs it, and the cause if it hangs."""

from pathlib import Path

import click


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--ranks", "--nproc-per-node", "--nproc_per_node", default=2, show_default=True, help="Processes on this machine."
)
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in python -m.")
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the ranks' last 32,768 operations here, for ui.perfetto.dev and ringzero timeline.",
)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(ranks: int, is_module: bool, trace: Path | None, script: str, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT with its ARGUMENTS on N ranks, as torchrun does; if it hangs, end it and say why.

    On the CPU, where ranks talk through gloo, their communication is recorded. When no rank can ever get on, the script
    is ended within seconds, and the cause is named: who waits where, and who is missing. On GPUs torch's Flight
    Recorder is switched on; its dumps are explained when NCCL's watchdog has ended the script. Ctrl-C says where each
    rank is. Exit status, as torchrun's: 0 if all ranks ended well, else 1.
    """
    from ringzero.ranks import script as scripts

    if ranks < 1:
        raise click.UsageError(f"--ranks is {ranks}; give 1 or more")
    if not is_module and not Path(script).is_file():
        raise click.UsageError(f"{script} is no file; give a script, or -m and a module's name")
    ended = scripts.run([script, *arguments], ranks, is_module, _explained)
    if ended.why:
        click.echo(f"\n{ended.why}", err=True)
    if trace is not None:
        ended.save_chrome_trace(trace)
    raise SystemExit(ended.status)


def _explained(dumps: list[Path]) -> str:
    from ringzero.dumps import explain

    try:
        return str(explain(dumps)) if dumps else ""
    except ValueError:  # none can be read: the watchdog was ended as it wrote
        return ""
