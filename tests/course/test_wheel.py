"""The two wheels, installed where nothing else is: what each brings works, and says which package or extra it lacks.

The environments are new ones. Each sees of this one's packages only those that the wheel, or the wheel with an extra,
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
LIBRARY, COURSE = "ringzero", "ringzero-course"
PACKAGES = {LIBRARY: ROOT / "src/ringzero", COURSE: ROOT / "src/ringzero_course"}


def requirements(project: Path) -> list[str]:
    """What the project in this folder asks for, with its extras as markers."""
    table = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    extras = table["optional-dependencies"].items()
    return [*table["dependencies"], *(f'{line}; extra == "{extra}"' for extra, lines in extras for line in lines)]


OURS = {LIBRARY: requirements(ROOT), COURSE: requirements(PACKAGES[COURSE])}


def brought(what: str) -> set[str]:
    """The distributions that ``pip install WHAT`` brings, such as "ringzero[cluster]"; but ours."""
    asked_for = Requirement(what)
    found: set[str] = set()
    to_see = [(asked_for.name, frozenset(asked_for.extras))]
    for name, extras in to_see:  # grows while it is walked
        for asked in map(Requirement, OURS[name] if name in OURS else importlib.metadata.requires(name) or []):
            wanted = not asked.marker or any(asked.marker.evaluate({"extra": each}) for each in {"", *extras})
            if wanted and (asked.name, frozenset(asked.extras)) not in to_see:
                to_see.append((asked.name, frozenset(asked.extras)))
                found.add(_canonical(asked.name))
    return found - OURS.keys()


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """``{name: wheel}``, built in a copy of what they are built from, so that no folder ``build`` is left here."""
    here = tmp_path_factory.mktemp("wheels")
    for package in PACKAGES.values():
        shutil.copytree(package, here / "src" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, here)
    built = {}
    for name, folder in ((LIBRARY, here), (COURSE, here / "src/ringzero_course")):
        build = f"from setuptools.build_meta import build_wheel; print(build_wheel({str(here)!r}))"
        done = subprocess.run([sys.executable, "-c", build], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        built[name] = here / done.stdout.splitlines()[-1]
    return built


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """``run(*words, what="ringzero")`` runs a command where pip installed that, and nothing else."""
    environments: dict[str, Path] = {}

    def run(*words, what=LIBRARY, ends_with=0):
        if what not in environments:
            ours = [wheels[LIBRARY], *([wheels[COURSE]] if what.startswith(COURSE) else [])]
            environments[what] = new_environment(ours, brought(what), tmp_path_factory.mktemp("environment"))
        programs = environments[what] / "bin"
        kept = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment = kept | {"PATH": f"{programs}:{os.environ['PATH']}"}
        command = [str(programs / words[0]), *words[1:]]
        folder = environments[what]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == ends_with, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    return run


def new_environment(wheels, distributions, folder):
    """A virtual environment in ``folder`` with the wheels, and links to those of this one's distributions."""
    venv.create(folder, with_pip=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name in distributions:
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (packages / top).exists():
                (packages / top).symlink_to(distribution.locate_file(top))
    pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", *wheels], check=True)
    return folder


# ---- what works with what "pip install ringzero" brings


def test_nothing_that_the_wheel_asks_for_is_missing(installed):
    assert "No broken requirements found" in installed("python", "-m", "pip", "check")


def test_the_example_of_the_readme(installed):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    said = installed("python", "-c", example.replace("\nlaunch(", "\nprint(*launch(").replace(")  ", ").returns)  "))
    assert said.count("1.5000, 1.5000, 1.5000, 1.5000") == 2 * 4


def test_the_library_comes_without_the_course(installed):
    assert installed("python", "-c", "import ringzero, importlib.util as i; print(i.find_spec('ringzero_course'))") == (
        "None\n"
    )
    found = {each["name"]: each for each in json.loads(installed("ringzero", "doctor", "--json"))}
    assert found["ranks"]["state"] == "ok"
    assert (found["course"]["state"], found["course"]["fix"]) == ("degraded", "pip install ringzero-course")
    assert found["cluster"]["fix"] in ('pip install "ringzero[cluster]"', "apt-get install util-linux")


def test_doctor_says_what_is_there_and_which_extra_brings_the_rest(installed):
    found = {each["name"]: each for each in json.loads(installed("ringzero", "doctor", "--json", what=COURSE))}
    assert found["ranks"]["state"] == "ok"
    assert "broken" not in {each["state"] for each in found.values()}
    for name in ("book", "labs", "grading"):
        assert (found[name]["state"], found[name]["fix"]) == ("degraded", f'pip install "ringzero-course[{name}]"')
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
    said = installed("ringzero", "bench", "launch", *small, what=COURSE)
    assert "torchrun, cold: " in said
    for peer in ("accelerate", "ipyparallel"):
        assert f'{peer} is not installed: pip install "ringzero-course[bench]"' in said


# ---- what needs more says what


def test_help_lists_every_command_and_what_it_lacks(installed):
    said = installed("ringzero", "--help")
    assert re.search(r'grades +\(needs "ringzero-course"\)', said)
    assert re.search(r'grades +\(needs "ringzero-course\[grading\]"\)', installed("ringzero", "--help", what=COURSE))
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
    assert said == 'Error: this is part of the course, which is not installed: pip install "ringzero-course"\n'
    said = installed("ringzero", *words.split(), what=COURSE, ends_with=1)
    assert said == f'Error: this needs {package}, which is not installed: pip install "ringzero-course[{extra}]"\n'


def test_between_nodes_without_the_extra(installed):
    said = installed("ringzero", "measure", "--inter-node", "1gbit", ends_with=1)
    assert said.splitlines()[-1].startswith("Error: An emulated cluster needs ")


@pytest.mark.parametrize("words", ["grade 02_ring_allreduce", "mutants", "bench grading"])
def test_with_the_extra_grading_asks_for_a_checkout(installed, words):
    said = installed("ringzero", *words.split(), what=f"{COURSE}[grading]", ends_with=2 if words.startswith("grade") else 1)
    assert "grading a course needs a checkout of the repository" in said.splitlines()[-1]


# ---- the extras that are named exist, and are enough


def test_each_room_imports_only_what_its_extra_brings():
    provides = importlib.metadata.packages_distributions()
    for name, path in [(name, path) for name, folder in PACKAGES.items() for path in folder.rglob("*.py")]:
        room = path.relative_to(PACKAGES[name]).parts[0].removesuffix(".py")
        there = brought(f"{name}[{cli.EXTRAS[room]}]" if room in cli.EXTRAS else name)
        for node in ast.walk(ast.parse(path.read_text())):
            named = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            named += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for package in {name.split(".")[0] for name in named} - sys.stdlib_module_names - {"ringzero", "ringzero_course"}:
                owners = {_canonical(each) for each in provides.get(package, [])}
                assert owners & there, f"{path}:{node.lineno}: {package} comes with no extra of the room {room}"


def test_the_extras_that_commands_name_are_those_of_the_wheels(wheels):
    provided = set()
    for wheel in wheels.values():
        (metadata,) = importlib.metadata.distributions(path=[str(wheel)])
        provided |= set(metadata.metadata.get_all("Provides-Extra"))
    assert {*cli.EXTRAS.values(), "book"} <= provided
