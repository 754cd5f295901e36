"""Who needs a person, and why; and whether a score is final."""

from typing import Any

from ringzero_course.grading import verdict

NOT_GRADED = "not graded: run nbgrader autograde"


def reasons(grade: Any) -> list[str]:
    """Why a person looks at this ``Grade``, a sentence each; none where nobody needs to."""
    found = []
    if grade.verdict.kind in (*verdict.NEEDS_A_PERSON, verdict.LIMIT):
        found.append(str(grade.verdict))
    found += [f"{cell} waits for a grade" for cell in grade.manual]
    found += [f"{cell} ran and left no table of its checks" for cell in grade.without_table]
    if grade.late_seconds > 0:
        penalty = f"{grade.penalty:g} points off" if grade.penalty else "no points off"
        found.append(f"late by {duration(grade.late_seconds)}, {penalty}")
    return found


def of_class(graded: dict, handed_in: set[str]) -> dict[str, list[str]]:
    """``{student: reasons}`` of those who need a person, in order of their names."""
    found = dict.fromkeys(handed_in - graded.keys(), [NOT_GRADED]) | {name: reasons(graded[name]) for name in graded}
    return {name: found[name] for name in sorted(found) if found[name]}


def is_final(grade: Any) -> bool:
    """Whether the score may go into a list of marks: nothing waits, and the submission could be graded."""
    return not grade.manual and not grade.without_table and grade.verdict.kind not in verdict.NO_SCORE


def duration(seconds: float) -> str:
    """ "2 days 3 h", "5 h", "12 min"."""
    minutes = max(1, round(seconds / 60))
    if minutes < 120:
        return f"{minutes} min"
    hours = round(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{hours // 24} days" + (f" {hours % 24} h" if hours % 24 else "")
