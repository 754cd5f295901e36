"""Hostile calls of ``launch`` and what they leave: processes, files, shared memory, descriptors. It should be nothing.

Every rank does what one of ``HOSTILE`` does; the call ends in a result or a ``RankError``, and the next call works.
What is left is told apart from all else on the machine: a process by a mark in its environment or command line, a file
by the run's own temporary directory, a shared memory segment by its name, which the rank wrote down.

    python -m tests.ranks.hostile_calls --calls 200

Counts what so many calls leave; exit status 1 if it is anything. Needs ``/proc``.
"""

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

WORLD_SIZE = 2
LIMIT_SECONDS, HANG_SECONDS = 20.0, 0.5
SETTLE_SECONDS = 60.0  # far longer than an ending process needs on any machine
MARK = "RINGZERO_HOSTILE"  # the run's directory, in the environment of all it starts
NAMES = "segments"  # the file in that directory that lists shared memory segments
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
held: list[object] = []  # what a rank keeps open until it ends


def raise_an_error():
    raise ValueError("on purpose")


def raise_keyboard_interrupt():
    raise KeyboardInterrupt


def recurse_for_ever():
    recurse_for_ever()


def return_what_cannot_travel():
    return threading.Lock()


def print_a_megabyte():
    print("x" * 2**20)


def leave_with_status_0():
    os._exit(0)


def leave_with_status_3():
    os._exit(3)


def crash():
    ctypes.string_at(0)


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def kill_its_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def hang():
    time.sleep(600)


def hang_without_sigterm():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang()


def start_threads_that_never_end():
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(600,)).start()
    hang()


def start_children():
    for _ in range(50):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)


