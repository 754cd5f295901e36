"""Checks that say what they check: a table of claims with reasons, and the points they add up to.

    check = Check("ring_all_reduce", points=4, world_size=WORLD_SIZE, device=DEVICE)
    even = check.run(numel=12_000)                     # the function, on every rank, on fresh random input
    check.that("every rank has the sum", even, claims.everyone_has_the_sum)
    check.that("every message goes to a ring neighbour", even, traffic.neighbours_only)
    check.score()                                      # shows the table; ends in a number, which nbgrader takes

A claim is a function of a ``Run`` that returns None, or the reason why it does not hold. All runs are made when the
score is asked for, in one launch for each number of ranks. Whatever the function does (raises, hangs, returns nonsense)
is a claim that does not hold and a reason in the table, never a traceback. What the student's code did not cause is no
reason: ``score`` raises GraderFault.
"""

import contextlib
import dataclasses
import io
import random
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from ringzero.ranks import devices
from ringzero_course.lab import execute, failure, handle, hidden
from ringzero_course.lab.claims.traffic import Traffic
from ringzero_course.lab.parameters import GraderFault, cells_that_ran
from ringzero_course.lab.runs import BY_HAND, NOT_RUN, Case, Claim, Run
from ringzero_course.lab.specification import Rows, Specification
from ringzero_course.lab.table import Table, Verdict, half_hidden, rows_of

# Gloo's last words, which the reason has in plain English, and what torch says of each pair's first message on NCCL.
NOISE = re.compile(r"terminate called after throwing|  what\(\):|.*ProcessGroupNCCL\.cpp:\d+\] Warning: An unbatched")


