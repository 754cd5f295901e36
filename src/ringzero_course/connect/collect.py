"""The notebooks in a zip file that a learning platform made of a class's submissions.

| made by | a file in it |
|---|---|
| Canvas | ``doejane_LATE_12345_67890_04_ddp-1.ipynb``, ``anon_Xk3fq_67890_04_ddp.ipynb`` |
| Moodle | ``Jane Doe_12345_assignsubmission_file_/04_ddp.ipynb`` |
| anybody | ``jane/04_ddp.ipynb``, ``class/jane/04_ddp.ipynb`` or ``jane/04_ddp/04_ddp.ipynb`` |

Whose a file is, a number says: two people may have one name. Of a group Canvas gives one member's number. Only bytes
are read: no path of the zip file is written to, and no other file in it is opened.
"""

import contextlib
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

LARGEST = 50_000_000  # bytes of a notebook
CANVAS = re.compile(
    r"(?:(?!(?:LATE_)?anon_)(?P<name>\w+?)_)?(?P<late>LATE_)?(?P<number>anon_[^\W_]+|\d+)_\d+_(?P<file>.+?)(?:-\d+)?\.ipynb"
)
MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_file_?(?:/.*)?")
# What reading an entry raises: where it is damaged, encrypted (RuntimeError) or compressed in a way not known here.
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError)


class NotAZipError(ValueError):
    """The file is no zip file."""


@dataclass(frozen=True)
class Whose:
    """``student`` in a form that can name a folder, "" where that cannot be told; the ``number`` on the platform."""

    student: str
    number: str = ""
    late: bool = False


@dataclass(frozen=True)
class Collected:
    """The bytes of a notebook, its path in the zip file, and from Canvas the student's number and "late"."""

    content: bytes
    path: str
    number: str = ""
    late: bool = False


def whose(path: str, lab: str, roster: Mapping[str, str] | None = None) -> Whose:
    """Whose notebook ``path`` is. ``roster`` is ``{number in Canvas: student}``."""
    parts = PurePosixPath(path).parts
    folders = [part for part in parts[:-1] if part != lab]
    for folder in folders:
        if found := MOODLE.fullmatch(folder):  # its numbers are others in each assignment
            return Whose(_slug(f"{found['name']} {found['number']}"))
    if found := CANVAS.fullmatch(parts[-1]):
        number, late = found["number"], bool(found["late"])
        known = (roster or {}).get(number)
        return Whose(known or _slug(f"{found['name'] or ''} {number}"), number, late)
    return Whose(_slug(folders[-1]) if folders else "")


def notebooks(file: Path, lab: str, roster: Mapping[str, str] | None = None) -> tuple[dict[str, Collected], list[str]]:
    """``{student: Collected}``, and a sentence for each file that was left out.

    Of a student's several notebooks the one counts whose name begins with the lab's, then the one added last. Raises
    NotAZipError.
    """
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, IsADirectoryError):
        raise NotAZipError(f"{file} is no zip file. Download the submissions as one zip file.") from None
    found: dict[str, Collected] = {}
    left_out = []
    with archive:
        for entry in archive.infolist():
            name = _name(entry)
            if entry.is_dir() or "__MACOSX" in name or ".ipynb_checkpoints" in name:
                continue
            of = whose(name, lab, roster)
            before = found.get(of.student)
            if not name.endswith(".ipynb"):
                left_out.append(f"{name}: not a notebook")
            elif not of.student:
                left_out.append(f"{name}: its name does not say whose it is")
            elif entry.file_size > LARGEST:
                left_out.append(f"{name}: {entry.file_size} bytes, over the limit of {LARGEST}")
            elif before is not None and _is_of(lab, before.path) and not _is_of(lab, name):
                left_out.append(f"{name}: {of.student} has {before.path}, too")
            else:
                try:
                    content = archive.read(entry)
                except UNREADABLE as error:
                    left_out.append(f"{name}: it cannot be read ({error})")
                    continue
                if before is not None:
                    left_out.append(f"{before.path}: {of.student} has {name}, too")
                found[of.student] = Collected(content, name, of.number, of.late)
    return found, left_out


def _name(entry: zipfile.ZipInfo) -> str:
    """Canvas writes UTF-8 and does not say so, which zipfile takes for the letters of a PC of 1981."""
    name = entry.filename
    if not entry.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode()
    return unicodedata.normalize("NFC", name)


def _is_of(lab: str, path: str) -> bool:
    name = PurePosixPath(path).name
    found = CANVAS.fullmatch(name)
    return (found["file"] if found else name).startswith(lab)


def _slug(name: str) -> str:
    return re.sub(r"[^\w.@-]+", "_", name.strip().lower()).strip("._")
