"""The table that a check shows: a row for each claim, with its verdict, the reason and the points."""

import html
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table. ``reason`` says why the claim does not hold and is empty if it does."""

    claim: str
    holds: bool
    reason: str
    points: float
    possible: float


@dataclass(frozen=True)
class Table:
    """The verdicts, as a notebook or a terminal shows them."""

    name: str
    rows: tuple[Row, ...]
    points: float
    possible: float
    printed: tuple[str, ...] = ()  # lines that the ranks printed
    ran: str = ""  # on what the ranks ran
    more: str = ""  # what is to be said beside the points

    def __repr__(self):
        lines = [f"{self.name}: {self.points:g} of {self.possible:g} points{self.more}"]
        for row in self.rows:
            lines.append(f"  {'pass' if row.holds else 'FAIL'}  {row.points:4.2f}/{row.possible:4.2f}  {row.claim}")
            if row.reason:
                lines.append(f"                   {row.reason}")
        return "\n".join([*lines, *([f"  ran on {self.ran}"] if self.ran else []), *self.printed])

    def _repr_html_(self):
        cells = []
        for row in self.rows:
            verdict = "✓ holds" if row.holds else "<b>✗ does not hold</b>"
            cells.append(
                f'<tr><td style="text-align:left">{html.escape(row.claim)}</td>'
                f'<td style="text-align:left">{verdict}</td>'
                f'<td style="text-align:left;max-width:40em;overflow-wrap:anywhere">{html.escape(row.reason)}</td>'
                f'<td style="white-space:nowrap">{row.points:.2f} / {row.possible:.2f}</td></tr>'
            )
        printed = html.escape("\n".join(self.printed))
        details = f"<details><summary>What the ranks printed</summary><pre>{printed}</pre></details>" if printed else ""
        ran = f"<p><small>ran on {html.escape(self.ran)}</small></p>" if self.ran else ""
        return (
            f'<table class="ringzero-check"><caption style="text-align:left"><code>{html.escape(self.name)}</code>: '
            f"{self.points:g} of {self.possible:g} points{html.escape(self.more)}</caption>"
            '<thead><tr><th style="text-align:left">check</th><th style="text-align:left">verdict</th>'
            '<th style="text-align:left">reason</th><th>points</th></tr></thead>'
            f"<tbody>{''.join(cells)}</tbody></table>{ran}{details}"
        )

    def show(self) -> None:
        """Display the table: as HTML in a notebook, as text elsewhere."""
        try:
            from IPython import get_ipython
            from IPython.display import display
        except ImportError:
            print(self)
            return
        if get_ipython() is None:
            print(self)
        else:
            display(self)
