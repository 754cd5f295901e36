"""Run a command that nothing else of this checkout may run beside: ``make`` puts it before each of its steps.

    python src/one_at_a_time.py COMMAND...

Two of ``make course`` at once take turns. Where the home folder cannot be written to, the command gets another, because
Jupyter, IPython and pip keep files there. Standard library only: it runs before anything is installed.
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(given=os.environ):
    """``given`` with a home that can be written to, or None where it has one."""
    if os.access(given.get("HOME") or os.path.expanduser("~"), os.W_OK):
        return None
    other = ROOT / "_build" / "home"
    other.mkdir(parents=True, exist_ok=True)
    return {**given, "HOME": str(other)}


def main(command):
    with open(ROOT / "Makefile") as turn:  # the lock ends with this process, however it ends
        try:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("make: another make is at work in this folder; this one goes on when that has ended.", flush=True)
                fcntl.flock(turn, fcntl.LOCK_EX)
            return subprocess.call(command, env=environment())
        except KeyboardInterrupt:
            print("\nmake: stopped. The next make goes on from here.", file=sys.stderr)
            return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
