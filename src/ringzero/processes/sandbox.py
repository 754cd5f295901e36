"""A box for a command that nobody trusts: bubblewrap, with limits.

Inside, there is the system, read-only, Python and this package; a ``/tmp`` and a ``/dev/shm`` of its own, in memory and
of bounded size; and the folders that the caller gives. There is no network but the box's own loopback, no other
process, no capability, and no GPU unless the limits say so. Where this process is root, the command runs as another
user, so that the kernel's limits count.

A process that asks for it by the variable ``ASKED_FOR`` of its environment starts its ranks in such boxes, too.
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

import psutil

ASKED_FOR = "RINGZERO_SANDBOX"  # in the environment: the limits as JSON
STUDENTS_KERNEL = "RINGZERO_STUDENTS_KERNEL"  # in that of test cells: the connection file of the kernel in the box
FIRST_USER, USERS = 61184, 4000  # user ids that systems keep for services that come and go
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/sys/bus/pci", "/sys/devices")
ETC = ("hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "fonts", "mime.types")
PASSED_ON = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "OMP_NUM_THREADS")  # of the environment; it may hold secrets
TO_RANKS = (*PASSED_ON, "TMPDIR", "RINGZERO_GRADING", ASKED_FOR)  # and what begins so:
OF_DEVICES = ("CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "MALLOC_")
INSIDE = {"TMPDIR": "/tmp", "IPYTHONDIR": "/tmp/ipython", "MPLCONFIGDIR": "/tmp/matplotlib", "USER": "student"}
LOOK_SECONDS = 0.5
OF_ONE_USER = 16  # boxes that an ordinary user may have at a time, each with all its processes


@dataclass(frozen=True)
class Limits:
    """What the processes of a box may take: ``memory`` in bytes, all together; ``processes``, threads counted;
    ``file``, the bytes of one file; ``temporary``, the bytes of ``/tmp``, and of ``/dev/shm``. ``gpus``: whether they
    may use this machine's GPUs, whose memory nothing here limits."""

    memory: int = 8 * 2**30
    processes: int = 1000
    file: int = 2**30
    temporary: int = 2**30
    gpus: bool = False

    def __str__(self) -> str:
        return (
            f"{self.memory / 2**30:g} GiB of memory, {self.processes} processes and threads, files of "
            f"{self.file / 2**30:g} GiB, {self.temporary / 2**30:g} GiB in /tmp, {'' if self.gpus else 'no '}GPUs"
        )


def enclosed(command: Iterable[str], writable: Iterable[Path], limits: Limits, directory: str = "/tmp") -> list[str]:
    """The command line that runs ``command`` in a box, in which only the folders ``writable`` are not its own."""
    box = [
        "prlimit",
        f"--nproc={_most_of_the_user(limits)}",
        f"--fsize={limits.file}",
        "--nofile=4096",
        "--core=0",
        "--",
    ]
    box += ["bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    box += ["--unshare-uts", "--unshare-cgroup-try", "--hostname", "localhost", "--cap-drop", "ALL"]
    box += _system()
    box += _gpus() if limits.gpus else []
    for folder in ("/tmp", "/dev/shm"):
        box += ["--perms", "1777", "--size", str(limits.temporary), "--tmpfs", folder]
    writable = list(writable)
    for kind, paths in (("--ro-bind", _python()), ("--bind", [str(folder) for folder in writable])):
        for path in paths:
            box += [kind, path, path]
    for above in _ways_to([*map(Path, [*SYSTEM, *_python()]), *writable]):
        box += ["--chmod", "0755", str(above)]
    box += ["--dir", "/tmp/home", "--setenv", "HOME", "/tmp/home", "--chdir", directory]
    box += ["--chmod", "1777", "/tmp/home"]
    for folder in ("/", "/dev"):  # in memory, of no bounded size, and a user's own where root does not run the box
        box += ["--remount-ro", folder]
    if os.getuid() == 0:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):  # to drop them all with root's user id
            box += ["--cap-add", capability]
        user = str(user_id())
        drop = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs"]
        return [*box, *drop, "--inh-caps=-all", "--bounding-set=-all", *command]
    return [*box, "--unshare-user", "--disable-userns", *command]


def environment() -> dict[str, str]:
    """The environment of a command in a box: of this process's own only what holds no secret."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | INSIDE


def environment_of_ranks() -> dict[str, str]:
    """This process's environment; if it was asked to put its ranks into a box, what of it holds no secret."""
    if limits_asked_for() is None:
        return dict(os.environ)
    kept = {name: text for name, text in os.environ.items() if name in TO_RANKS or name.startswith(OF_DEVICES)}
    return kept | {"USER": INSIDE["USER"]}


def _most_of_the_user(limits: Limits) -> int:
    """The kernel's limit of processes, which counts all of a user's. Root's boxes have users of their own; another
    user's share one, so the limit is far above a box's, and ``MemoryWatch`` counts each submission's."""
    return limits.processes * (1 if os.getuid() == 0 else OF_ONE_USER)


def _system() -> list[str]:
    options = ["--proc", "/proc", "--dev", "/dev"]
    for path in SYSTEM:
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", path, path]
    for name in ETC:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return options


def _gpus() -> list[str]:
    """The device files of NVIDIA's driver: one for each GPU, and those that all share."""
    paths = (str(path) for path in sorted(Path("/dev").glob("nvidia*")))
    return [option for path in paths for option in ("--dev-bind-try", path, path)]


