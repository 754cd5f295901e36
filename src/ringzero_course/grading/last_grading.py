"""What is remembered of the last grading of a submission: ``course/graded/STUDENT/LAB.json``.

It is written after the gradebook and before the verdict. It lies apart from ``autograded/``, whose files nbgrader
copies into the student's feedback, and it outlives a grading that was cut short: so a regrade can say what changed.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ringzero.processes import durable


@dataclass(frozen=True)
class Outcome:
    """``cells`` is ``{grade_id: [score, max]}``, ``verdict`` its kind."""

    cells: dict
    verdict: str

    @property
    def score(self) -> float:
        return sum(score for score, _ in self.cells.values())

    @property
    def largest(self) -> float:
        return sum(largest for _, largest in self.cells.values())


@dataclass(frozen=True)
class LastGrading:
    """``fingerprint`` is what the ``outcome`` depends on; ``without_table`` names the test cells that left no table.

    After a regrade, ``before`` is the earlier outcome and ``why`` what had changed. ``told`` is false until the
    verdict is written and, after a regrade, the change was said and the feedback renewed.
    """

    fingerprint: dict
    outcome: Outcome
    without_table: list = field(default_factory=list)
    before: Outcome | None = None
    why: list = field(default_factory=list)
    told: bool = True


def path_of(root: Path, student: str, lab: str) -> Path:
    """Where it lies in the course directory ``root``."""
    return root / "graded" / student / f"{lab}.json"


def write(last: LastGrading, path: Path) -> None:
    durable.write(path, json.dumps(asdict(last), indent=1))


def read(path: Path) -> LastGrading | None:
    """None where there is none that can be read."""
    try:
        data = json.loads(path.read_text())
        before = data.pop("before")
        outcome = Outcome(**data.pop("outcome"))
        return LastGrading(outcome=outcome, before=before and Outcome(**before), **data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def what_changed(student: str, last: LastGrading) -> str:
    """A sentence on a regrade: "ada: 28 → 31 of 34 (test_ring: 2 → 5); graded again because the submission changed"."""
    assert last.before is not None
    old, new = last.before, last.outcome
    cells = [
        f"{name}: {_points(old.cells, name)} → {_points(new.cells, name)}"
        for name in {**old.cells, **new.cells}
        if old.cells.get(name) != new.cells.get(name)
    ]
    if cells:
        said = f"{old.score:g} → {new.score:g} of {new.largest:g} ({', '.join(cells)})"
    else:
        said = f"the same score, {new.score:g} of {new.largest:g}"
    if old.verdict != new.verdict:
        said += f"; {old.verdict} → {new.verdict}"
    why = f"because {' and '.join(last.why)} changed" if last.why else "because you asked for it"
    return f"{student}: {said}; graded again {why}"


def _points(cells: dict, name: str) -> str:
    return f"{cells[name][0]:g}" if name in cells else "none"
