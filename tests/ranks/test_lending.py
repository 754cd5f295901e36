"""One pool of ranks serves one process after another, as the pages of a build."""

import os
import subprocess
import sys
import tempfile

import psutil

from ringzero import processes
from ringzero.ranks import lending
from ringzero.ranks.pool import LENDER

BORROWER = """
import os
from ringzero.ranks import launch

def worker():
    return os.getppid()

def kills_worker():
    os.kill(os.getppid(), 9)

print(*launch(worker, world_size=3).returns, flush=True)
"""
BREAKS_ITS_POOL = """
try:
    launch(kills_worker, world_size=2)
except Exception:
    print(*launch(worker, world_size=3).returns)
"""


def borrower(more=""):
    """The process ids of the ranks that a new process finds; ``more`` is what it does then."""
    done = subprocess.run([sys.executable, "-c", BORROWER + more], capture_output=True, text=True, timeout=600)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_a_pool_is_lent_until_its_borrower_breaks_it_or_ends_with_it(monkeypatch):
    # Not tmp_path: a socket's name must be short.
    with tempfile.TemporaryDirectory(prefix="rz-", dir=processes.short_temporary_folder()) as folder:
        monkeypatch.setattr("ringzero.processes.short_temporary_folder", lambda: folder)
        with lending.to_children():
            [first] = borrower()
            assert borrower() == [first]
            had, second = borrower(BREAKS_ITS_POOL)
            assert had == first
            assert set(second.split()).isdisjoint(first.split())
            of_its_own = "print(launch(worker, world_size=9).returns[8] > 0)"
            assert borrower(of_its_own) == [second, "True"]
            assert borrower("os.kill(os.getpid(), 9)") == [second]  # its last call may still run: the next gets others
            [third] = borrower()
            assert set(third.split()).isdisjoint(second.split())
        assert not any(psutil.pid_exists(int(pid)) for pid in f"{first} {second} {third}".split())
        assert not os.listdir(folder)
    assert LENDER not in os.environ