class Check:
    """The checks of one function, worth ``points`` together: each claim its share by weight.

    ``function``    its name in the notebook (the newest definition counts), or the function itself
    ``harness``     what is called on the ranks instead of the function, with the function as its first argument
    ``uses``        names of more functions of the notebook, for the harness: its next arguments
    ``built_from``  the operations it may use; a run that used others proves nothing, and no claim about it holds.
                    A barrier is one of them, unless these are sends and receives alone
    ``ranks``       how many ranks a run gets that does not say; by default ``world_size``, or 1 for a function of
                    plain values without a harness

    ``world_size`` and ``device`` are the lab's parameters.
    """

    def __init__(
        self,
        function: str | Callable,
        points: float,
        world_size: int,
        device: str = "auto",
        built_from: tuple[str, ...] = BY_HAND,
        *,
        harness: Callable | None = None,
        uses: tuple[str, ...] = (),
        ranks: int | None = None,
    ):
        self.name = function if isinstance(function, str) else getattr(function, "__name__", "the function")
        self.points, self.world_size, self.device, self.built_from = points, world_size, device, built_from
        self.verdicts: list[Verdict] = []  # filled by ``score``
        self._students, self._harness, self._ranks = (function, *uses), harness, ranks
        self._rows: Rows | None = None  # of the specification: behind those that were declared
        self._globals: tuple[str, ...] = ()  # which the function assigns to
        self._runs: list[Run] = []
        self._twins: list[tuple[Run, Claim]] = []  # by NCCL's rules
        self._made: list[Run] = []  # those that ran
        self._claims: list[tuple[str, list[Run], Claim, float, bool]] = []  # the last: hidden
        self._cases: dict[str, bool] = {}  # in words, of each run that was declared: whether only in hidden tests

    def run(
        self,
        *args: Any,
        numel: int | None = None,
        dtype: torch.dtype = torch.float32,
        ranks: int | None = None,
        **options: Any,
    ) -> Run:
        """Declare a call of the function on every rank and return its ``Run``.

        With ``numel``, its first argument is a new 1-D tensor, different on each rank; ``args`` and ``options`` follow.
        Without, it is a function of plain values. ``ringzero.ranks.devices`` says on what so many ranks run. Sums over
        ranks have one result in every order.
        """
        on_all = numel is not None or self._harness is not None
        ranks = ranks or self._ranks or (self.world_size if on_all else 1)
        of = hidden.secret if hidden.is_declared_hidden() else ""
        seed = zlib.crc32(f"{of}{self.name} {len(self._runs)}".encode())
        strict = devices.is_strict(devices.of_a_check(self.device, ranks))
        run = Run(Case(ranks, numel, dtype, args, options, seed, strict=strict))
        self._runs.append(run)
        self._cases[str(run.case)] = self._cases.get(str(run.case), True) and hidden.is_declared_hidden()
        return run

    def runs(self, *args: Any, ranks: Iterable[int], **options: Any) -> list[Run]:
        """Declare a run for each number in ``ranks``. An option that is a function of N is called with that number."""
        return [
            self.run(*args, ranks=n, **{name: of(n) if callable(of) else of for name, of in options.items()})
            for n in ranks
        ]

    def meets(self, specification: Callable[..., Rows]) -> None:
        """Check what a ``specification`` says, in the cases that students see: see ``lab.specification``."""
        settings = getattr(specification, "settings", {})
        self._harness, self._ranks = settings.get("harness", self._harness), settings.get("ranks", self._ranks)
        self.built_from = settings.get("built_from", self.built_from)
        self._students = (self._students[0], *settings.get("uses", self._students[1:]))
        self._rows = specification(self)
        next(self._rows)

    def is_the(self, collective: str, traffic: Traffic, **options: Sequence[Any]) -> None:
        """Check that the function is this ``collective``, with this ``traffic``: see ``lab.specification``.

        It takes the ``options``, of each one value in turn.
        """
        self.meets(lambda check: Specification(check, collective, traffic, options).rows())

    def hidden_cases(self) -> None:
        """Check the same in cases that follow from the course's secret. It stands where tests are hidden."""
        assert self._rows is not None
        with contextlib.suppress(StopIteration):
            self._rows.send(random.Random(f"{hidden.secret} {self.name}"))

    def on_nccl(self, run: Run, claim: Claim, weight: float = 0.5) -> None:
        """Check that ``claim``, which holds for ``run``, would hold on NCCL too: the same call by NCCL's rules.

        A function can be right on gloo and hang on NCCL, or give wrong numbers there (``ringzero.strict``). One that is
        wrong on gloo is not called again.
        """
        twin = run
        if not run.case.strict:
            twin = Run(dataclasses.replace(run.case, strict=True), twin=run)
            self._runs.append(twin)
            self._twins.append((twin, claim))
        text = "the same by the rules of NCCL"
        self._claims.append((text, [twin], claim, weight, hidden.is_declared_hidden()))

    def that(self, text: str, runs: Run | Iterable[Run], claim: Claim, weight: float = 1) -> None:
        """Check that ``claim`` holds for a run, or for each of several runs."""
        runs = [runs] if isinstance(runs, Run) else list(runs)
        self._claims.append((text, runs, claim, weight, hidden.is_declared_hidden()))

    def score(self) -> float:
        """Make the runs, show the table and return the points, a number from 0 to ``points``.

        Raises GraderFault where the machine or the check itself failed.
        """
        with _quiet():
            self._execute()
            self.verdicts = [self._judge(*claim) for claim in self._claims]
        if self._of_plain_values():
            self.verdicts = half_hidden(self.verdicts)
        rows, points = rows_of(self.verdicts, self.points)
        shown, unseen = (tuple(case for case in self._cases if self._cases[case] is flag) for flag in (False, True))
        printed, ran, more = self._printed(), self._ran(), _more_to_come()
        Table(self.name, rows, points, self.points, printed, ran, more, shown, unseen).show()
        return points

    def _of_plain_values(self):
        """Whether the function gives a value for values: then one that knows the cases it was shown passes in these."""
        sends_nothing = self._harness is None or not self.built_from
        return sends_nothing and all(run.numel is None for run in self._runs)

    def _execute(self):
        todo, ended = [run for run in self._runs if run.problem == NOT_RUN], []
        students = [handle.of(function) for function in self._students]
        self._globals = students[0].globals
        # Few ranks first: they have a core each, and tell a loop without an end in seconds. A single one comes after
        # them, since what hangs there alone may be right on several. And gloo before NCCL's rules.
        groups = {(run.case.strict, run.world_size == 1, run.world_size) for run in todo}
        for strict, _, ranks in sorted(groups):
            some = [run for run in todo if (run.case.strict, run.world_size) == (strict, ranks)]
            for run, claim in self._twins:
                if strict and run.world_size == ranks:
                    run.wrong_on_gloo = self._why_not(run.twin, claim)
            some = [run for run in some if run.wrong_on_gloo is None]
            self._made += some
            try:
                execute.execute(some, students, self._harness, self._device_of(ranks, strict), ended)
            except GraderFault:
                raise
            except Exception as error:  # ours, not the student's
                raise GraderFault(f"the check itself failed ({type(error).__name__}: {error}); report this") from error

    def _device_of(self, ranks, strict):
        device = devices.of_a_check(self.device, ranks)
        return devices.STRICT if strict and not devices.is_strict(device) else device

    def _judge(self, text, runs, claim, weight, is_hidden):
        reasons = (self._why_not(run, claim) for run in runs)
        return Verdict(text, next((why for why in reasons if why is not None), None), weight, is_hidden)

    def _why_not(self, run, claim):
        if run.wrong_on_gloo is not None:
            return run.wrong_on_gloo
        ran = run.twin is not None and not (run.problem or "").startswith("not run")
        place = "right on gloo, wrong on NCCL" if ran else f"with {run.case}"
        says_nothing = str(run.case) == "()" or run.problem == failure.not_written(self.name)
        where = "" if says_nothing else f"{place}: "
        problem = run.problem or failure.nothing_proved(run, self.built_from)
        if problem is None:
            try:
                problem = claim(run)
            except Exception as error:
                problem = f"what came back cannot be checked ({type(error).__name__}: {error})"
        return None if problem is None else where + problem + self._kept_between_calls(run)

    def _kept_between_calls(self, run):
        """Where a run ended and is wrong: whether the function assigns to globals, which live on to the next call."""
        if run.problem is not None or not self._globals:
            return ""
        return f"; {self.name} assigns to the global {', '.join(self._globals)}, which keeps its value between calls"

    def _ran(self):
        """On what the runs were made: "4, 2 ranks: gloo, CPU"."""
        where: dict[str, list[int]] = {}
        for run in self._made:
            device = self._device_of(run.world_size, run.case.strict)
            ranks = where.setdefault(devices.in_words(device), [])
            ranks += [] if run.world_size in ranks else [run.world_size]
        return "; ".join(
            f"{', '.join(map(str, ranks))} {'rank' if ranks == [1] else 'ranks'}: {words}"
            for words, ranks in where.items()
        )

    def _printed(self):
        """What the ranks printed, once for each launch."""
        texts = []
        for run in self._runs:
            for rank, text in enumerate(run.printed):
                lines = [line for line in text.splitlines() if not NOISE.match(line)]
                more = [f"… and {len(lines) - 20} lines more"] if len(lines) > 20 else []
                texts += [f"rank {rank} │ {line[:300]}" for line in (*lines[:20], *more)]
        return tuple(dict.fromkeys(texts))


def _more_to_come():
    """In a test cell as students get it, what is to be said beside its points."""
    cell = (cells_that_ran() or [""])[-1]
    return "; hidden tests follow at hand-in" if ".score()" in cell and hidden.BEGIN not in cell else ""


@contextlib.contextmanager
def _quiet():
    """No warnings and nothing on stderr: nbgrader gives a cell that wrote there no points."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
