"""``ringzero doctor``: findings a person can act on; a missing optional part never fails it, a missing torch does."""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest
from click.testing import CliRunner


from ringzero import doctor
from ringzero.cli import main
from ringzero_course import needs
from ringzero_course.boxes import sandbox

NAMES = ["Python", "torch", "GPUs", "cores", "memory", "ports", "ranks", "leftover ranks", "cluster", "course",
         "temporary files", "book", "labs", "grading", "chromium", "sandbox"]  # fmt: skip


def run(*options):
    done = CliRunner().invoke(main, ["doctor", *options])
    return done.exit_code, done.output


def findings(monkeypatch, only):
    monkeypatch.setattr(doctor, "CHECKS", [check for check in doctor.CHECKS if check.__name__ in only])
    code, output = run("--json")
    return code, {finding["name"]: finding for finding in json.loads(output)}


def test_this_machine_can_run_the_course():
    code, output = run("--json")
    found = {finding["name"]: finding for finding in json.loads(output)}
    assert list(found) == NAMES
    assert code == 0, output
    assert all(finding["state"] != "broken" for finding in found.values())
    assert all(finding["fix"] for finding in found.values() if finding["state"] != "ok")
    assert found["ranks"]["what"] == "two ranks started with torchrun answered [0, 1]"


@pytest.mark.parametrize(
    ("name", "programs", "fix"),
    [
        ("chromium", ["chromium", "chromium-browser", "google-chrome"], "apt-get install chromium"),
        ("sandbox", ["bwrap"], "apt-get install bubblewrap"),
        ("cluster", ["unshare"], "apt-get install util-linux"),
        ("cluster", ["nsenter"], "apt-get install util-linux"),
    ],
)
def test_an_optional_program_that_is_missing_is_named_with_its_fix(monkeypatch, name, programs, fix):
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda program: None if program in programs else which(program))
    code, found = findings(monkeypatch, [name])
    assert (code, found[name]["state"], found[name]["fix"]) == (0, "degraded", fix)


@pytest.mark.parametrize("name", ["sandbox", "cluster"])
def test_a_program_that_is_there_but_not_allowed_is_told_from_a_missing_one(monkeypatch, name):
    refused = subprocess.CompletedProcess([], 1, "", "unshare failed: Operation not permitted\n")
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(subprocess, "run", lambda *command, **options: refused)
    code, found = findings(monkeypatch, [name])
    assert (code, found[name]["state"]) == (0, "degraded")
    assert "Operation not permitted" in found[name]["what"]


