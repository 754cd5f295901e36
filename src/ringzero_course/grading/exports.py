"""A class's grades for a spreadsheet and for Canvas. A score that is not final is an empty place, never a 0."""

import csv
from typing import TextIO

from ringzero_course.grading import needs

COLUMNS = ("student", "name", "score", "so far", "out of", "penalty", "late hours", "waits for a person", "verdict")


def write_csv(file: TextIO, graded: dict, handed_in: set[str]) -> None:
    """A line for each student. "so far" counts what waits for a grade as 0; "score" is empty until it is final."""
    rows = csv.writer(file)
    rows.writerow(COLUMNS)
    for student in sorted(handed_in | graded.keys()):
        grade = graded.get(student)
        if grade is None:
            rows.writerow([student, *[""] * 6, needs.NOT_GRADED, "not graded"])
            continue
        final = needs.is_final(grade)
        late = round(grade.late_seconds / 3600, 2)
        why = "; ".join(needs.reasons(grade))
        numbers = [grade.score if final else "", grade.score, grade.largest, grade.penalty, late]
        rows.writerow([student, grade.name, *numbers, why, grade.verdict.kind])


def write_canvas(file: TextIO, lab: str, graded: dict) -> None:
    """What Canvas's gradebook imports. It leaves a student's grade alone where the place is empty."""
    rows = csv.writer(file)
    rows.writerow(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", lab])
    largest = max((grade.largest for grade in graded.values()), default="")
    rows.writerow(["    Points Possible", "", "", "", "", largest])
    for student in sorted(graded):
        grade = graded[student]
        score = grade.score if needs.is_final(grade) else ""
        rows.writerow([grade.name or student, grade.lms_id, "", student, "", score])
