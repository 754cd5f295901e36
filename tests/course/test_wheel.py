"""The wheel, installed where nothing else is: the library and its commands work, and say which extra they lack.

The environment is a new one. It sees of this one's packages only those that the wheel, or the wheel with an extra,
asks for, and those that they ask for in turn: each as a link, for to install torch anew takes minutes.
"""

import ast
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ringzero import cli
from tests.generated_profiles import Job, on_gpus, save

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ringzero"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = [
    *PROJECT["dependencies"],
    *(f'{line}; extra == "{extra}"' for extra, lines in PROJECT["optional-dependencies"].items() for line in lines),
]


def brought(extra: str = "") -> set[str]:
    """The distributions that ``pip install "ringzero[extra]"`` brings."""
    found: set[str] = set()
    to_see = [("ringzero", frozenset({extra}))]
    for name, extras in to_see:  # grows while it is walked
        for asked in map(Requirement, OURS if name == "ringzero" else importlib.metadata.requires(name) or []):
            wanted = not asked.marker or any(asked.marker.evaluate({"extra": each}) for each in {"", *extras})
            if wanted and (asked.name, frozenset(asked.extras)) not in to_see:
                to_see.append((asked.name, frozenset(asked.extras)))
                found.add(_canonical(asked.name))
    return found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built in a copy of what it is built from, so that no folder ``build`` is left here."""
    here = tmp_path_factory.mktemp("wheel")
    shutil.copytree(PACKAGE, here / "src" / "ringzero", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, here)
    build = "from setuptools.build_meta import build_wheel; build_wheel('.')"
    done = subprocess.run([sys.executable, "-c", build], cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(here.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """``run(*words, extra="")`` runs a command where the wheel is installed with that extra, and nothing else is."""
    environments: dict[str, Path] = {}

    def run(*words, extra="", ends_with=0):
        if extra not in environments:
            environments[extra] = new_environment(wheel, brought(extra), tmp_path_factory.mktemp("environment"))
        programs = environments[extra] / "bin"
        kept = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment = kept | {"PATH": f"{programs}:{os.environ['PATH']}"}
        command = [str(programs / words[0]), *words[1:]]
        folder = environments[extra]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == ends_with, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    return run


def new_environment(wheel, distributions, folder):
    """A virtual environment in ``folder`` with the wheel, and links to those of this one's distributions."""
    venv.create(folder, with_pip=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name in distributions:
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (packages / top).exists():
                (packages / top).symlink_to(distribution.locate_file(top))
    pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    return folder


# ---- what works with what "pip install ringzero" brings


def test_nothing_that_the_wheel_asks_for_is_missing(installed):
    assert "No broken requirements found" in installed("python", "-m", "pip", "check")


def test_the_example_of_the_readme(installed):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    said = installed("python", "-c", example.replace("\nlaunch(", "\nprint(*launch(").replace(")  ", ").returns)  "))
    assert said.count("1.5000, 1.5000, 1.5000, 1.5000") == 2 * 4


def test_doctor_says_what_is_there_and_which_extra_brings_the_rest(installed):
    found = {each["name"]: each for each in json.loads(installed("ringzero", "doctor", "--json"))}
    assert found["ranks"]["state"] == "ok"
    assert "broken" not in {each["state"] for each in found.values()}
    for name in ("book", "labs", "grading"):
        assert (found[name]["state"], found[name]["fix"]) == ("degraded", f'pip install "ringzero[{name}]"')
    assert found["cluster"]["fix"] in ('pip install "ringzero[cluster]"', "apt-get install util-linux")
    assert "chmod" not in found["sandbox"]["what"]  # the package lies in the environment's folder, and a box has both


def test_plan_and_timeline(installed, tmp_path):
    assert "MFU" in installed("ringzero", "plan", "llama3-70b", "--gpus", "256", "--batch", "1024")
    save(on_gpus(Job(slow={2: 1.5})), tmp_path)
    said = installed("ringzero", "timeline", str(tmp_path), "--html", str(tmp_path / "timeline.html"))
    assert "rank 2" in said
    assert "<svg" in (tmp_path / "timeline.html").read_text()


def test_measure(installed):
    assert "all_reduce" in installed("ringzero", "measure")


def test_bench_launch_measures_the_peers_that_are_there(installed):
    small = ["--world-sizes", "2", "--calls", "2", "--repeats", "1", "--peers-at", "2"]
    said = installed("ringzero", "bench", "launch", *small)
    assert "vs torchrun, cold" in said
    for peer in ("accelerate", "ipyparallel"):
        assert f'{peer} is not installed: pip install "ringzero[bench]"' in said


# ---- what needs more says what


def test_help_lists_every_command_and_what_it_lacks(installed):
    said = installed("ringzero", "--help")
    assert re.search(r'grades +\(needs "ringzero\[grading\]"\)', said)
    assert re.search(r"plan +Rank plans", said)
    assert set(cli.main.lazy) <= set(re.findall(r"^  (\w+) ", said, re.MULTILINE))
    assert set(cli.main.commands["bench"].lazy) <= set(
        re.findall(r"^  (\w+) ", installed("ringzero", "bench", "--help"), re.MULTILINE)
    )


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("grade 02_ring_allreduce --jobs 2", "nbformat", "grading"),
        ("mutants --lab 02_ring_allreduce", "nbformat", "grading"),
        ("bench grading", "nbformat", "grading"),
    ],
)
def test_a_command_without_its_packages_says_which_extra_brings_them(installed, words, package, extra):
    said = installed("ringzero", *words.split(), ends_with=1)
    assert said == f'Error: this needs {package}, which is not installed: pip install "ringzero[{extra}]"\n'


def test_between_nodes_without_the_extra(installed):
    said = installed("ringzero", "measure", "--inter-node", "1gbit", ends_with=1)
    assert said.splitlines()[-1].startswith("Error: An emulated cluster needs ")


@pytest.mark.parametrize("words", ["grade 02_ring_allreduce", "mutants", "bench grading"])
def test_with_the_extra_grading_asks_for_a_checkout(installed, words):
    said = installed("ringzero", *words.split(), extra="grading", ends_with=2 if words.startswith("grade") else 1)
    assert "grading a course needs a checkout of the repository" in said.splitlines()[-1]


# ---- the extras that are named exist, and are enough


def test_each_room_imports_only_what_its_extra_brings():
    provides = importlib.metadata.packages_distributions()
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        there = brought(cli.EXTRAS.get(room, ""))
        for node in ast.walk(ast.parse(path.read_text())):
            named = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            named += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for package in {name.split(".")[0] for name in named} - sys.stdlib_module_names - {"ringzero"}:
                owners = {_canonical(each) for each in provides.get(package, [])}
                assert owners & there, f"{path}:{node.lineno}: {package} comes with no extra of the room {room}"


def test_the_extras_that_commands_name_are_those_of_the_wheel(wheel):
    (metadata,) = importlib.metadata.distributions(path=[str(wheel)])
    assert {*cli.EXTRAS.values(), "book"} <= set(metadata.metadata.get_all("Provides-Extra"))
