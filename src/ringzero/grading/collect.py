"""The notebooks in a zip file that a learning platform made of a class's submissions.

| made by | a file in it |
|---|---|
| Canvas | ``doejane_LATE_12345_67890_04_ddp-1.ipynb`` |
| Moodle | ``Jane Doe_12345_assignsubmission_file_/04_ddp.ipynb`` |
| anybody | ``jane/04_ddp.ipynb``, ``class/jane/04_ddp.ipynb`` or ``jane/04_ddp/04_ddp.ipynb`` |

Only bytes are read: no path of the zip file is written to, and no other file in it is opened.
"""

import re
import zipfile
import zlib
from collections import Counter
from pathlib import Path, PurePosixPath

LARGEST = 50_000_000  # bytes of a notebook
CANVAS = re.compile(r"(?P<student_id>[a-z0-9'-]+)(?:_LATE)?_(?P<number>\d+)_\d+_(?P<file_id>.+?)(?:-\d+)?\.ipynb")
MOODLE = re.compile(r"(?P<student_id>.+)_(?P<number>\d+)_assignsubmission_file_?(?:/.*)?")
# What reading an entry raises: where it is damaged, encrypted (RuntimeError) or compressed in a way not known here.
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError)


class NotAZipError(ValueError):
    """The file is no zip file."""


def student_of(path: str, lab: str) -> tuple[str, str]:
    """The student whose notebook ``path`` is, in a form that can name a folder; "" where that cannot be told.

    And the student's number, if two students of one name differ by that alone.
    """
    parts = PurePosixPath(path).parts
    folders = [part for part in parts[:-1] if part != lab]
    for folder in folders:
        if found := MOODLE.fullmatch(folder):
            return _slug(f"{found['student_id']} {found['number']}"), ""
    if found := CANVAS.fullmatch(parts[-1]):
        return _slug(found["student_id"]), found["number"]
    return _slug(folders[-1]) if folders else "", ""


def notebooks(file: Path, lab: str) -> tuple[dict[str, tuple[bytes, str]], list[str]]:
    """``{student: (bytes, path in the zip file)}``, and a sentence for each file that was left out.

    Of a student's several notebooks the one counts whose name begins with the lab's, then the one added last. Students
    of one name have their numbers behind it. Raises NotAZipError.
    """
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, IsADirectoryError):
        raise NotAZipError(f"{file} is no zip file. Download the submissions as one zip file.") from None
    found: dict[str, tuple[bytes, str]] = {}
    left_out = []
    with archive:
        entries = [entry for entry in archive.infolist() if not _is_of_no_student(entry)]
        people = {student_of(entry.filename, lab) for entry in entries if entry.filename.endswith(".ipynb")}
        names = Counter(name for name, _ in people)
        for entry in entries:
            student, number = student_of(entry.filename, lab)
            if names[student] > 1 and number:
                student = f"{student}_{number}"
            if not entry.filename.endswith(".ipynb"):
                left_out.append(f"{entry.filename}: not a notebook")
            elif not student:
                left_out.append(f"{entry.filename}: its name does not say whose it is")
            elif entry.file_size > LARGEST:
                left_out.append(f"{entry.filename}: {entry.file_size} bytes, over the limit of {LARGEST}")
            elif student in found and _is_of(lab, found[student][1]) and not _is_of(lab, entry.filename):
                left_out.append(f"{entry.filename}: {student} has {found[student][1]}, too")
            else:
                try:
                    content = archive.read(entry)
                except UNREADABLE as error:
                    left_out.append(f"{entry.filename}: it cannot be read ({error})")
                    continue
                if student in found:
                    left_out.append(f"{found[student][1]}: {student} has {entry.filename}, too")
                found[student] = content, entry.filename
    return found, left_out


def _is_of_no_student(entry: zipfile.ZipInfo) -> bool:
    return entry.is_dir() or "__MACOSX" in entry.filename or ".ipynb_checkpoints" in entry.filename


def _is_of(lab: str, path: str) -> bool:
    name = PurePosixPath(path).name
    found = CANVAS.fullmatch(name)
    return (found["file_id"] if found else name).startswith(lab)


def _slug(name: str) -> str:
    return re.sub(r"[^\w.@-]+", "_", name.strip().lower()).strip("._")
