"""``tests/gpu`` by pytest: a row for each test as soon as it is over."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ringzero.measure.gpu.parts import Skip

ROOT = Path(__file__).resolve().parents[4]
RESULT = re.compile(r"(tests/gpu/\S+::.+) (PASSED|FAILED|ERROR|SKIPPED)\b")
CHOSEN = {"one rank": "not two and not labs", "two ranks": "two", "labs": "labs"}  # each test is one of these


def one_rank(device: str) -> Iterator[dict[str, Any]]:
    """Tests that need one rank, and those without ranks."""
    return run("one rank")


def two_ranks(device: str) -> Iterator[dict[str, Any]]:
    """Tests of two ranks: they share a GPU if there is only one."""
    return run("two ranks")


def labs(device: str) -> Iterator[dict[str, Any]]:
    """Each lab's solution, with two ranks."""
    return run("labs")


def run(which: str) -> Iterator[dict[str, Any]]:
    """``{"test", "result", "seconds"}`` of each. Raises RuntimeError with what pytest said if one did not pass."""
    if not (ROOT / "tests/gpu").is_dir():
        raise Skip("tests/gpu is not here: the package was installed without its repository")
    pytest = [sys.executable, "-m", "pytest", "tests/gpu", "-v", "--tb=short", "--durations=1", "-k", CHOSEN[which]]
    said, start = [], time.monotonic()
    with subprocess.Popen(
        pytest, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            said.append(line)
            if found := RESULT.match(line):
                test = found[1].removeprefix("tests/gpu/").strip()
                yield {"test": test, "result": found[2].lower(), "seconds": round(time.monotonic() - start, 1)}
                start = time.monotonic()
    if running.returncode:
        print("".join(said)[-20_000:], file=sys.stderr)
        wrong = [line.strip() for line in said if re.match(r"(FAILED|ERROR) ", line)]
        raise RuntimeError(f"pytest ended with status {running.returncode}: {'; '.join(wrong) or said[-1].strip()}")
