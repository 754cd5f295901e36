"""Files that are whole or absent, also after a power cut."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, suffix: str = ".part") -> Iterator[Path]:
    """Where to write a file that becomes ``path`` at the end of the block, in one step and once it is on the disk.

        with replacing(folder / "state.pt") as unfinished:
            torch.save(state, unfinished)

    If the block raises, ``path`` is as it was. A process that dies inside leaves the file with the ``suffix`` behind;
    the next one overwrites it.
    """
    unfinished = path.with_name(path.name + suffix)
    try:
        yield unfinished
        with open(unfinished, "rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _flush(path.parent)  # without this the new name may be lost


def write(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, and make its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, f".{os.getpid()}.part") as unfinished:  # several processes may write it at once
        unfinished.write_text(text, encoding="utf-8")


def flush_files(folder: Path) -> None:
    """Have all that was written below ``folder`` reach the disk."""
    for path in [*folder.rglob("*"), folder]:
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            _flush(path)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
