"""Files that are whole or absent, also after a power cut."""

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write ``text`` to ``path``: a temporary file beside it, flushed to the disk, takes its name in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    _flush(path.parent)


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
