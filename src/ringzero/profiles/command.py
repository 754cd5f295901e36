"""``ringzero timeline``: traces of torch's profiler, of all ranks, as one table, one figure, and a sentence."""

import json
from html import escape
from pathlib import Path
from typing import TextIO

import click

from ringzero.drawing import Figure, standalone, table
from ringzero.profiles.findings import HEAD, Report, report

STYLE = """
:root { color-scheme: light dark }
body { font-family: system-ui, sans-serif; line-height: 1.5; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
figure { margin: 1rem 0 } svg { display: block; height: auto; font-family: inherit }
.rz-scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: 0.15rem 0.9rem 0.15rem 0; border-bottom: 1px solid #8886 }
"""


@click.command("timeline")
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--html", type=click.File("w"), help="Write the figure, the table and the sentences as a page.")
@click.option("--svg", type=click.File("w"), help="Write the figure alone.")
@click.option(
    "--json", "as_json", type=click.File("w"), help="Write all numbers, for each rank and step; - prints them."
)
@click.option("--step", type=int, help="Draw this ProfilerStep; by default all, or of more than three the slowest.")
def command(
    traces: tuple[Path, ...], html: TextIO | None, svg: TextIO | None, as_json: TextIO | None, step: int | None
) -> None:
    """Say where the time of each rank went, and for which rank the others waited.

    TRACES are files of torch.profiler (export_chrome_trace, .json or .json.gz), one for each rank, or the folder that
    holds them; or one file of save_chrome_trace. Clocks of different machines are put on one by the collectives in
    which ranks were together.
    """
    try:
        found = report(traces)
        figures = found.figures(step) if html or svg else []
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    if as_json is None or as_json.name != "<stdout>":
        click.echo(str(found))
    if as_json is not None:
        json.dump(found.as_json(), as_json, indent=1)
        as_json.write("\n")
    if svg is not None:
        if len(figures) > 1:
            raise click.ClickException("no collective joins the traces, so there are several figures; write --html")
        svg.write(standalone(figures[0]))
    if html is not None:
        html.write(page(found, figures))


def page(found: Report, figures: list[Figure]) -> str:
    """A page that needs nothing from anywhere: sentences, table and figures."""
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in found.sentences())
    parts = [said, table(found.rows(), HEAD).html, *(figure.html for figure in figures)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Timeline</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>Timeline</h1>{''.join(parts)}</body></html>\n"
    )