def _python() -> list[str]:
    """The interpreter's folders and those of the two packages; not the repository around them."""
    package = Path(__file__).resolve().parents[1]
    course = package.with_name("ringzero_course")
    folders = {Path(sys.prefix), Path(sys.base_prefix), package, *([course] if course.is_dir() else [])}
    outermost = [folder for folder in folders if not folders.intersection(folder.parents)]  # a wheel lies in the first
    return sorted(str(folder) for folder in outermost if not str(folder).startswith("/usr/"))


def _ways_to(paths: Iterable[Path]) -> list[Path]:
    """The folders above the paths, which bubblewrap makes; it lets nobody but root pass."""
    paths = list(paths)
    above = {Path("/etc"), *(folder for path in paths for folder in path.parents)}
    there = {Path("/"), Path("/tmp"), Path("/dev"), Path("/dev/shm"), Path("/usr")}
    return sorted(above - there - set(paths))


def user_id() -> int:
    """The user as whom this process, if it is root, runs what it does not trust."""
    return FIRST_USER + os.getpid() % USERS


def give(path: Path | str) -> None:
    """Let the processes of this process's boxes use the file or folder ``path``."""
    if os.getuid() == 0:
        os.chown(path, user_id(), user_id(), follow_symlinks=False)  # a rank may have put a link in its place


def open_to_ranks(*paths: Path | str) -> None:
    """Let this process's ranks use these files and folders, if it was asked to put its ranks into a box."""
    if limits_asked_for() is not None:
        for path in paths:
            give(path)


def limits_asked_for() -> Limits | None:
    """The limits with which this process is to start ranks in a box; None if it was not asked to."""
    text = os.environ.get(ASKED_FOR)
    return None if text is None else Limits(**json.loads(text))


def asking_for(limits: Limits) -> dict[str, str]:
    """The environment of a process that is to start its ranks in a box."""
    return {ASKED_FOR: json.dumps(asdict(limits))}


@functools.cache
def missing_ability() -> tuple[str, str, str] | None:
    """None if this machine can make a box, else ``(what is missing, what was seen, how to get it)``."""
    if sys.platform != "linux":
        return "Linux", f"this is {sys.platform}", "Use a Linux machine or a virtual one"
    for program, package in (("bwrap", "bubblewrap"), ("prlimit", "util-linux"), ("setpriv", "util-linux")):
        if shutil.which(program) is None:
            return program, "not on the PATH", f"apt-get install {package}"
    command = enclosed([sys.executable, "-c", "import ringzero"], [], Limits())
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        fix = "As root: sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
        return "namespaces", tried.stderr.strip()[-300:] or f"bwrap ended with {tried.returncode}", fix
    return None


def interrupt(box: int) -> None:
    """Send SIGINT to the command in the box that this process started with the process id ``box``."""
    with contextlib.suppress(psutil.Error, IndexError):
        first = psutil.Process(box).children()[0]  # of the box
        first.children()[0].send_signal(signal.SIGINT)


class MemoryWatch:
    """While it is entered, all boxes of what this process started take at most ``limits.memory``: the largest process
    of a box is killed where it is more. So is each process outside that takes more itself: it may read what a box left.
    Where the boxes share a user with others, more than ``limits.processes`` processes and threads are killed, too.
    ``told`` is called with a sentence then."""

    def __init__(self, limits: Limits, told: Callable[[str], None]):
        self._limits, self._told, self._over = limits, told, threading.Event()

    def __enter__(self) -> "MemoryWatch":
        self._thread = threading.Thread(target=self._watch, name="memory of the boxes", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            boxed, outside = _started()
            for process in outside:
                if _resident(process) > self._limits.memory:
                    self._end(process, "what reads the results was ended, at most {}")
            if os.getuid() != 0 and sum(map(_threads, boxed)) > self._limits.processes:
                for process in boxed:
                    with contextlib.suppress(psutil.Error):
                        process.kill()
                self._told(f"PROCESS LIMIT: all were ended, at most {self._limits.processes} processes and threads")
                continue
            if sum(map(_resident, boxed)) > self._limits.memory:  # what forks share is counted more than once
                sizes = {process: _own_share(process) for process in boxed}
                if sum(sizes.values()) > self._limits.memory:
                    largest = max(sizes, key=lambda process: sizes[process])
                    self._end(largest, "the largest process was ended, at most {} for all")

    def _end(self, process: psutil.Process, sentence: str) -> None:
        with contextlib.suppress(psutil.Error):  # it may have ended by itself; the watch goes on
            process.kill()
            self._told(f"MEMORY LIMIT: {sentence.format(f'{self._limits.memory / 2**30:g} GiB')}")


def _started() -> tuple[list[psutil.Process], list[psutil.Process]]:
    """The processes in boxes of what this process started, and those outside."""
    boxed: dict[int, psutil.Process] = {}
    outside: dict[int, psutil.Process] = {}
    boxes = set()
    for process in psutil.Process().children(recursive=True):  # each behind its parent
        with contextlib.suppress(psutil.Error):
            parent = process.ppid()
            (boxed if parent in boxed or parent in boxes else outside)[process.pid] = process
            if process.name() == "bwrap":
                boxes.add(process.pid)
    return list(boxed.values()), list(outside.values())


def _resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _threads(process: psutil.Process) -> int:
    try:
        return process.num_threads()
    except psutil.Error:
        return 0


def _own_share(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0
