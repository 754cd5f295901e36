"""What ``make`` runs before all else: ``src/install.py``, ``src/one_at_a_time.py``, and the lock file."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11.0", "3.11.2", "3.11.9", "3.12.0", "3.13.0", "3.14.0")
TURN = ROOT / "src/one_at_a_time.py"


def read(name):
    lines = (line.partition(" #")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


@pytest.fixture
def checkout(tmp_path):
    """A folder with what ``make install`` reads, and ``install`` as a module that works there."""
    top = tmp_path / "a course"
    for name in (
        "Makefile",
        "requirements.txt",
        "constraints.txt",
        "pyproject.toml",
        "src/ringzero_course/pyproject.toml",
        "src/install.py",
        "src/one_at_a_time.py",
    ):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, top / name)
    specification = importlib.util.spec_from_file_location("install_of_a_course", top / "src/install.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def without_downloads(module, monkeypatch, fails=()):
    """Have the module make environments, and only note what it would install. Returns the notes."""
    real, noted = module.run, []

    def run(command, what):
        if "venv" in command:
            return real([*command[:-1], "--without-pip", command[-1]], what)
        noted.append(what)
        if what in fails:
            raise module.InstallError(what)

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "another_index", lambda: True)  # so pip, by ``run``, installs all
    return noted


# ---- the lock file


def test_every_requirement_has_its_pin_in_the_lock_file():
    locked = {(pin.name.lower().replace("_", "-"), str(pin.specifier)) for pin in read("constraints.txt")}
    for wanted in read("requirements.txt"):
        assert (wanted.name.lower().replace("_", "-"), str(wanted.specifier)) in locked


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_file_resolves(python, tmp_path):
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    command = [
        uv,
        "pip",
        "compile",
        "--quiet",
        "--system-certs",
        "--python-version",
        python,
        "requirements.txt",
        "-c",
        "constraints.txt",
    ]
    done = subprocess.run(
        [*command, "-o", tmp_path / "lock.txt"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if re.search(r"error sending request|dns error|Connect|Network", done.stderr):
        pytest.skip("needs a package index")
    assert done.returncode == 0, done.stderr


def test_the_supported_pythons_are_those_the_project_names():
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())[1]
    assert oldest in (ROOT / "README.md").read_text()
    assert f"--python-version {oldest} " in (ROOT / "Makefile").read_text()


# ---- the environment


def test_a_complete_environment_is_left_alone(checkout, monkeypatch):
    noted = without_downloads(checkout, monkeypatch)
    assert checkout.main([]) == 0
    assert noted == ["install torch and uv", "install what requirements.txt names", "install ringzero itself"]
    assert checkout.main([]) == 0
    assert len(noted) == 3
    (checkout.ROOT / "requirements.txt").write_text("torch==2.13.0\n")  # a later version of the course
    kept = checkout.VENV / "kept"
    kept.touch()
    assert checkout.main([]) == 0
    assert len(noted) == 6
    assert kept.exists()


@pytest.mark.parametrize(
    "at", ["install torch and uv", "install what requirements.txt names", "install ringzero itself"]
)
def test_an_interrupted_install_is_made_anew(checkout, monkeypatch, capfd, at):
    with monkeypatch.context() as patched:
        without_downloads(checkout, patched, fails=[at])
        assert checkout.main([]) == 1
    half = checkout.VENV / "half a package"
    half.touch()
    noted = without_downloads(checkout, monkeypatch)
    assert checkout.main([]) == 0
    assert len(noted) == 3
    assert not half.exists()
    assert "is not complete: it is made anew" in capfd.readouterr().out


def test_an_environment_without_its_python_is_made_anew(checkout, monkeypatch, capfd):
    without_downloads(checkout, monkeypatch)
    assert checkout.main([]) == 0
    for link in (checkout.VENV / "bin").glob("python*"):
        link.unlink()
    assert checkout.main([]) == 0
    assert "has no Python that runs: it is made anew" in capfd.readouterr().out


def test_an_environment_of_another_python_is_kept_unless_one_is_named(checkout, monkeypatch, capfd):
    noted = without_downloads(checkout, monkeypatch)
    assert checkout.main([]) == 0
    version = checkout.version_of
    monkeypatch.setattr(
        checkout, "version_of", lambda python: "3.99.1" if python == sys.executable else version(python)
    )
    assert checkout.main([]) == 0
    assert len(noted) == 3
    assert checkout.main(["--this-python"]) == 0
    assert len(noted) == 6
    assert "is of Python 3.11" in capfd.readouterr().out or sys.version_info[:2] != (3, 11)


@pytest.mark.parametrize(
    ("says", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        (
            "Max retries exceeded: Temporary failure in name resolution",
            "check that this machine reaches a package index",
        ),
        ("ResolutionImpossible", "check that this machine reaches a package index"),
        ("SyntaxError", "the lines above say why"),
    ],
)
def test_what_failed_is_said_with_what_to_do(checkout, capfd, says, advice):
    fails = [sys.executable, "-c", f"import sys; print({says!r}, file=sys.stderr); sys.exit(1)"]
    with pytest.raises(checkout.InstallError, match=advice) as raised:
        checkout.run(fails, "install a thing")
    assert "then run make again" in str(raised.value)
    assert says in capfd.readouterr().err


def test_a_python_without_venv_is_named(checkout, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(checkout.InstallError, match="apt-get install python3-venv"):
        checkout.check_venv_module(fake)


def test_a_python_that_is_too_old_or_not_there_is_named(checkout, tmp_path):
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n')
    old.chmod(0o755)
    for python, sentence in (
        (old, "Python 3.9.2 is too old; the course needs Python 3.11 or newer"),
        ("python9", "'python9' is not on the PATH"),
    ):
        done = subprocess.run(
            ["make", "install", f"PYTHON={python}"], cwd=checkout.ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert sentence in done.stdout


# ---- one at a time


@pytest.fixture
def begin(tmp_path):
    """``begin(code)`` starts Python code that has printed "begun", as a step of ``make`` in a folder of its own."""
    turn = tmp_path / "src/one_at_a_time.py"
    turn.parent.mkdir()
    shutil.copy(TURN, turn)
    (tmp_path / "Makefile").touch()
    started = []

    def start(code):
        command = [sys.executable, turn, sys.executable, "-uc", f"print('begun'); {code}"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, **pipes, text=True, cwd=tmp_path, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        process.communicate()


def test_two_take_turns_and_the_second_says_so(begin, tmp_path):
    first = begin("input(); open('order', 'a').write('first ')")
    assert first.stdout.readline() == "begun\n"
    second = begin("open('order', 'a').write('second')")
    assert "another make is at work in this folder" in second.stdout.readline()
    first.communicate("\n")
    second.communicate()
    assert (tmp_path / "order").read_text() == "first second"
    assert (first.returncode, second.returncode) == (0, 0)


def test_an_ended_one_lets_the_next_begin(begin):
    first = begin("import time; time.sleep(100)")
    assert first.stdout.readline() == "begun\n"
    os.killpg(first.pid, signal.SIGKILL)
    assert begin("pass").communicate()[0] == "begun\n"


def test_ctrl_c_is_a_sentence(begin):
    one = begin("import time; time.sleep(100)")
    assert one.stdout.readline() == "begun\n"
    time.sleep(0.2)  # until it sleeps
    os.killpg(one.pid, signal.SIGINT)
    _, said = one.communicate()
    assert one.returncode == 130
    assert said.endswith("make: stopped. The next make goes on from here.\n")


def test_a_home_that_cannot_be_written_to_is_replaced(tmp_path):
    specification = importlib.util.spec_from_file_location("one_at_a_time", TURN)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert module.environment({"HOME": str(tmp_path)}) is None
    other = module.environment({"HOME": "/proc/no such home", "KEPT": "1"})
    assert other["KEPT"] == "1"
    assert os.access(other["HOME"], os.W_OK)
