"""What one rank alone cannot read, write or take over raises on all, by the rank's name, and no rank waits."""

import shutil
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.zero import File, ZeroStage2, load, save


def said(folder, what):
    rank, home = dist.get_rank(), File(folder) if what == "step" else None
    model = ZeroStage2(torch.nn.Linear(4, 4), torch.optim.AdamW, home=home)
    directory, extra = Path(folder), {"step": 1}
    if what == "folder" and rank:
        directory = directory / "own"
        directory.write_text("x")
    if what == "extra" and rank == 0:
        extra = {"step": torch.ones(1)}
    if what in ("load", "manifest", "other"):
        save(model, directory)
    if what == "load" and rank:
        directory = directory / "nothing"
    if what in ("manifest", "other") and rank:
        copied = shutil.copytree(directory, directory / "copy")
        directory, text = copied, (copied / "manifest.json").read_text()
        (copied / "manifest.json").write_text("{" if what == "manifest" else text.replace("null", "1"))
    dist.barrier()
    try:
        if what == "state":
            state = model.state_dict()
            model.load_state_dict(state if rank == 0 else {"weight": state["weight"]})
        elif what == "step":
            model(torch.ones(1, 4)).sum().backward()
            for _ in range(4):  # more than the buffers that the home has
                model.optimizer.param_groups[0]["lr"] = "0.1" if rank else 0.1
                try:
                    model.step()
                except (RuntimeError, TypeError) as error:
                    first = error
            model.optimizer.param_groups[0]["lr"] = 0.1
            model.step()
            raise first
        elif what in ("folder", "extra"):
            save(model, directory, extra)
        else:
            load(model, directory)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


EXPECTED = {
    "folder": "OSError: rank 1: ",
    "extra": "TypeError: rank 0: Object of type Tensor is not JSON serializable",
    "load": "FileNotFoundError: rank 1: there is no checkpoint in",
    "manifest": "ValueError: rank 1: the checkpoint in",
    "other": "ValueError: rank 1 reads another checkpoint in",
    "state": "ValueError: rank 1: the state does not fit this model: bias is missing",
    "step": "rank 1: ",
}


@pytest.mark.parametrize("what", EXPECTED)
def test_all_ranks_raise_what_one_rank_has(what, tmp_path):
    for text in launch(said, str(tmp_path), what, world_size=2, timeout=100).returns:
        assert EXPECTED[what] in (text or "no error")
