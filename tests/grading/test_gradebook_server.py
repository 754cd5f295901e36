"""The gradebook on a PostgreSQL server: the grades are those that a file holds, and a second run grades nothing."""

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from ringzero_course.grading import course as courses
from tests.grading.test_grading import CLASS, LAB, command, make_course

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)  # where Debian has them
NAMES = ["a_good", "h_fails_hidden", "i_truncated"]


@contextmanager
def server():
    """A new server for this test alone, reached by a socket in its folder: no port, no password."""
    owner = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name  # it refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="rz-pg-"))  # a short path: a socket's may have 107 characters
    if os.getuid() == 0:
        shutil.chown(folder, owner)

    def run(program, *words):
        words = [PROGRAMS / program, "-D", folder / "data", *words]
        subprocess.run(words, cwd=folder, user=owner, check=True, stdin=subprocess.DEVNULL, capture_output=True)

    try:
        run("initdb", "--username=ringzero", "--auth=trust", "--no-sync")
        run("pg_ctl", "-w", "-l", folder / "log", "-o", f"-k {folder} -c listen_addresses=''", "start")
        try:
            yield f"postgresql+psycopg://ringzero@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def held(course):
    return {name: (grade.as_data(), str(grade.verdict)) for name, grade in course.grades(LAB).items()}


@pytest.mark.skipif(PROGRAMS is None, reason="needs a PostgreSQL server: apt install postgresql")
def test_a_class_with_its_gradebook_on_a_server(tmp_path, monkeypatch):
    found = []
    with server() as address:
        for name, where in (("file", None), ("server", address)):
            (tmp_path / name).mkdir()
            if where:
                monkeypatch.setenv(courses.GRADEBOOK, where)
            course, handed = make_course(tmp_path / name)
            for student in NAMES:
                course.submit(student, LAB, CLASS[student][0](handed))
            done = command("nbgrader", "autograde", LAB, top=course.top)
            assert "A person must look at 1 of 3" in done.stderr
            found.append(held(course))
        assert found[0].keys() == set(NAMES)
        assert found[1] == found[0]
        assert not (course.root / "gradebook.db").exists()
        again = command("nbgrader", "autograde", LAB, top=course.top)
        assert again.stderr.count("(as before)") == len(NAMES)
        assert command("nbgrader", "generate_feedback", LAB, top=course.top).returncode == 0
        course.forget("h_fails_hidden")
        assert held(course).keys() == {"a_good", "i_truncated"}
