"""A lab behind GitHub Actions, by the same grader: two workflows, the files of a private repository, and what they run.

``python -m ringzero_course.connect.github_actions LAB FOLDER`` grades the one notebook in a folder. It writes the score
where a workflow shows it: into the summary of the run, and into the step's outputs ``score``, ``max_score`` and
``result``. The last is what autograding reporters read: JSON in base64, with ``version``, ``status``, ``max_score`` and
``tests``.
"""

import base64
import json
import os
import shutil
import sys
from pathlib import Path

from ringzero_course.connect import one_submission

HEAD = """name: Autograding Tests
on: {on}
permissions:
  contents: read
jobs:
  run-autograding-tests:
    runs-on: ubuntu-latest
    timeout-minutes: 45
    steps:
      - name: The submission
        uses: actions/checkout@v4
        with:{submission}
          path: submission
          persist-credentials: false
"""
GRADER = """      - name: The grader, from a repository that students cannot read
        uses: actions/checkout@v4
        with:
          repository: {grader}
          token: ${{{{ secrets.GRADER_TOKEN }}}}
          path: grader
          persist-credentials: false
"""
OWN_GRADER = """      - name: The grader
        uses: actions/checkout@v4
        with:
          path: grader
          persist-credentials: false
"""
STEPS = """      - name: What sandboxes need
        run: |
          sudo apt-get update
          sudo apt-get install -y bubblewrap
          sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 || true
      - uses: actions/cache@v4
        with:
          path: grader/.venv
          key: grader-${{{{ hashFiles('grader/requirements.txt', 'grader/constraints.txt', 'grader/pyproject.toml') }}}}
      - run: make -C grader install
      - name: Grade
        id: grade
        run: grader/.venv/bin/python -m ringzero_course.connect.github_actions {lab} submission
"""
ASKED = """
  workflow_dispatch:
    inputs:
      repository:
        description: The student's repository, as OWNER/NAME
        required: true"""
OF_A_STUDENT = """
          repository: ${{ inputs.repository }}
          token: ${{ secrets.STUDENTS_TOKEN }}"""


def write(lab: str, grader: str, folder: Path) -> None:
    """Into ``folder``: ``grader``, the files of the private repository of that name, and ``student``, the workflow of
    students' repositories."""
    for name, path in one_submission.bundle(lab).items():
        (folder / "grader" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / "grader" / name)
    own = HEAD.format(on=ASKED, submission=OF_A_STUDENT) + OWN_GRADER + STEPS.format(lab=lab)
    students = HEAD.format(on="[push, workflow_dispatch]", submission="") + (GRADER + STEPS).format(
        lab=lab, grader=grader
    )
    for place, text in (("grader", own), ("student", students)):
        file = folder / place / ".github" / "workflows" / f"{lab}.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def result(graded: one_submission.Graded) -> dict:
    """The score as autograding reporters read it."""
    return {
        "version": 1,
        "status": "pass" if all(part.score >= part.possible for part in graded.parts) else "fail",
        "max_score": graded.largest,
        "tests": [
            {
                "name": part.name,
                "status": "pass" if part.score >= part.possible else "fail",
                "score": part.score,
                "max_score": part.possible,
                "message": part.reason,
            }
            for part in graded.parts
        ],
    }


def summary(lab: str, graded: one_submission.Graded) -> str:
    """The score as Markdown."""
    lines = [f"## {lab}: {graded.score:g} of {graded.largest:g} points", "", f"{graded.headline}."]
    lines += [_one_line(sentence) for sentence in graded.sentences]
    lines += ["", "| part | points | what to look at |", "|---|---:|---|"]
    lines += [
        f"| {_one_line(part.name)} | {part.score:g} / {part.possible:g} | {_one_line(part.reason) or '✓'} |"
        for part in graded.parts
    ]
    return "\n".join(lines) + "\n"


def _one_line(text):
    """Text that may hold a student's words, as Markdown shows it in a table."""
    text = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#!&" else letter for letter in text)


def main(arguments=None):
    """Grade. Without a score nothing is written and the exit status is 1, so that the step shows as failed."""
    lab, submission = arguments or sys.argv[1:]
    try:
        graded = one_submission.grade(lab, Path(submission), sandboxed=True)
    except one_submission.NotGradedError as error:
        print(f"Not graded, and no score was given: {error}", file=sys.stderr)
        return 1
    encoded = base64.b64encode(json.dumps(result(graded)).encode()).decode()
    outputs = f"score={graded.score:g}\nmax_score={graded.largest:g}\nresult={encoded}\n"
    for variable, text in (("GITHUB_STEP_SUMMARY", summary(lab, graded)), ("GITHUB_OUTPUT", outputs)):
        if variable in os.environ:
            with open(os.environ[variable], "a") as file:
                file.write(text)
    print(summary(lab, graded))
    return 0


if __name__ == "__main__":
    sys.exit(main())
