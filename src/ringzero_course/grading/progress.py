"""A line for each submission as it is graded, and on a terminal a bar with the time left."""

import sys
import time
from collections.abc import Callable

from tqdm import tqdm


class Progress:
    """``outcome`` is called with a student's name, once that student is done, and says how it went.

    ``with Progress(total, outcome) as progress``, then ``progress.begin(student)`` for each in turn.
    """

    def __init__(self, total: int, outcome: Callable[[str], str]):
        self.outcome = outcome
        self.bar = tqdm(total=total, unit="", disable=None, file=sys.stderr, leave=False)
        self.number, self.total, self.student = 0, total, ""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._end()
        finally:
            self.bar.close()

    def begin(self, student: str) -> None:
        self._end()
        self.student, self.start = student, time.monotonic()
        self.number += 1
        self.bar.set_description_str(student)

    def _end(self) -> None:
        if self.student:
            seconds = time.monotonic() - self.start
            line = f"{self.number}/{self.total}  {self.student}  {self.outcome(self.student)}  ({seconds:.0f} s)"
            self.bar.update()
            tqdm.write(line, file=sys.stderr)
            self.student = ""
