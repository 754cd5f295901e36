"""What the grader says about one submission, beside its score."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ringzero.processes import durable
from ringzero_course.grading.readable import in_one_line

OK = "ok"  # every cell ran and none raised
STUDENT = "student fault"  # a cell raised, a check came back without a number, or the kernel died
LIMIT = "limit"  # time or output; a call whose ranks never came back
TAMPERING = "tampering"  # the kernel told the grader what no honest one tells: a person judges; the score stands
INVALID = "invalid submission"  # nothing to run: not a notebook, another name, duplicate cells
GRADER = "grader fault"  # our own bug, a full disk: never scored, the submission stays to be graded

KINDS = (OK, STUDENT, LIMIT, TAMPERING, INVALID, GRADER)  # from mild to grave
NEEDS_A_PERSON = (TAMPERING, INVALID, GRADER)
NO_SCORE = (INVALID, GRADER)  # what the gradebook holds then is no mark
FILENAME = "verdict.json"


@dataclass(frozen=True)
class Verdict:
    """``kind`` is one of KINDS; ``reason`` a sentence for the student; ``notes`` what else happened, cell by cell.

    Both may quote a student, and are made fit for a terminal.
    """

    kind: str
    reason: str = ""
    notes: list = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "reason", in_one_line(self.reason))
        object.__setattr__(self, "notes", [in_one_line(note) for note in self.notes])

    def __str__(self):
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def worst(verdicts):
    """The gravest of several notebooks' verdicts (the first of equals)."""
    return max(verdicts, key=lambda verdict: KINDS.index(verdict.kind))


def write(verdict, folder):
    """Write ``verdict.json`` into ``folder``, whole or not at all: for a rerun it is the sign of a finished grade."""
    durable.write(Path(folder) / FILENAME, json.dumps(asdict(verdict), indent=1))


def read(folder):
    """The verdict in ``folder``, or None when there is none that can be read."""
    try:
        return Verdict(**json.loads((Path(folder) / FILENAME).read_text()))
    except (OSError, ValueError, TypeError):
        return None
