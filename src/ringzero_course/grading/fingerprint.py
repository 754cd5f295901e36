"""What a grade depends on, as hashes: two equal fingerprints need no second grading.

``timestamp.txt`` is no part of it: it says how late a submission is, and that is worked out anew in each run.
"""

import hashlib
import json
import stat
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

# Words for the parts, as they stand behind "graded again because … changed".
SUBMISSION, RELEASE, PACKAGE, PARAMETERS = "the submission", "the release", "the ringzero package", "the parameters"

_NOT_GRADING = ("bench", "commands")  # rooms that no lab and no grader imports
_TIMESTAMP = "timestamp.txt"


def fingerprint(submission: Path, cells: Iterable[Mapping[str, Any]], parameters: Any) -> dict[str, str]:
    """The fingerprint of the folder ``submission``, graded by the release's ``cells`` with ``parameters`` (as JSON)."""
    return {
        SUBMISSION: of_folder(submission, leave_out=_TIMESTAMP),
        RELEASE: _of_data(list(cells)),
        PACKAGE: of_package(),
        PARAMETERS: _of_data(parameters),
    }


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The parts that are not the same."""
    return [part for part in new if old.get(part) != new[part]]


def of_folder(folder: Path, leave_out: str = "") -> str:
    """Names and contents of all that lies in ``folder``. Links count by where they point, and are not followed."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        mode = path.lstat().st_mode
        if name == leave_out or stat.S_ISDIR(mode):
            continue
        if stat.S_ISREG(mode):
            with open(path, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            content = str(path.readlink()) if stat.S_ISLNK(mode) else "neither a file nor a link"
        whole.update(f"{name}\0{content}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


@cache
def of_package() -> str:
    """The sources that labs and grading run, so an edit counts as well as a new version."""
    top = Path(__file__).resolve().parents[2]
    whole = hashlib.sha256()
    for path in sorted([*top.glob("ringzero/**/*.py"), *top.glob("ringzero_course/**/*.py")]):
        name = path.relative_to(top)
        if name.parts[1] not in _NOT_GRADING:
            whole.update(f"{name.as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return whole.hexdigest()


def _of_data(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=_as_json).encode()).hexdigest()


def _as_json(value):
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)  # a set has no order
