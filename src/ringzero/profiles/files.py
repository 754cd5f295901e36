"""A file of trace events, as it stands on the disk: plain or compressed, whole or cut short.

The Trace Event Format is JSON: an object with a list ``traceEvents``, or that list alone. torch's profiler adds to the
object which rank wrote it. A job that is killed while it writes leaves a file that ends anywhere; every event before
that is good.
"""

import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

GZIPPED = b"\x1f\x8b"
EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')
ENDINGS = (".json", ".json.gz")


class Events(NamedTuple):
    """What a file holds: the events that lasted (with "ts" and "dur") or name a track, and what is said about all.

    ``cut_short``  whether the file ended before its last event did
    """

    file: str
    events: list[dict[str, Any]]
    about: dict[str, Any]
    cut_short: bool


def find(paths: Iterable[str | Path]) -> list[Path]:
    """The files named, and of a folder those ending in .json or .json.gz.

    Raises ValueError for a path that is not there and for a folder without such files.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.name.endswith(ENDINGS))
            if not inside:
                raise ValueError(f"{path} holds no file ending in {' or '.join(ENDINGS)}")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise ValueError(f"{path} is not there; give trace files of the ranks, or the folder that holds them")
    twice = sorted(str(path) for path in set(found) if found.count(path) > 1)
    if twice:
        raise ValueError(f"{twice[0]} is given twice; give one file for each rank")
    return found


def load(path: str | Path) -> Events:
    """The events of one file.

    Raises ValueError for a file that is no trace: no text, no JSON, JSON of something else, or without any event.
    """
    text, ends_early = _text(Path(path))
    if not text.strip():
        raise ValueError(f"{path} is empty; a trace is written by profile.export_chrome_trace")
    try:
        content, cut_short = json.loads(text), ends_early
    except ValueError:
        content, cut_short = _up_to_the_cut(str(path), text), True
    if isinstance(content, list):
        content = {"traceEvents": content}
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise ValueError(f"{path} is JSON, but no trace: it has no list traceEvents")
    events = [event for event in content.pop("traceEvents") if _is_used(event)]
    if not any(event["ph"] == "X" for event in events):
        how = "is cut short before its first event" if cut_short else "is a trace without any event that lasted"
        raise ValueError(f"{path} {how}; profile at least one step, inside torch.profiler.profile()")
    return Events(str(path), events, content, cut_short)


def _text(path: Path) -> tuple[str, bool]:
    """The file's text, and whether it is compressed and its end is missing."""
    data, ends_early = path.read_bytes(), False
    if data.startswith(GZIPPED):
        try:
            data = gzip.decompress(data)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            data, ends_early = _decompressed_up_to_the_cut(data), True
    try:
        return data.decode("utf-8", errors="ignore" if ends_early else "strict"), ends_early
    except UnicodeDecodeError as error:
        if error.start >= len(data) - 3:  # the cut went through a letter of several bytes
            return data[: error.start].decode("utf-8"), False
        raise ValueError(f"{path} is no trace: it is no text; give what profile.export_chrome_trace wrote") from None


def _decompressed_up_to_the_cut(data: bytes) -> bytes:
    pieces, decompressor = [], zlib.decompressobj(wbits=31)
    with contextlib.suppress(zlib.error):  # what came before the damage stays
        for at in range(0, len(data), 4096):
            pieces.append(decompressor.decompress(data[at : at + 4096]))
    return b"".join(pieces)


def _up_to_the_cut(path: str, text: str) -> dict[str, Any]:
    """What a trace says before its events, and the events that are whole."""
    begins = EVENTS.search(text)
    if begins:
        try:
            content = json.loads(text[: begins.end()] + "]}")
        except ValueError:
            begins = None
    if not begins:
        first = next((line.strip()[:40] for line in text.splitlines() if line.strip()), "")
        raise ValueError(f"{path} is no trace: it is no JSON with a list traceEvents; it begins with {first!r}")
    decode, at = json.JSONDecoder().raw_decode, begins.end()
    while True:
        at = _after_blanks(text, at)
        try:
            event, at = decode(text, at)
        except ValueError:
            return content
        content["traceEvents"].append(event)


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _is_used(event: Any) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("name"), str):
        return False
    numbers = (event.get("ts"), event.get("dur"))
    return event.get("ph") == "M" or (event.get("ph") == "X" and all(isinstance(n, int | float) for n in numbers))
