"""The table that a check shows: a row for each claim, with its verdict, the reason and the points."""

import html
from dataclasses import asdict, dataclass

METADATA = "ringzero_check"  # under this name the display of a table has the same as plain data, for a feedback page


@dataclass(frozen=True)
class Row:
    """One line of the table. ``reason`` says why the claim does not hold and is empty if it does.

    ``hidden``: the claim was declared in a hidden test.
    """

    claim: str
    holds: bool
    reason: str
    points: float
    possible: float
    hidden: bool = False


@dataclass(frozen=True)
class Table:
    """The verdicts, as a notebook or a terminal shows them.

    ``shown_cases`` and ``hidden_cases`` are the calls in words, as in the reasons; those that only hidden tests make
    are the second.
    """

    name: str
    rows: tuple[Row, ...]
    points: float
    possible: float
    printed: tuple[str, ...] = ()  # lines that the ranks printed
    ran: str = ""  # on what the ranks ran
    more: str = ""  # what is to be said beside the points
    shown_cases: tuple[str, ...] = ()
    hidden_cases: tuple[str, ...] = ()

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

    def as_data(self) -> dict:
        """The table as plain data: what it says, not what the ranks printed."""
        return {
            "function": self.name,
            "points": self.points,
            "possible": self.possible,
            "rows": [asdict(row) for row in self.rows],
            "shown_cases": list(self.shown_cases),
            "hidden_cases": list(self.hidden_cases),
            "ran": self.ran,
            "printed": bool(self.printed),
        }

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
            display(self, metadata={METADATA: self.as_data()})
