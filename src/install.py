"""Make ``.venv`` with all that requirements.txt names, at the versions of constraints.txt: what ``make install`` runs.

    python3.12 src/install.py [--this-python]

A ``.venv`` that is complete holds a file ``installed``, which says what was installed. One without it was interrupted:
it is made anew, from what pip and uv keep of their downloads. With ``--this-python`` a ``.venv`` of another Python is
made anew, too. pip installs torch, because it knows where this machine has its builds of torch; uv installs the rest in
a quarter of pip's time. Standard library only.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed"
COURSE = "src/ringzero_course"
SIZE_GB = 4  # of .venv, with the largest build of torch more


class InstallError(Exception):
    """The step that failed, and what the person can do."""


def main(arguments):
    try:
        install("--this-python" in arguments)
    except InstallError as failure:
        print(f"make: {failure}", file=sys.stderr)
        return 1
    return 0


def install(this_python):
    found, complete = version_of(PYTHON), STAMP.is_file()
    anew = VENV.exists() and (found is None or not complete or (this_python and found != version_of(sys.executable)))
    if not anew and complete and STAMP.read_text() == wanted(found):
        return
    if anew:
        why = "has no Python that runs" if found is None else f"is of Python {found}" if complete else "is not complete"
        print(f"The environment .venv {why}: it is made anew.", flush=True)
    STAMP.unlink(missing_ok=True)
    base = getattr(sys, "_base_executable", sys.executable)  # this may be .venv's own Python, if it is activated
    if anew or not VENV.exists():
        check_venv_module(base)
        run([base, "-m", "venv", "--clear", VENV], "make the environment .venv")
    print("Installing into .venv: one to three minutes.", flush=True)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--no-warn-script-location", "--no-compile"]
    files = ["-r", "requirements.txt", "-c", "constraints.txt"]
    run(
        [*pip, *(line for line in requirements() if re.match(r"(torch|uv)==", line)), "-c", "constraints.txt"],
        "install torch and uv",
    )
    uv = [VENV / "bin" / "uv", "pip", "install", "--quiet", "--system-certs", "--python", PYTHON]
    if another_index() or not works([*uv, *files]):
        print("pip installs the rest, which takes longer than with uv.", flush=True)
        run([*pip, *files], "install what requirements.txt names")
    run([*pip, "--no-deps", "--editable", ".", "--editable", COURSE], "install ringzero itself")
    STAMP.write_text(wanted(version_of(PYTHON)))


def version_of(python):
    """As "3.11.7", or None if it does not run."""
    try:
        done = subprocess.run(
            [python, "-c", "import platform; print(platform.python_version())"], stdout=subprocess.PIPE
        )
    except OSError:
        return None
    return done.stdout.decode().strip() or None


def wanted(version):
    """What the stamp says of a complete ``.venv``."""
    digest = hashlib.sha256()
    for name in ("requirements.txt", "constraints.txt", "pyproject.toml", f"{COURSE}/pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return f"Python {version}, {digest.hexdigest()}\n"


def requirements():
    return [line.partition(" #")[0] for line in (ROOT / "requirements.txt").read_text().splitlines()]


def check_venv_module(python):
    if subprocess.run([python, "-c", "import venv, ensurepip"], stderr=subprocess.DEVNULL).returncode != 0:
        raise InstallError("this Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv")


def another_index():
    """Whether pip is told to use another package index than PyPI: uv does not read pip's settings."""
    listed = subprocess.run(
        [PYTHON, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, check=False
    ).stdout.decode()
    return re.search(r"^\S*\.index-url=", listed, re.MULTILINE) is not None


def works(command):
    return subprocess.run(command, cwd=ROOT, stderr=subprocess.DEVNULL, check=False).returncode == 0


def run(command, what):
    """Raise ``InstallError`` with what the command printed last, and what may be done."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, stderr=subprocess.PIPE, check=False)
    if done.returncode == 0:
        return
    said = done.stderr.decode(errors="replace")
    free = shutil.disk_usage(ROOT).free / 1e9
    if "No space left" in said or free < 0.1:
        advice = f"the disk is full ({free:.1f} GB free, .venv takes about {SIZE_GB} GB). Make room"
    elif re.search(r"resolution|connection|retries|timed out|Temporary failure|network", said, re.IGNORECASE):
        advice = "check that this machine reaches a package index (pip config list)"
    else:
        advice = "the lines above say why"
    print("\n".join(said.splitlines()[-12:]), file=sys.stderr)
    raise InstallError(f"could not {what}: {advice}, then run make again. Downloads are kept.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
