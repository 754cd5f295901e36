"""A file of records, each there twice: generation n is written beside n - 1, and counts once its header is on the disk.

    | header 0 | header 1 | records of even generations | records of odd generations |

A header says which generation it is of, and ends with a checksum. Whoever dies while writing leaves the generation
before whole, with its header. Reads and writes go past the page cache (``O_DIRECT``) where the system has that:
what is read once a step would only push other pages out.
"""

import errno
import json
import os
from itertools import accumulate
from pathlib import Path
from typing import Any
from zlib import crc32

import torch

ALIGNMENT = 4096  # of places in the file, of sizes and of memory, as O_DIRECT wants them


def aligned(nbytes: int) -> int:
    """``nbytes``, rounded up."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def aligned_memory(nbytes: int, pinned: bool = False) -> torch.Tensor:
    """Memory of ``nbytes``, uint8, that begins where O_DIRECT allows."""
    roomy = torch.empty(nbytes + ALIGNMENT, dtype=torch.uint8, device="cpu", pin_memory=pinned)
    begin = -roomy.data_ptr() % ALIGNMENT
    return roomy[begin : begin + nbytes]


class Records:
    """Records of ``sizes`` bytes, each a multiple of ``ALIGNMENT``, and headers of ``header_bytes`` at most.

    ``create`` makes the file and takes its room on the disk, so OSError comes there and not in the middle of training.
    """

    def __init__(self, path: Path, sizes: list[int], header_bytes: int):
        self.path, self.sizes, self._header = path, sizes, aligned(header_bytes + 64)
        self._begins = [2 * self._header + begin for begin in accumulate(sizes, initial=0)]
        self.bytes = 2 * self._begins[-1] - 2 * self._header
        self._file = -1

    def __del__(self) -> None:
        self.close()

    def create(self) -> None:
        """A new file, in place of one that may be there."""
        self._open(os.O_CREAT | os.O_TRUNC)
        try:
            _take_room(self._file, self.bytes)
        except OSError as error:
            os.unlink(self.path)
            free = os.statvfs(self.path.parent).f_bavail * os.statvfs(self.path.parent).f_frsize
            raise OSError(error.errno, f"{os.strerror(error.errno or 0)}: {self.path} needs {self.bytes:,} bytes, "
                          f"and {free:,} are free there") from None  # fmt: skip
        sync_folder(self.path.parent)

    def open(self) -> None:
        """The file that is there. ValueError if it is not as long as these records."""
        if self.path.stat().st_size != self.bytes:
            raise ValueError(f"{self.path} has {self.path.stat().st_size:,} bytes, and this model needs {self.bytes:,}")
        self._open(0)

    def _open(self, flags: int) -> None:
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0) | flags, 0o600)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)  # as on tmpfs

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def read(self, record: int, generation: int, into: torch.Tensor) -> None:
        """Fill ``into``, from ``aligned_memory``, with a record."""
        _all(os.preadv, self._file, into, self._place(record, generation))

    def read_part(self, record: int, generation: int, start: int, stop: int) -> torch.Tensor:
        """Bytes ``start`` to ``stop`` of a record, and no more of it than alignment asks for."""
        begin = start // ALIGNMENT * ALIGNMENT
        memory = aligned_memory(aligned(stop - begin))
        _all(os.preadv, self._file, memory, self._place(record, generation) + begin)
        return memory[start - begin : stop - begin]

    def write(self, record: int, generation: int, source: torch.Tensor) -> None:
        """Write a record of a generation that is not whole yet."""
        _all(os.pwritev, self._file, source, self._place(record, generation))

    def _place(self, record: int, generation: int) -> int:
        of_one_generation = self._begins[-1] - 2 * self._header
        return self._begins[record] + generation % 2 * of_one_generation

    def sync(self) -> None:
        """Return once all that was written is on the disk."""
        getattr(os, "fdatasync", os.fsync)(self._file)

    def commit(self, generation: int, about: Any) -> None:
        """From now on ``generation``, all of whose records are on the disk, is the last. ``about`` goes into JSON."""
        text = json.dumps([generation, about]).encode()
        assert len(text) + 32 <= self._header, (len(text), self._header)
        memory = aligned_memory(self._header)
        line = b"%08x %d " % (crc32(text), len(text)) + text
        memory.zero_()[: len(line)] = torch.frombuffer(bytearray(line), dtype=torch.uint8)
        _all(os.pwritev, self._file, memory, generation % 2 * self._header)
        self.sync()

    def forget(self, generation: int) -> None:
        """The header of ``generation`` does not count any more."""
        memory = aligned_memory(self._header).zero_()
        _all(os.pwritev, self._file, memory, generation % 2 * self._header)
        self.sync()

    def headers(self) -> dict[int, Any]:
        """``{generation: about}`` of those that are whole."""
        found, memory = {}, aligned_memory(self._header)
        for which in range(2):
            _all(os.preadv, self._file, memory, which * self._header)
            checksum, length, text = (bytes(memory.numpy()).split(b" ", 2) + [b"", b""])[:3]
            text = text[: int(length or b"0")] if length.isdigit() else b""
            if text and checksum == b"%08x" % crc32(text):
                generation, about = json.loads(text)
                found[generation] = about
        return found


def _take_room(file: int, nbytes: int) -> None:
    """Make the file so long, with its places on the disk where the system has a call for that (macOS has none)."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, nbytes)
    else:
        os.ftruncate(file, nbytes)


def _all(move: Any, file: int, memory: torch.Tensor, place: int) -> None:
    """Read or write all of ``memory``; the system may do less at a time."""
    raw, done = memory.numpy(), 0
    while done < len(raw):
        moved = move(file, [raw[done:]], place + done)
        if not moved:
            raise OSError(errno.EIO, f"the file ends {len(raw) - done} bytes too early")
        done += moved


def sync_folder(folder: Path) -> None:
    """Return once new names in ``folder`` are on the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
