"""Grade a course on a disk with less and less room missing: ``python -m tests.full_disk TOP KEPT``.

TOP is an empty folder on a small disk of its own, KEPT the course to copy there. Prints, as JSON, what each run said,
and what the course holds at the end of the last one, for which there was room.
"""

import json
import shutil
import sys
from pathlib import Path

from ringzero_course.grading import course as courses
from tests.grading.test_grading import LAB, command
from tests.killed_grader import held

ROOM = (0, 30_000, 100_000, 200_000, 400_000, 5_000_000)  # bytes free when a run begins


def main(top, kept):
    shutil.copytree(kept, top, dirs_exist_ok=True)
    said, fill = [], top / "fill"
    for room in ROOM:
        with open(fill, "wb") as file:
            file.write(bytes(max(0, shutil.disk_usage(top).free - room)))
        done = command("nbgrader", "autograde", LAB, top=top)
        said.append([done.returncode, done.stdout + done.stderr])
        fill.unlink()
    print(json.dumps({"said": said, "held": repr(held(courses.Course(top)))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
