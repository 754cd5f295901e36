"""The files of a checkpoint on the disk: each written whole, and a manifest with their sizes, hashes and pieces."""

import hashlib
import json
from functools import cache, partial
from pathlib import Path

import torch
from safetensors import safe_open

from ringzero.processes import durable
from ringzero.zero import state

MANIFEST, SHARDS = "manifest.json", "shard-*-*-of-*"


def write_file(path, write):
    """Have ``write(part)`` write the file that becomes ``path``. Returns its name, size and hash."""
    with durable.replacing(path) as part:
        write(part)
        return {"name": path.name, "bytes": part.stat().st_size, "sha256": _hash(part)}


def number_of(path):
    """The number of the set that a file belongs to."""
    return int(path.name.split("-")[1])


def remove_others(directory, number):
    for old in directory.glob(SHARDS):
        if number_of(old) != number:
            old.unlink()


def read_manifest(directory):
    if not (directory / MANIFEST).exists():
        raise FileNotFoundError(f"there is no checkpoint in {directory}: {MANIFEST} is missing")
    try:
        return json.loads((directory / MANIFEST).read_text())
    except ValueError as error:
        raise ValueError(f"the checkpoint in {directory} is damaged: {MANIFEST} is not JSON") from error


class SavedSet:
    """The files that ``manifest`` names in ``directory``, read in pieces: ``[file, start, stop]`` of each parameter."""

    def __init__(self, directory: Path, manifest: dict):
        self._directory, self._files = directory, manifest["files"]
        self._pieces, self._states = manifest["pieces"], manifest["states"]
        self._opened = cache(lambda file: safe_open(directory / self._files[file]["name"], framework="pt"))

    def damages(self, rank: int, ranks: int) -> list[str]:
        """What is wrong with the files that ``rank`` of so many ``ranks`` looks at."""
        mine = self._files[rank::ranks]
        return [damage for file in mine if (damage := _damage(self._directory / file["name"], file))]

    def untrained(self, key, name, start=0, stop=None):
        """Elements of what is not trained: from the pieces of the parameter ``name`` if it was sharded."""
        if name not in self._pieces:
            return self._opened(0).get_tensor(f"whole/{key}").reshape(-1)[start:stop]
        end = self._pieces[name][-1][2]
        return self._read("parameter", name, start, end if stop is None else stop)

    def shards(self, vector):
        """This rank's shards of a vector's states."""
        states = {}
        for key, kind in self._states.items():
            have = [name for name in vector.parameters if name in self._pieces and self._has(key, name)]
            if have and kind == "sharded":
                states[key] = state.shard(vector, partial(self._stepped, key))
            elif have:
                file, *_ = self._pieces[have[0]][0]
                states[key] = self._opened(file).get_tensor(f"{key}/{have[0]}")
        return states

    def _has(self, key, name):
        file, *_ = self._pieces[name][0]
        return f"{key}/{name}" in self._opened(file).keys()  # noqa: SIM118  (it is no dict)

    def _stepped(self, key, name, start, stop):
        """Elements of a state; zeros if its parameter was never stepped, as others of its vector were."""
        return self._read(key, name, start, stop) if self._has(key, name) else torch.zeros(stop - start)

    def _read(self, key, name, start, stop):
        return torch.cat(
            [
                self._opened(file).get_slice(f"{key}/{name}")[max(start, begin) - begin : min(stop, end) - begin]
                for file, begin, end in self._pieces[name]
                if max(start, begin) < min(stop, end)
            ]
        )


def _damage(path, file):
    """What is wrong with a file of a set, or None."""
    if not path.exists():
        return f"{path.name} is missing"
    if path.stat().st_size != file["bytes"]:
        return f"{path.name} has {path.stat().st_size} bytes instead of {file['bytes']}"
    return None if _hash(path) == file["sha256"] else f"{path.name} is not what was written"


def _hash(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
