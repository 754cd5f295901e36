"""Files of the Flight Recorder as they stand on the disk: pickles and JSON, one for each rank, read without trust.

A pickle is a program for a small machine, and the usual ``pickle.load`` runs whatever that program calls. Here it may
build numbers, strings, lists, tuples and dictionaries, which is all that a dump holds. Every class or function that it
asks for is refused.
"""

import gzip
import io
import json
import pickle
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RANK = (re.compile(r"rank[-_]?(\d+)"), re.compile(r"(\d+)(?:\.(?:json|pickle|pkl|pt|gz))*$"))  # in a file's name
LARGEST = 999_999  # of the ranks of a job
PICKLED = b"\x80"  # how a pickle of protocol 2 or later begins
GZIPPED = b"\x1f\x8b"
KEYS = ("entries", "pg_config", "pg_status")  # of a dump, which has one of them at least


class UnreadableError(ValueError):
    """A file that holds no dump, or half of one: the message names the file and says why."""


class PlainUnpickler(pickle.Unpickler):
    """Plain data only. Without a class or function nothing in a pickle can be called."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse ``name``, whatever it is."""
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, and a dump needs no such thing")

    def persistent_load(self, pid: Any) -> Any:
        """Refuse an object that stands outside the pickle."""
        raise pickle.UnpicklingError("it refers to an object outside the file")


def find(paths: Iterable[str | Path]) -> dict[int, Path]:
    """``{rank: file}``: the files named, and of a folder those with a rank in their names.

    Raises ValueError for a path that is not there, a folder or file without ranks, and two files of one rank.
    """
    found: dict[int, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise ValueError(f"{path} is not there; give the folder with the dumps, one file for each rank")
        inside = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
        ranked = [(rank, file) for file in inside if (rank := rank_of(file)) is not None]
        if not ranked:
            what = "holds no file with a rank in its name" if path.is_dir() else "has no rank in its name"
            raise ValueError(f"{path} {what}, such as nccl_trace_rank_0 or rank0.json")
        for rank, file in ranked:
            if rank in found:
                raise ValueError(f"{found[rank]} and {file} are both of rank {rank}; give one file for each rank")
            found[rank] = file
    return found


def rank_of(file: Path) -> int | None:
    """The rank in a file's name: behind "rank", or else at its end."""
    found = next((match for pattern in RANK if (match := pattern.search(file.name))), None)
    return int(found[1]) if found is not None and len(found[1]) <= len(str(LARGEST)) else None  # else it is a date


def load(file: Path) -> dict[str, Any]:
    """What a file holds. Raises UnreadableError."""
    data = file.read_bytes()
    try:
        if data.startswith(GZIPPED):
            data = gzip.decompress(data)
        content = PlainUnpickler(io.BytesIO(data)).load() if data.startswith(PICKLED) else json.loads(data)
    except (pickle.UnpicklingError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise UnreadableError(f"{file} cannot be read{_why(data, error)}") from None
    except (LookupError, TypeError, AttributeError, MemoryError, OverflowError, RecursionError) as error:
        raise UnreadableError(f"{file} is no pickle of plain data: {type(error).__name__}: {error}") from None
    if not isinstance(content, dict) or not any(key in content for key in KEYS):
        raise UnreadableError(f"{file} is no dump of the Flight Recorder: it has neither of {', '.join(KEYS)}")
    version = str(content.get("version", ""))
    if version.startswith(("0.", "1.")):
        raise UnreadableError(
            f"{file} has the format {version}, of a torch before 2.4; formats from 2.0 on can be read"
        )
    return content


def _why(data: bytes, error: Exception) -> str:
    if not data:
        return ": it is empty"
    if isinstance(error, EOFError) or "truncated" in str(error) or "Unterminated" in str(error):
        return ": it is cut short"
    return f": {error}"
