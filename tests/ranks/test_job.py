"""What a rank's process does around the function of a call."""

import os
import subprocess
import sys
import threading

from ringzero.ranks import job


def test_a_rank_that_is_done_waits_until_all_have_let_go(tmp_path):
    first, second = (job._hold(tmp_path / "working") for _ in range(2))
    waiting = threading.Thread(target=job._let_go, args=(first,))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    job._let_go(second)
    waiting.join(60)
    assert not waiting.is_alive()


def test_a_rank_that_ended_holds_nothing(tmp_path):
    code = "import sys; from pathlib import Path; from ringzero.ranks import job; job._hold(Path(sys.argv[1]))"
    mine = job._hold(tmp_path / "working")
    subprocess.run([sys.executable, "-c", code, tmp_path / "working"], check=True, timeout=300)
    job._let_go(mine)


def test_a_process_that_a_rank_forked_holds_nothing_after_it_let_go(tmp_path):
    mine, other = (job._hold(tmp_path / "working") for _ in range(2))
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.close(write)
        os.read(read, 1)  # until the test is over
        os._exit(0)
    os.close(read)
    try:
        waiting = threading.Thread(target=job._let_go, args=(mine,))
        waiting.start()
        job._let_go(other)
        waiting.join(60)
        assert not waiting.is_alive()
    finally:
        os.close(write)
        os.waitpid(child, 0)
