"""A box for a command that nobody trusts: bubblewrap, with limits.

Inside, there is the system, read-only, Python and this package; a ``/tmp`` and a ``/dev/shm`` of its own, in memory and
of bounded size; and the folders that the caller gives. There is no network but the box's own loopback, no other
process, no capability, and no GPU unless the limits say so. Where this process is root, the command runs as another
user, so that the kernel's limits count.

A process with ``asking_for(limits)`` in its environment starts its ranks in such boxes, too.
"""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from ringzero.processes import box

STUDENTS_KERNEL = "RINGZERO_STUDENTS_KERNEL"  # in the environment of test cells: how to reach the kernel in the box
FIRST_USER, USERS = 61184, 4000  # user ids that systems keep for services that come and go
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/sys/bus/pci", "/sys/devices")
ETC = ("hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "fonts", "mime.types")
PASSED_ON = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "OMP_NUM_THREADS")  # of the environment; it may hold secrets
TO_RANKS = (*PASSED_ON, "TMPDIR", "RINGZERO_GRADING", box.ASKED_FOR)  # and what begins so:
OF_DEVICES = ("CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "MALLOC_")
INSIDE = {"TMPDIR": "/tmp", "IPYTHONDIR": "/tmp/ipython", "MPLCONFIGDIR": "/tmp/matplotlib", "USER": "student"}
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
    """The command line that runs ``command`` in a line, in which only the folders ``writable`` are not its own."""
    line = [
        "prlimit",
        f"--nproc={_most_of_the_user(limits)}",
        f"--fsize={limits.file}",
        "--nofile=4096",
        "--core=0",
        "--",
    ]
    line += ["bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    line += ["--unshare-uts", "--unshare-cgroup-try", "--hostname", "localhost", "--cap-drop", "ALL"]
    line += _system()
    line += _gpus() if limits.gpus else []
    for folder in ("/tmp", "/dev/shm"):
        line += ["--perms", "1777", "--size", str(limits.temporary), "--tmpfs", folder]
    writable = list(writable)
    for kind, paths in (("--ro-bind", _python()), ("--bind", [str(folder) for folder in writable])):
        for path in paths:
            line += [kind, path, path]
    for above in _ways_to([*map(Path, [*SYSTEM, *_python()]), *writable]):
        line += ["--chmod", "0755", str(above)]
    line += ["--dir", "/tmp/home", "--setenv", "HOME", "/tmp/home", "--chdir", directory]
    line += ["--chmod", "1777", "/tmp/home"]
    for folder in ("/", "/dev"):  # in memory, of no bounded size, and a user's own where root does not run the box
        line += ["--remount-ro", folder]
    if os.getuid() == 0:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):  # to drop them all with root's user id
            line += ["--cap-add", capability]
        user = str(user_id())
        drop = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs"]
        return [*line, *drop, "--inh-caps=-all", "--bounding-set=-all", *command]
    return [*line, "--unshare-user", "--disable-userns", *command]


def environment() -> dict[str, str]:
    """The environment of a command in a box: of this process's own only what holds no secret."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | INSIDE


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
    course = Path(__file__).resolve().parents[1]
    folders = {Path(sys.prefix), Path(sys.base_prefix), course, Path(box.__file__).resolve().parents[1]}
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


@dataclass(frozen=True)
class BoxOfRanks:
    """A box with these limits around ranks, as ``ringzero.processes.box`` wants it."""

    limits: Limits

    @property
    def gpus(self) -> bool:
        return self.limits.gpus

    def enclosed(self, command: Iterable[str], writable: Iterable[Path]) -> list[str]:
        return enclosed(command, writable, self.limits)

    def environment(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if name in TO_RANKS or name.startswith(OF_DEVICES)}
        return kept | {"USER": INSIDE["USER"]}

    def give(self, path: Path | str) -> None:
        give(path)


def box_of_ranks(**limits: Any) -> BoxOfRanks:
    """The box that was asked for by ``asking_for``."""
    return BoxOfRanks(Limits(**limits))


def asking_for(limits: Limits) -> dict[str, str]:
    """The environment of a process that is to start its ranks in a box."""
    return box.asking(__name__, **asdict(limits))


def limits_asked_for() -> Limits | None:
    """The limits with which this process is to start ranks in a box; None if it was not asked to."""
    asked = box.asked_for()
    assert asked is None or isinstance(asked, BoxOfRanks)
    return None if asked is None else asked.limits


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


def interrupt(pid: int) -> None:
    """Send SIGINT to the command in the box that this process started with the process id ``pid``."""
    with contextlib.suppress(psutil.Error, IndexError):
        first = psutil.Process(pid).children()[0]  # of the box
        first.children()[0].send_signal(signal.SIGINT)
