"""A lab behind Gradescope, by the same grader: the zip file it takes, and what its machine runs for a submission.

Gradescope unpacks the zip file into ``/autograder/source``, runs ``setup.sh`` once, and for each submission
``run_autograder``, which must write ``/autograder/results/results.json`` (its format: gradescope-autograders
.readthedocs.io/en/latest/specs).
"""

import json
import sys
from pathlib import Path

from ringzero.processes import durable
from ringzero_course.connect import one_submission

SETUP = """#!/usr/bin/env bash
set -euo pipefail
cd /autograder/source
apt-get update
apt-get install -y python3 python3-venv bubblewrap
make install
"""
RUN = """#!/usr/bin/env bash
cd /autograder/source
.venv/bin/python -m ringzero_course.connect.gradescope {lab} /autograder/submission /autograder/results {options}
"""


def write_zip(lab: str, file: Path, unsandboxed: bool) -> None:
    """The autograder of ``lab`` with all that it needs."""
    run = RUN.format(lab=lab, options="--unsandboxed" if unsandboxed else "")
    one_submission.write_zip(lab, file, {"setup.sh": SETUP, "run_autograder": run})


def results(graded: one_submission.Graded) -> dict:
    """What ``results.json`` holds."""
    return {
        "score": graded.score,
        "execution_time": round(graded.seconds),
        "output": "\n\n".join([graded.headline, *graded.sentences]),
        "stdout_visibility": "hidden",
        "tests": [
            {
                "name": part.name,
                "score": part.score,
                "max_score": part.possible,
                "output": part.reason,
                "visibility": "visible",
            }
            for part in graded.parts
        ],
    }


def main(arguments=None):
    """Grade, as ``run_autograder`` does. Without a score there is no file, which Gradescope shows as a failed run."""
    lab, submission, into, *options = arguments or sys.argv[1:]
    try:
        graded = one_submission.grade(lab, Path(submission), sandboxed="--unsandboxed" not in options)
    except one_submission.NotGradedError as error:
        print(f"Not graded, and no score was given: {error}", file=sys.stderr)
        return 1
    durable.write(Path(into) / "results.json", json.dumps(results(graded), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
