"""Files that are whole or absent: what reaches the disk, in which order, and what is left when a writer fails."""

import os

import pytest
import torch

from ringzero.processes import durable
from ringzero.unsynced import saved_shards
from ringzero.unsynced.rules import Synchronous
from ringzero.unsynced.serving import Server
from ringzero.unsynced.slices import Slice
from ringzero.zero import saved_set


@pytest.fixture
def events(monkeypatch):
    """``("flush", name of a file or folder)`` and ``("rename", new name)``, in the order of the calls."""
    seen = []
    fsync, replace = os.fsync, os.replace

    def noting_fsync(handle):
        seen.append(("flush", os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))))
        fsync(handle)

    def noting_replace(old, new):
        seen.append(("rename", os.path.basename(new)))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "replace", noting_replace)
    return seen


def server(file):
    def optimizer(parameters):
        return torch.optim.SGD(parameters, lr=1.0)

    return Server([Slice(0, 0, 0, 3)], torch.zeros(3), optimizer, Synchronous(), [0], [0], print, file, 1)


WRITERS = {
    "a text": lambda path: durable.write(path, "text"),
    "a member's shard": lambda path: saved_shards.save(
        path.parent, saved_shards.SavedSet(1, 0, 1), 0, torch.zeros(1, 2), {}
    ),
    "a server's share": lambda path: server(path).save(),
    "a checkpoint's shard": lambda path: saved_set.write_file(path, lambda part: part.write_bytes(b"shard")),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_the_file_is_flushed_before_it_gets_its_name_and_the_folder_after(events, tmp_path, writer):
    WRITERS[writer](tmp_path / "state.pt")
    (path,) = tmp_path.iterdir()
    suffix = f".{os.getpid()}.part" if writer == "a text" else ".part"
    assert events == [("flush", path.name + suffix), ("rename", path.name), ("flush", tmp_path.name)]


def test_what_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    durable.write(tmp_path / "state", "old")
    with pytest.raises(UnicodeEncodeError):
        durable.write(tmp_path / "state", "half, then a lone surrogate: \ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert (tmp_path / "state").read_text() == "old"
