"""What a disk does: bytes a second of large aligned reads and writes past the page cache, alone and at once.

rates("/nvme")  # {"read": 3.1e9, "write": 1.4e9, "both": 2.0e9}
"""

import mmap
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHUNK = 4 * 2**20  # bytes that are read or written at a time


def rates(folder: str | os.PathLike, nbytes: int = 256 * 2**20, repeat: int = 3) -> dict[str, float]:
    """Bytes a second, the median of ``repeat`` times: "read", "write", and "both", a read beside a write, together.

    Written bytes count once they are on the disk. Files of ``nbytes`` are made in ``folder``, and removed. Raises
    OSError where they do not fit. A file system without O_DIRECT, such as tmpfs, is measured with its page cache.
    """
    size = max(1, nbytes // CHUNK) * CHUNK
    with tempfile.TemporaryDirectory(dir=folder) as here, ThreadPoolExecutor(1) as beside:
        source, target = Path(here, "source"), Path(here, "target")
        for path in (source, target):  # places on the disk are taken before the time is
            _write(path, size)
        found: dict[str, list[float]] = {"read": [], "write": [], "both": []}
        for _ in range(repeat):
            found["read"].append(size / _seconds(lambda: _read(source, size)))
            found["write"].append(size / _seconds(lambda: _write(target, size)))
            start = time.perf_counter()
            writing = beside.submit(_write, target, size)
            _read(source, size)
            writing.result()
            found["both"].append(2 * size / (time.perf_counter() - start))
    return {what: sorted(each)[len(each) // 2] for what, each in found.items()}


def _seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | getattr(os, "O_DIRECT", 0), 0o600)
    except OSError:
        return os.open(path, flags, 0o600)


def _read(path: Path, size: int) -> None:
    memory, file = mmap.mmap(-1, CHUNK), _open(path, os.O_RDONLY)
    try:
        for place in range(0, size, CHUNK):
            os.preadv(file, [memory], place)
    finally:
        os.close(file)


def _write(path: Path, size: int) -> None:
    memory, file = mmap.mmap(-1, CHUNK), _open(path, os.O_RDWR | os.O_CREAT)
    memory[:] = os.urandom(4096) * (CHUNK // 4096)
    try:
        for place in range(0, size, CHUNK):
            os.pwritev(file, [memory], place)
        getattr(os, "fdatasync", os.fsync)(file)
    finally:
        os.close(file)