@pytest.mark.skipif(sandbox.missing_ability() is not None, reason=f"{sandbox.missing_ability()}")
@pytest.mark.parametrize(
    ("lines", "state", "words"),
    [
        ("", "ok", "at most 8 GiB of memory, 1000 processes and threads, files of 1 GiB"),
        ("limits = {'memory': 2**31, 'gpus': True}", "ok", "at most 2 GiB of memory, 1000"),
        ("limits = {'memory': 2**31, 'gpus': True}", "ok", "in /tmp, GPUs, 120 s a cell"),
        ("cell_seconds = 7", "ok", "7 s a cell, 300 s a notebook, 1 MB printed by a cell (as nbgrader_config.py in"),
        ("sandbox = False", "degraded", "graded without one, with your rights"),
        ("limits = {'gpu': True}", "degraded", "a sandbox has no limit 'gpu'. It has memory,"),
    ],
)
def test_the_limits_in_force_are_those_of_the_configuration_here(monkeypatch, tmp_path, lines, state, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\nc.ExecuteWithPapermill.{lines}" if lines else "")
    code, found = findings(monkeypatch, ["sandbox"])
    assert (code, found["sandbox"]["state"]) == (0, state)
    assert words in found["sandbox"]["what"]


@pytest.mark.skipif(sandbox.missing_ability() is not None, reason=f"{sandbox.missing_ability()}")
def test_without_nbgrader_a_box_has_the_limits_that_any_box_has(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nbgrader" else find(name))
    monkeypatch.setattr(needs, "_limits_in_force", None)  # it needs nbgrader
    code, found = findings(monkeypatch, ["sandbox"])
    assert (code, found["sandbox"]["state"]) == (0, "ok")
    assert "at most 8 GiB of memory, 1000 processes" in found["sandbox"]["what"]
    assert "a cell" not in found["sandbox"]["what"]


@pytest.mark.parametrize(
    ("name", "package"), [("book", "jupyter-book"), ("labs", "ipywidgets"), ("grading", "nbgrader")]
)
def test_a_missing_package_is_named(monkeypatch, name, package):
    version = importlib.metadata.version

    def without(wanted):
        if wanted == package:
            raise importlib.metadata.PackageNotFoundError(wanted)
        return version(wanted)

    monkeypatch.setattr(importlib.metadata, "version", without)
    code, found = findings(monkeypatch, [name])
    assert (code, found[name]["state"], found[name]["what"]) == (0, "degraded", f"without {package}")


def test_without_torch_the_course_cannot_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, found = findings(monkeypatch, ["torch"])
    assert (code, found["torch"]["state"]) == (1, "broken")
    assert found["torch"]["fix"].startswith("pip install")


def test_ranks_that_do_not_start_are_a_reason_to_fail(monkeypatch):
    from ringzero.ranks import pool

    pool.stop()
    monkeypatch.setattr(pool, "torchrun_command", lambda *a: [sys.executable, "-c", "raise SystemExit('no torchrun')"])
    code, found = findings(monkeypatch, ["ranks"])
    assert (code, found["ranks"]["state"]) == (1, "broken")
    assert "torchrun could not start ranks (a pool of 8" in found["ranks"]["what"]


def test_only_ranks_whose_notebook_has_ended_are_leftovers(monkeypatch, tmp_path):
    address = str(tmp_path / "pool.sock")
    words = [sys.executable, "-c", "import time; time.sleep(600)", "ringzero.ranks.warm_rank", address, "2"]
    with subprocess.Popen(words) as rank, socket.socket(socket.AF_UNIX) as notebook:
        try:
            notebook.bind(address)
            found = findings(monkeypatch, ["leftovers"])[1]["leftover ranks"]
            assert str(rank.pid) not in found["fix"].split()
            assert found["state"] == "degraded" or f"process {os.getpid()}" in found["what"] or ", " in found["what"]
            notebook.close()
            found = findings(monkeypatch, ["leftovers"])[1]["leftover ranks"]
            assert found["state"] == "degraded"
            assert str(rank.pid) in found["fix"].split()
            monkeypatch.setattr(os, "getuid", lambda: 12345)  # as another user sees it
            assert findings(monkeypatch, ["leftovers"])[1]["leftover ranks"]["what"] == "none"
        finally:
            rank.kill()


@pytest.mark.parametrize(("folder", "state"), [("/tmp", "ok"), ("/scratch/someone", "degraded")])
def test_a_temporary_folder_that_is_not_used_is_named(monkeypatch, folder, state):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: folder)
    found = findings(monkeypatch, ["temporary"])[1]["temporary files"]
    assert found["state"] == state
    if state != "ok":
        assert "in /tmp, and not in /scratch/someone: the name is too long for sockets in it, 16 char" in found["what"]


@pytest.mark.parametrize("lines", ["", "sandbox = False"])
def test_where_there_are_no_sandboxes_the_configuration_says_what_happens(monkeypatch, tmp_path, lines):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\nc.ExecuteWithPapermill.{lines}" if lines else "")
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda program: None if program == "bwrap" else which(program))
    found = findings(monkeypatch, ["sandbox"])[1]["sandbox"]
    assert ("graded without one" if lines else "are not graded here: it needs bwrap") in found["what"]
    assert found["fix"].endswith("apt-get install bubblewrap")


def test_a_check_that_fails_itself_is_a_finding(monkeypatch):
    def broken():
        raise KeyError("oops")

    monkeypatch.setattr(doctor, "CHECKS", [broken])
    code, output = run()
    assert code == 0
    assert "degraded  broken: could not be checked: 'oops'" in output
