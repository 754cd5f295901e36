"""Runs parts one after the other, each in a process of its own, and writes the record after each of them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from ringzero import processes
from ringzero.measure.gpu.parts import Part

MARK = "RINGZERO_GPU_PART"  # in the environment of a part's processes: ranks have sessions of their own
LEAST = 5.0  # seconds: with less left no part begins
SHOWN = 20_000  # characters of a failed part's last output


def run(
    parts: Sequence[Part],
    chosen: Collection[str],
    record: dict[str, Any],
    path: Path,
    seconds: float,
    device: str = "cuda",
    say: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Run the ``chosen`` of ``parts`` within ``seconds`` in all, put them into ``record["parts"]`` and write that.

    A part is ``{"status", "why", "seconds", "rows"}``. The status is "ok"; "failed"; "time", when it was not done
    within its limit, with the rows that it had; or "skipped". Whatever interrupts this call, what was done is written.
    """
    end = time.monotonic() + seconds
    record["parts"] = {}
    for part in parts:
        limit, start = min(part.limit, end - time.monotonic()), time.monotonic()
        found: dict[str, Any] = {"status": "failed", "why": "interrupted", "rows": []}
        try:
            if part.name not in chosen:
                found = {"status": "skipped", "why": "left out by --only or --skip", "rows": []}
            elif limit < LEAST:
                found = {"status": "skipped", "why": f"the {seconds:g} s for all parts were over", "rows": []}
            else:
                found = in_its_process(part, limit, device)
        finally:
            record["parts"][part.name] = {**found, "seconds": round(time.monotonic() - start, 1)}
            write(record, path)
        if part.name in chosen:
            why = f": {found['why']}" if found["why"] else ""
            say(f"{part.name:12}{found['status']:9}{time.monotonic() - start:6.1f} s  {len(found['rows'])} rows{why}")
    return record


def in_its_process(part: Part, limit: float, device: str) -> dict[str, Any]:
    """``{"status", "why", "rows"}`` of a part. Nothing that it started is left."""
    with tempfile.TemporaryDirectory(prefix="rz-gpu-") as folder:
        rows, output, mark = Path(folder, "rows"), Path(folder, "output"), f"{os.getpid()}/{part.name}"
        command = [sys.executable, "-m", "ringzero.measure.gpu.child", part.rows, str(rows), device]
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        environment = os.environ | {MARK: mark, "PYTHONUNBUFFERED": "1", "PATH": programs}
        with output.open("wb") as out:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True
            )
            in_time = False
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(limit)
                    in_time = True
            finally:
                processes.end(lambda: processes.marked(MARK, mark))
                child.kill()
                child.wait()
        lines = read_lines(rows)
        said = output.read_text(errors="replace").strip()
    kind, why = lines.pop() if lines and lines[-1][0] != "row" else ("failed", None)
    if not in_time:
        kind, why = "time", f"not done within {limit:.0f} s"
    elif kind == "failed":
        print(said[-SHOWN:], file=sys.stderr)
        why = why or f"its process ended {_in_words(child.returncode)}; its last line: {said.splitlines()[-1:]}"
    return {"status": kind, "why": why, "rows": [row for _, row in lines]}


def _in_words(status: int) -> str:
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"


def read_lines(path: Path) -> list[list[Any]]:
    """What a part wrote until it ended; a line that it did not finish is left out."""
    found = []
    with contextlib.suppress(FileNotFoundError, ValueError):
        for line in path.read_text().splitlines():
            found.append(json.loads(line))
    return found


def write(record: dict[str, Any], path: Path) -> None:
    """Write the record in one piece: whoever reads it meanwhile has the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(record, indent=1) + "\n")
    beside.replace(path)
