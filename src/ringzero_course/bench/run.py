"""``ringzero run`` beside ``torchrun``: what watching over a script costs, in scripts of four well-known shapes."""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ringzero_course.bench import runner

SCRIPTS = ("ddp", "fsdp2", "nanogpt", "picotron")
RANKS = 2


def rows(scripts: tuple[str, ...] = SCRIPTS, steps: int = 60, repeats: int = 5) -> Iterator[runner.Row]:
    """What ``ringzero run`` adds to a step of a script that ``torchrun`` runs.

    For each script a row: the median step of each run, runs in turns; a ratio of 1 costs nothing.
    """
    from ringzero.ranks.torchrun import rank_environment

    programs, environment = Path(sys.executable).parent, rank_environment(RANKS)  # equal threads and memory for both
    ours = [f"{programs}/ringzero", "run", "--ranks", str(RANKS)]
    peer = [f"{programs}/torchrun", "--standalone", "--nproc-per-node", str(RANKS)]
    for name in runner.progress(scripts):
        script = [str(Path(__file__).parent / "scripts" / f"{name}.py"), "--steps", str(steps)]
        medians: tuple[list[float], list[float]] = ([], [])
        for _ in range(repeats):
            for command, found in zip((ours, peer), medians, strict=True):
                done = subprocess.run([*command, *script], capture_output=True, text=True, env=environment, check=True)
                said = next(line for line in done.stdout.splitlines() if line.startswith("seconds"))
                found.append(statistics.median(map(float, said.split()[1:])))
        yield runner.milliseconds(f"{name}, {RANKS} ranks", *medians, "torchrun")


command = runner.command(
    rows,
    scripts=(runner.names(SCRIPTS), f"Of {', '.join(SCRIPTS)}, or all."),
    steps=(runner.COUNT, "Of a run."),
    repeats=(runner.COUNT, "Runs of each."),
)
