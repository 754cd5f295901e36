"""Which runs there are, and where the run on N ranks first differs from the run of one process.

The program runs on N ranks, with random numbers of its own on each. Then it runs in one process that gets the same
samples, twice: a program that does not repeat itself cannot be compared. Where a gradient differs, it runs once more
for each rank, in one process that gets in this step what that rank had. What these gradients add up to shows what went
wrong. Where the ranks hang, and one process does not, that is the difference.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ringzero.ranks import RankError, RankTimeout, launch
from ringzero.same import causes
from ringzero.same.playing import play
from ringzero.same.program import ProgramError, joined
from ringzero.same.seen import Cause, Seen

# Relative to the largest element: far above what another order of summation changes, far below what a mistake does.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4, torch.float16: 2e-2, torch.bfloat16: 6e-2}
SECONDS = 120.0  # for a run


@dataclass(frozen=True)
class Verdict:
    """``same`` is whether N ranks trained as one process does; ``causes`` say why not, the most likely first.

    ``steps`` were compared, to ``tolerance`` of the largest element, in ``dtype`` ("as written" or "float64").
    """

    ranks: int
    steps: int
    dtype: str
    tolerance: float
    first: str = ""  # where they differ first, in words
    causes: list[Cause] = field(default_factory=list)

    @property
    def same(self) -> bool:
        return not self.first and not self.causes

    def __str__(self) -> str:
        how = f" ({self.dtype}, to {self.tolerance:g} of the largest element)" if self.steps else ""
        if self.same:
            return f"{self.ranks} ranks train as one process does: {self.steps} steps compared{how}."
        lines = [f"{self.ranks} ranks do not train as one process does{how}."]
        lines += [self.first] if self.first else []
        lines += [f"{cause.name}: {cause.sentence}" for cause in self.causes]
        if not self.causes:
            lines.append(
                "cause not known: compare the gradients of one parameter by hand, before and after the reduction."
            )
        return "\n".join(lines)


def compare(path: str | Path, step: str, *, ranks: int = 2, steps: int = 4, samples: str | None = None,
            as_written: bool = False, timeout: float = SECONDS) -> Verdict:  # fmt: skip
    """Train ``steps`` calls of ``step`` of the file ``path`` on ``ranks`` ranks and in one process, and compare.

    ``samples`` names what the file calls its batches; left out, the first of batches, loader, dataset, data, batch.
    Everything is computed in float64, where only mistakes differ, or ``as_written``; a program that insists on its own
    types is compared as written without being asked. ``timeout`` is in seconds, for each run.

    Raises ProgramError for a program that cannot be compared: one that draws other numbers each time, needs a GPU, or
    is too large; ValueError for fewer than 2 ranks or 1 step.
    """
    if ranks < 2 or steps < 1:
        raise ValueError(f"ranks is {ranks} and steps is {steps}; compare at least 2 ranks in at least 1 step")
    file = Path(path).resolve()
    if not file.is_file():
        raise ProgramError(f"there is no file {path}")

    def verdict() -> Verdict:
        def run(world_size: int, dtype: str | None, given: list | None = None) -> list[dict]:
            return _run((str(file), step, samples, steps, dtype, given), world_size, timeout)

        try:
            return _verdict(run, ranks, None if as_written else "float64")
        except ProgramError as error:
            if as_written or "dtype" not in str(error).lower() and "float" not in str(error).lower():
                raise
            return _verdict(run, ranks, None)  # it names types itself

    try:
        return verdict()
    except HangError as hang:
        try:
            _run((str(file), step, samples, 1, None, None), 1, timeout)
        except ProgramError:  # one process does no better
            raise hang from None
        return Verdict(ranks, 0, "as written", 0.0, f"{ranks} ranks wait for ever where one process does not.", [
            Cause("ranks that wait for ever", f"{hang.why} What decides about a step must be agreed on by all ranks")
        ])  # fmt: skip


class HangError(ProgramError):
    """Ranks that wait for one another for ever; ``why`` says which."""

    why: str


def _verdict(run: Callable, ranks: int, dtype: str | None) -> Verdict:
    many = run(ranks, dtype)
    one, again = (run(1, dtype, _whole(many))[0] for _ in range(2))
    eps = max(TOLERANCE.get(getattr(torch, kind), 0.0) for kind in one["facts"]["types"])
    found = Seen(many, one, eps)
    if (differs := Seen([again], one, eps).first_difference()) is not None:
        raise ProgramError(
            f"one rank does not repeat itself: {differs.words}. Seed every random number that the step draws, or "
            "compare the step without them"
        )
    if not one["taken"] and one["inputs"] == many[0]["inputs"] and any(n["inputs"] != one["inputs"] for n in many):
        raise ProgramError(
            "each rank reads samples of its own, from no DataLoader, so one process cannot be given those of all "
            "ranks. Let the step take a batch, and put a list 'batches' of whole batches into the file"
        )
    if one["drew"] and causes.repeated_samples(found) is None:
        raise ProgramError(
            f"the step draws random numbers ({one['drew']}), so N ranks draw others than one process: switch the noise "
            "or augmentation off to compare"
        )
    first = found.first_difference()
    failed = [f"rank {rank} fails with {note['failed']}" for rank, note in enumerate(many) if note["failed"]]
    failed += [f"one process fails with {one['failed']}"] if one["failed"] else []
    if failed and (first is None or first.what == "order"):
        raise ProgramError(f"the program does not end: {failed[0]}")
    if first is not None and first.event is not None:
        found.shares = _shares(run, dtype, many, found.before(first.event))
    return Verdict(
        ranks, _steps(one["events"]), "float64" if dtype else "as written", eps,
        " Then ".join([first.words if first else "", *failed[:1]]), causes.of(found, first),
    )  # fmt: skip


def _run(arguments: tuple, world_size: int, timeout: float) -> list[dict]:
    """What each rank noted. Raises ProgramError where the program fails, hangs or is refused."""
    where = f"on {world_size} ranks" if world_size > 1 else "in one process"
    try:
        notes = launch(play, *arguments, world_size=world_size, device="cpu", timeout=timeout).returns
    except (RankError, RankTimeout) as error:
        said = f"the program does not end {where}: {error}"
        if isinstance(error, RankTimeout) and error.deadlocked:
            hang = HangError(said)
            hang.why = str(error).splitlines()[0].rstrip(".") + "."
            raise hang from None
        raise ProgramError(said) from None
    for note in notes:
        if "refused" in note:
            raise ProgramError(note["refused"])
    if not any(
        tensors for note in notes for event in note["events"] for tensors in map(event.get, ("raw", "parameters"))
    ):
        raise ProgramError(
            f"nothing can be compared {where}: the step called no model with parameters, and no optimizer"
        )
    return notes


def _steps(events: list[dict]) -> int:
    """Of the optimizers; of a program without any, its calls."""
    return sum(event["kind"] == "step" for event in events) or len(events)


def _whole(many: list[dict]) -> list[Any]:
    """The batches of all ranks, joined: what one process gets."""
    return [joined(list(parts)) for parts in zip(*(note["taken"] for note in many), strict=False)]


def _shares(run, dtype, many, taken):
    """For each rank a run of one process that from the batch ``taken`` on gets what that rank had."""
    whole = _whole(many)
    if len(whole) <= taken:
        return []
    shares = []
    for note in many:
        try:
            shares.append(run(1, dtype, [*whole[:taken], *note["taken"][taken:]])[0])
        except ProgramError:
            return []
    return shares