def start_a_daemon():
    """Orphaned, in a session of its own, with an empty environment."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(SLEEP[0], [*SLEEP, os.environ[MARK]], {})
        os._exit(0)
    os.wait()


def start_a_daemon_and_kill_its_parent():
    subprocess.Popen(SLEEP, start_new_session=True)
    kill_its_parent()


def open_many_files():
    held.extend(os.open(__file__, os.O_RDONLY) for _ in range(500))


def close_all_descriptors():
    os.closerange(0, 4096)


def leave_files():
    tempfile.mkdtemp()
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(bytes(2**16))


def leave_a_deep_closed_directory():
    os.chdir(tempfile.mkdtemp())
    for _ in range(1200):  # deeper than Python recurses
        os.mkdir("deeper")
        os.chdir("deeper")
    os.chmod(".", 0)


def _call_directory():
    directory = Path(os.readlink("/proc/self/fd/1")).parent  # the output goes there
    if not directory.is_relative_to(os.environ[MARK]):
        raise RuntimeError(f"{directory} is not in {os.environ[MARK]}")
    return directory


def remove_the_call_directory():
    subprocess.run(["rm", "-rf", _call_directory()], check=True)


def put_in_place_of_its_files(make, *files):
    directory = _call_directory()
    for name in files:
        file = directory / f"{os.environ['RANK']}.{name}"
        file.unlink(missing_ok=True)
        make(file)


def _write_nonsense(file):
    file.write_bytes(bytes(range(256)) * 64)


REPORT = ("error", "out", "stack", "trace", "trace.names")


def put_pipes_in_place_of_its_report():
    put_in_place_of_its_files(os.mkfifo, *REPORT)
    os._exit(3)


def put_directories_in_place_of_its_report():
    put_in_place_of_its_files(os.mkdir, *REPORT)
    os._exit(3)


def put_nonsense_in_place_of_its_report():
    put_in_place_of_its_files(_write_nonsense, *REPORT)
    os._exit(3)


def put_a_pipe_in_place_of_its_result():
    put_in_place_of_its_files(os.mkfifo, "result")
    os._exit(0)


def put_nonsense_in_place_of_its_result():
    put_in_place_of_its_files(_write_nonsense, "result")
    os._exit(0)


def leave_shared_memory():
    from multiprocessing.shared_memory import SharedMemory

    held.append(SharedMemory(create=True, size=2**20))
    _note(held[-1].name)


def leave_shared_memory_and_be_killed():
    leave_shared_memory()
    kill_itself()


def leave_tensors_shared_by_name():
    import torch

    torch.multiprocessing.set_sharing_strategy("file_system")
    held.append(torch.ones(1000))
    _, name, _ = held[-1].untyped_storage()._share_filename_cpu_()
    _note(name.decode().lstrip("/"))


def _note(segment):
    with open(Path(os.environ[MARK], NAMES), "a") as file:
        file.write(f"{segment}\n")


HOSTILE = (
    *(raise_an_error, raise_keyboard_interrupt, recurse_for_ever, return_what_cannot_travel, print_a_megabyte),
    *(leave_with_status_0, leave_with_status_3, crash, kill_itself, kill_its_parent, hang, hang_without_sigterm),
    *(start_threads_that_never_end, start_children, start_a_daemon, start_a_daemon_and_kill_its_parent),
    *(open_many_files, close_all_descriptors, leave_files, leave_a_deep_closed_directory, remove_the_call_directory),
    *(put_pipes_in_place_of_its_report, put_directories_in_place_of_its_report, put_nonsense_in_place_of_its_report),
    *(put_a_pipe_in_place_of_its_result, put_nonsense_in_place_of_its_result),
    *(leave_shared_memory, leave_shared_memory_and_be_killed, leave_tensors_shared_by_name),
)


class Run:
    """Ranks with a temporary directory and a mark of their own, to tell what hostile calls leave; for a ``with``."""

    def __enter__(self):
        from ringzero.ranks import pool

        pool.stop()
        self.directory = tempfile.mkdtemp(prefix="hostile-")
        self._restore = {name: os.environ.get(name) for name in (MARK, "TMPDIR")}, tempfile.tempdir
        os.environ[MARK] = os.environ["TMPDIR"] = tempfile.tempdir = self.directory
        self._descriptors, self._seen = {}, set()
        check()
        self.left(settle=0)  # so that what exists now is not counted later
        return self

    def __exit__(self, *_):
        from ringzero.ranks import pool

        pool.stop()
        for process in self._processes():
            with contextlib.suppress(Exception):
                process.kill()
        environment, tempfile.tempdir = self._restore
        for name, value in environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        for segment in self._segments():
            os.unlink(f"/dev/shm/{segment}")
        subprocess.run(["rm", "-rf", self.directory], check=True)

    def left(self, settle=None):
        """``[(what, name)]`` that came since the last look and are still there ``settle`` seconds later."""
        deadline = time.monotonic() + (SETTLE_SECONDS if settle is None else settle)
        while (left := set(self._left()) - self._seen) and time.monotonic() < deadline:
            time.sleep(0.02)
        self._seen |= left
        return sorted(left)

    def _left(self):
        """All that is there and is no part of the warm ranks."""
        import psutil

        from ringzero.ranks import pool

        warm = pool.acquire(WORLD_SIZE)
        for process in self._processes():
            if process.pid not in warm.own_processes():
                yield "process", str(process.pid)
        for name in {*os.listdir(self.directory)} - {warm.directory.name, NAMES}:
            yield "file", name
        for call in warm.directory.glob("call-*"):
            yield "file", call.name
        for name in self._segments():
            yield "shared memory segment", name
        for pid in (os.getpid(), *warm.pids):
            count = psutil.Process(pid).num_fds()
            for number in range(self._descriptors.setdefault(pid, count), count):
                yield "file descriptor", f"{number} of process {pid}"

    def _segments(self):
        names = Path(self.directory, NAMES)
        names = names.read_text().split() if names.exists() else []
        return [name for name in names if os.path.exists(f"/dev/shm/{name}")]

    def _processes(self):
        import psutil

        found = set(psutil.Process().children(recursive=True))
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self.directory or self.directory in process.cmdline():
                    found.add(process)
        return found - {psutil.Process()}


def call(hostile):
    """One hostile call, then one that must work. Raises what is no RankError."""
    from ringzero import RankError, launch

    seconds = HANG_SECONDS if "hang" in hostile.__code__.co_names + (hostile.__name__,) else LIMIT_SECONDS
    with contextlib.suppress(RankError):
        launch(hostile, world_size=WORLD_SIZE, device="cpu", timeout=seconds)
    check()


def check():
    from ringzero import launch

    returned = launch(lambda: int(os.environ["RANK"]), world_size=WORLD_SIZE, device="cpu").returns
    if returned != list(range(WORLD_SIZE)):
        raise RuntimeError(f"ranks returned {returned}")


def left_by(calls):
    """``Counter({what: how many})`` that so many calls left, each of ``HOSTILE`` in turn."""
    with Run() as run:
        for number in range(calls):
            call(HOSTILE[number % len(HOSTILE)])
        return Counter(what for what, _ in run.left())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    calls = parser.parse_args().calls
    left = left_by(calls)
    print(f"{calls} hostile calls left {dict(left) or 'nothing'}")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
