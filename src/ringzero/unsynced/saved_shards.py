"""Sets of files in which members of a quorum save their shards, one file a member.

A file gets its name when it is whole and on the disk, and a set counts when all its files are there. So when a member
dies while it saves, the set before is still complete.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ringzero.collectives.schedule import chunk_bounds
from ringzero.processes import durable


class SavedSet(NamedTuple):
    """A set: saved after so many ``steps``, in this ``epoch`` of the quorum, by so many ``ranks``."""

    steps: int
    epoch: int
    ranks: int

    def path(self, folder: Path, rank: int) -> Path:
        return folder / f"step-{self.steps}-epoch-{self.epoch}-rank-{rank}-of-{self.ranks}.pt"


def save(folder: Path, saved: SavedSet, rank: int, rows: Tensor, about: Any) -> None:
    """Write ``rows``, this rank's chunk of each vector, and ``about``, plain data that says what the rows are."""
    with durable.replacing(saved.path(folder, rank)) as part:
        torch.save({"rows": rows, "about": about}, part)


def newest(folder: Path) -> SavedSet | None:
    """The complete set with the most steps; None if there is none."""
    complete = [saved for saved, files in _sets(folder).items() if files == saved.ranks]
    return max(complete, default=None)


def about(folder: Path, saved: SavedSet) -> Any:
    """What the ranks said about their rows."""
    return _load(saved.path(folder, 0))["about"]


def read(folder: Path, saved: SavedSet, numel: int, start: int, stop: int) -> Tensor:
    """Columns ``start`` to ``stop`` of the rows, which have ``numel`` in all files together."""
    bounds = chunk_bounds(numel, saved.ranks).tolist()
    parts = []
    for rank, (begin, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        if max(start, begin) < min(stop, end):
            rows = _load(saved.path(folder, rank))["rows"]
            parts.append(rows[:, max(start, begin) - begin : min(stop, end) - begin])
    return torch.cat(parts, dim=1) if parts else _load(saved.path(folder, 0))["rows"][:, :0]


def remove(folder: Path, first: int, last: float = float("inf")) -> None:
    """Remove all files of sets with ``first`` to ``last`` steps, these two not among them."""
    for path in folder.glob("step-*"):
        if (found := _name(path)) and first < found.steps < last:
            path.unlink(missing_ok=True)


def _sets(folder):
    return Counter(found for path in folder.glob("step-*.pt") if (found := _name(path)))


def _name(path):
    found = re.fullmatch(r"step-(\d+)-epoch-(\d+)-rank-\d+-of-(\d+)\.pt(\.part)?", path.name)
    return SavedSet(*map(int, found.groups()[:3])) if found else None


def _load(path):
    return torch.load(path, weights_only=True, map_location="cpu")
