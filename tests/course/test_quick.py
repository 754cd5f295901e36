"""`make quick` touches each room."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_quick_has_tests_of_each_room():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--quick"]
    plainly = os.environ | {"PYTEST_ADDOPTS": ""}
    said = subprocess.run(command, cwd=ROOT, env=plainly, capture_output=True, text=True, check=True).stdout
    rooms = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert set(re.findall(r"(?m)^tests/(\w+)/", said)) == rooms - {"gpu"}
