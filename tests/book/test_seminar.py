"""The commands of the seminar's page do what it says: with two ranks on the CPU, one part of the page a commit."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.in_turn import in_turn

TOP = Path(__file__).resolve().parents[2]
FEWER_STEPS = ("--steps 100 --every 50", "--steps 6 --every 3")
PROMISED = {  # by the part of the page: a line for each command, in order
    "two ranks": [r"^2 ranks: 9\.4586 5\.1575 2\.6269 2\.0145$"] * 2,
    "what a collective costs": [r"all_reduce 1024 B, 2 ranks, auto"],
    "data-parallel training": [r"^2 ranks, [\d,]+ parameters", r"^1 ranks, [\d,]+ parameters"],
    "optimizer and memory": [r"stage 3 +parameters .*formula: 1\.00$"],
    "where the time goes": [r"^2 ranks, [\d,]+ parameters", r"^Traces of ranks 0 and 1, 3 steps, 9 to 11"],
}


def commands_by_part():
    """``{part: [command line]}`` of the page's sections with minutes, without what needs a person or a GPU."""
    found = {}
    for section in (TOP / "book/seminar.md").read_text().split("\n## ")[1:]:
        name = re.fullmatch(r"Minutes \d+ to \d+: (.*)", section.splitlines()[0])
        code = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
        lines = re.sub(r" *\\\n *", " ", code).splitlines()
        runs = [line for line in lines if re.match(r"(python|torchrun|ringzero) ", line)]
        if name and runs:
            found[name[1]] = [line.replace(" --backend nccl", "").replace(*FEWER_STEPS) for line in runs]
    return found


def test_each_part_of_the_page_is_promised_something():
    assert {part: len(lines) for part, lines in PROMISED.items()} == {
        part: len(lines) for part, lines in commands_by_part().items()
    }


def pytest_generate_tests(metafunc):
    if "part" in metafunc.fixturenames:
        metafunc.parametrize("part", in_turn(PROMISED, len(PROMISED)))


def test_the_commands_print_what_the_page_says(part, tmp_path):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for line, promised in zip(commands_by_part()[part], PROMISED[part], strict=True):
        words = line.replace(" traces", f" {tmp_path}/traces").replace("timeline.html", f"{tmp_path}/timeline.html")
        done = subprocess.run(
            words.split(), cwd=TOP, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert re.search(promised, done.stdout, re.MULTILINE), done.stdout + done.stderr
