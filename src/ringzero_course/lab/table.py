"""The table that a check shows: a row for each claim, with its verdict, the reason and the points."""

import html
from dataclasses import asdict, dataclass
from typing import NamedTuple

METADATA = "ringzero_check"  # under this name the display of a table has the same as plain data, for a feedback page


class Verdict(NamedTuple):
    """What came of one claim: ``why`` it does not hold, or None. ``hidden``: it was declared in a hidden test."""

    claim: str
    why: str | None
    weight: float
    hidden: bool = False


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


def rows_of(verdicts: list[Verdict], possible: float) -> tuple[tuple[Row, ...], float]:
    """A row for each verdict, and the points of all, ``possible`` at most. A reason is told once."""
    total = sum(verdict.weight for verdict in verdicts) or 1
    rows: list[Row] = []
    said: dict[str, str] = {}  # reason -> the first claim that failed for it
    for claim, why, weight, is_hidden in verdicts:
        share = possible * weight / total
        reason = f"as for “{said[why]}”" if why in said else why or ""
        rows.append(Row(claim, why is None, reason, share if why is None else 0.0, share, is_hidden))
        if why:
            said.setdefault(why, claim)
    all_hold = rows and all(row.holds for row in rows)
    points = possible if all_hold else min(possible, round(sum(row.points for row in rows), 2))
    return tuple(rows), float(points)


def half_hidden(verdicts: list[Verdict]) -> list[Verdict]:
    """The same, hidden ones with at least half of the weight, where there are any."""
    seen, unseen = (sum(v.weight for v in verdicts if v.hidden is hidden) for hidden in (False, True))
    if not 0 < unseen < seen:
        return verdicts
    return [v._replace(weight=v.weight * seen / unseen) if v.hidden else v for v in verdicts]


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
