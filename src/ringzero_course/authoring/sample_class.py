"""The sample class under ``tests/sample_class``, graded in a course directory of its own.

``python -m ringzero_course.authoring.sample_class`` prints the grade table and compares it with the committed one.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path

from ringzero_course.authoring import submission
from ringzero_course.boxes import sandbox
from ringzero_course.grading import build_labs
from ringzero_course.grading.course import CONFIG, GRADEBOOK, Course, repository, table

SAMPLE = "sample_"  # the sample students' names start so; others are never touched


def sample_class(lab, folder):
    """``{student: (content, file name)}`` from ``folder``: replacements to build a notebook from, or whole files."""
    found = {}
    for path in sorted(folder.iterdir()):
        student = SAMPLE + path.stem
        if path.suffix == ".py":
            head = path.read_text().split("# %%")[0]
            filled = "# rest: as handed out" not in head.splitlines()
            name = re.search(r"^# file name: (\S+)$", head, re.MULTILINE)
            notebook = submission.submission(lab, submission.read_replacements(path, lab), filled=filled)
            found[student] = (notebook, name and name[1])
        elif path.suffix == ".ipynb":
            found[student] = (path.read_bytes(), None)
    return found


def differences(expected, grades):
    """Sentences on where ``grades`` are not as in ``expected`` (of ``expected.json``)."""
    found = []
    for student in sorted({*expected, *grades}):
        if student not in grades:
            found.append(f"{student}: expected, not graded")
        elif student not in expected:
            found.append(f"{student}: graded, not expected")
        else:
            want, got = expected[student], grades[student].as_data()
            for name in {**want["cells"], **got["cells"]}:
                if want["cells"].get(name) != got["cells"].get(name):
                    found.append(f"{student}, {name}: expected {want['cells'].get(name)}, got {got['cells'].get(name)}")
            for name in ("score", "max", "verdict"):
                if want[name] != got[name]:
                    found.append(f"{student}, {name}: expected {want[name]}, got {got[name]}")
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m ringzero_course.authoring.sample_class", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--lab", default="02_ring_allreduce")
    parser.add_argument("--into", type=Path, metavar="DIR", help="make its course in DIR; by default in sample_class")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="grade these sample students alone, such as perfect")
    parser.add_argument("--update", action="store_true", help="write the table found as the expected one")
    options = parser.parse_args(arguments)
    try:
        top = repository()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    lab, folder = options.lab, top / "tests" / "sample_class"
    os.environ.pop(GRADEBOOK, None)  # these students are no one's class, so they go to no server
    course = Course((options.into or top / "sample_class").resolve())
    course.top.mkdir(exist_ok=True)
    shutil.copy(top / CONFIG, course.top)
    students = sample_class(lab, folder)
    expected = json.loads((folder / "expected.json").read_text())
    if options.only:
        chosen = {SAMPLE + name for name in options.only}
        if strangers := chosen - students.keys():
            known = ", ".join(name.removeprefix(SAMPLE) for name in students)
            print(f"no sample student {', '.join(sorted(strangers))}; there are {known}", file=sys.stderr)
            return 2
        students = {name: content for name, content in students.items() if name in chosen}
        expected = {name: grade for name, grade in expected.items() if name in chosen}
    for student in {*students, *(path.name for path in (course.root / "submitted").glob(f"{SAMPLE}*"))}:
        course.forget(student)
    course.hand_out(lab, build_labs.source_notebook(lab))
    for student, (content, name) in students.items():
        course.submit(student, lab, content, name)
    course.autograde(lab, f"{SAMPLE}*")
    grades = course.grades(lab, students)
    if not grades:
        log = course.root / "nbgrader.log"
        print(f"Nothing was graded. The end of {log}:\n{log.read_text()[-2000:]}", file=sys.stderr)
        return 1
    course.feedback(lab, f"{SAMPLE}*")
    print(table(grades, lab))
    print(f"\nFeedback: {course.root / 'feedback'}/STUDENT/{lab}/{lab}.html   log: {course.root / 'nbgrader.log'}")
    if missing := sandbox.missing_ability():
        what, seen, fix = missing
        print(f"No sandboxes here: {what}, {seen}. These submissions are the course's own; for a real class: {fix}")
    path = folder / "expected.json"
    if options.update:
        found = json.loads(path.read_text()) | {name: grade.as_data() for name, grade in grades.items()}
        path.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
        return 0
    found = differences(expected, grades)
    if found:
        print(f"\nNot as in {path.relative_to(top)}:\n  " + "\n  ".join(found), file=sys.stderr)
        return 1
    print(f"As in {path.relative_to(top)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
