"""Checks that say what they check: a table of claims with reasons, and the points they add up to.

    check = Check("ring_all_reduce", points=4, world_size=WORLD_SIZE, device=DEVICE)
    even = check.run(numel=12_000)                     # the function, on every rank, on fresh random input
    check.that("every rank has the sum", even, has_the_sum)
    check.that("every message goes to a ring neighbour", even, traffic.neighbours_only)
    check.score()                                      # shows the table; ends in a number, which nbgrader takes

A claim is a function of a ``Run`` that returns None, or the reason why it does not hold. The runs declared so far are
made when the first claim needs one, in one launch for each number of ranks. Whatever the function does (raises,
hangs, returns nonsense) is a claim that does not hold and a reason in the table, never a traceback.
"""

import contextlib
import html
import io
import warnings
import zlib
from dataclasses import dataclass

import torch

from ringzero.lab import runs
from ringzero.lab.parameters import notebook_names

LIBRARY = "ringzero's collectives"  # in ``built_from`` it allows what these are made of
NOISE = ("terminate called after throwing", "  what():")  # gloo's last words: the reason has them in plain English


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    claim: str
    holds: bool
    reason: str
    points: float
    possible: float


class Check:
    """The checks of one function, worth ``points`` together: each claim its share by weight.

    ``function`` is its name in the notebook (the newest definition counts) or the function itself. It may use the
    operations in ``built_from``; a run that used others proves nothing, and no claim about it holds.
    """

    def __init__(self, function, points, world_size, device="auto", built_from=("send", "recv")):
        if callable(function):
            self.name, self.function = getattr(function, "__name__", "the function"), function
        else:
            self.name, self.function = function, notebook_names().get(function)
        self.points, self.world_size, self.device = points, world_size, device
        self.built_from = built_from
        self._waiting = []
        self._runs = []
        self._claims = []  # (text, why not or None, weight)

    def run(self, *args, numel=None, dtype=torch.float32, ranks=None, **options):
        """Declare a call of the function on every rank and return its ``Run``.

        With ``numel``, its first argument is a new 1-D tensor, different on each rank; ``args`` and ``options`` follow.
        Without, it is a function of plain values, called on one rank. ``ranks`` is the number of ranks if not
        ``world_size``; where that is more than there are GPUs, they run on the CPU.
        """
        ranks = ranks or (self.world_size if numel is not None else 1)
        seed = zlib.crc32(f"{self.name} {len(self._runs)}".encode()) % 2**40
        run = runs.Run(runs.Case(ranks, numel, dtype, args, options, seed))
        self._waiting.append(run)
        self._runs.append(run)
        return run

    def that(self, text, runs_of_it, claim, weight=1):
        """Check that ``claim`` holds for a run, or for each of a list of runs."""
        every = [runs_of_it] if isinstance(runs_of_it, runs.Run) else list(runs_of_it)
        with _quiet():
            self._execute()
            why = next((reason for run in every if (reason := self._why_not(run, claim)) is not None), None)
        self._claims.append((text, why, weight))

    def score(self):
        """Show the table and return the points, a number from 0 to ``points``."""
        total = sum(weight for _, _, weight in self._claims) or 1
        rows, seen = [], set()
        for text, why, weight in self._claims:
            possible = self.points * weight / total
            reason = "as above" if why and why in seen else why or ""
            rows.append(Row(text, why is None, reason, possible if why is None else 0.0, possible))
            seen.add(why)
        if rows and all(row.holds for row in rows):
            points = self.points
        else:
            points = min(self.points, round(sum(row.points for row in rows), 2))
        _show(Table(self.name, tuple(rows), points, self.points, self._printed()))
        return float(points)

    def _execute(self):
        waiting, self._waiting = self._waiting, []
        if self.function is None or not callable(self.function):
            what = "not defined" if self.function is None else f"{self.function!r}, not a function"
            for run in waiting:
                run.problem = f"{self.name} is {what}: run the cell that defines it, then this one"
            return
        # Most ranks first: warm ranks serve smaller numbers too.
        for ranks in sorted({run.world_size for run in waiting}, reverse=True):
            device = self.device if ranks <= self.world_size else "cpu"
            some = [run for run in waiting if run.world_size == ranks]
            try:
                runs.execute(self.name, self.function, some, device)
            except Exception as error:  # ours, not the student's; still a sentence in a table
                for run in some:
                    run.problem = f"the check itself failed ({type(error).__name__}: {error}); report this"

    def _why_not(self, run, claim):
        where = "" if run.problem == runs.not_written(self.name) else f"with {run.case}: "
        problem = run.problem or self._nothing_proved(run)
        if problem is None:
            try:
                problem = claim(run)
            except Exception as error:
                problem = f"what came back cannot be checked ({type(error).__name__}: {error})"
        return None if problem is None else where + problem

    def _nothing_proved(self, run):
        """Why a run that came back still counts for nothing: it did not do the work itself, or left some undone."""
        rule = f"build it from {' and '.join(self.built_from)}" if self.built_from else "it is to send nothing"
        library = ("send", "recv", "header") if LIBRARY in self.built_from else ()
        for rank, operations in enumerate(run.operations):
            for op in operations:
                if op["call"] is not None and not library:
                    return f"rank {rank} used a collective of ringzero; {rule}"
                if op["kind"] not in (*self.built_from, *library, "barrier"):
                    return f"rank {rank} called {op['kind']}; {rule}"
        kinds = {op["kind"] for operations in run.operations for op in operations}
        if run.numel and run.world_size > 1 and not kinds & {*self.built_from, *library}:
            return "no rank sent anything"
        return runs.unwaited(run) or runs.unmatched(run)

    def _printed(self):
        """What the ranks printed, once for each launch."""
        texts = []
        for run in self._runs:
            for rank, text in enumerate(run.printed):
                lines = [line for line in text.splitlines() if not line.startswith(NOISE)]
                more = [f"… and {len(lines) - 20} lines more"] if len(lines) > 20 else []
                texts += [f"rank {rank} │ {line[:300]}" for line in (*lines[:20], *more)]
        return tuple(dict.fromkeys(texts))


@dataclass(frozen=True)
class Table:
    """The verdicts, as a notebook or a terminal shows them."""

    name: str
    rows: tuple
    points: float
    possible: float
    printed: tuple = ()

    def __repr__(self):
        lines = [f"{self.name}: {self.points:g} of {self.possible:g} points"]
        for row in self.rows:
            lines.append(f"  {'pass' if row.holds else 'FAIL'}  {row.points:4.2f}/{row.possible:4.2f}  {row.claim}")
            if row.reason:
                lines.append(f"                   {row.reason}")
        return "\n".join([*lines, *self.printed])

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
        return (
            f'<table class="ringzero-check"><caption style="text-align:left"><code>{html.escape(self.name)}</code>: '
            f"{self.points:g} of {self.possible:g} points</caption>"
            '<thead><tr><th style="text-align:left">check</th><th style="text-align:left">verdict</th>'
            '<th style="text-align:left">reason</th><th>points</th></tr></thead>'
            f"<tbody>{''.join(cells)}</tbody></table>{details}"
        )


def _show(table):
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        print(table)
        return
    if get_ipython() is None:
        print(table)
    else:
        display(table)


@contextlib.contextmanager
def _quiet():
    """No warnings and nothing on stderr: nbgrader gives a cell that wrote there no points."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
