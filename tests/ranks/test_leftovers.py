"""Whatever a rank does, its call leaves no process, file, shared memory or descriptor, and the next call works."""

import os
import tempfile

import pytest

from ringzero.processes import short_temporary_folder
from ringzero.record import trace_file
from tests.ranks import hostile_calls as hostile


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    tmp_path_factory.getbasetemp()  # pytest's own must not come to lie in the run's, which is removed
    with hostile.Run() as run:
        yield run


def test_nonsense_in_place_of_a_trace_is_no_wait(tmp_path):
    """The watch for deadlocks may look just before a rank that overwrote its trace ends."""
    (tmp_path / "0.trace").write_bytes(bytes(range(256)) * 64)
    assert trace_file.waiting(tmp_path / "0.trace") is None
    assert trace_file.waiting(tmp_path) is None


@pytest.mark.parametrize("act", hostile.HOSTILE, ids=lambda act: act.__name__)
def test_a_hostile_call_leaves_nothing(run, act):
    hostile.call(act)
    assert run.left() == []


def test_what_hostile_calls_leave_is_counted(monkeypatch):
    def leave_a_file_beside_the_call():
        with open(os.path.join(os.environ[hostile.MARK], f"left by {os.getpid()}"), "w"):
            pass

    monkeypatch.setattr(hostile, "SETTLE_SECONDS", 0.5)  # the file stays for good
    monkeypatch.setattr(hostile, "HOSTILE", (leave_a_file_beside_the_call, hostile.leave_with_status_3))
    assert hostile.left_by(calls=3) == {"file": 4}


def test_a_folder_for_sockets_is_short_with_what_lies_in_it(monkeypatch):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/scratch/someone")
    assert short_temporary_folder() == "/scratch/someone"
    assert short_temporary_folder(below=len("/a-folder-of-a-notebook/ranks")) == "/tmp"


def test_a_link_to_a_long_folder_is_no_short_folder(monkeypatch, tmp_path):
    long = tmp_path / ("x" * 40)
    long.mkdir()
    (tmp_path / "t").symlink_to(long)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "t"))
    assert short_temporary_folder(below=-len(str(tmp_path))) == "/tmp"
