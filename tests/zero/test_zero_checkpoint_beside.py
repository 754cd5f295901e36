"""Checkpoints that a thread writes beside training: what they hold, what goes wrong, and ranks killed at any moment."""

import hashlib
import os
import random
import signal
import threading
import time

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, launch
from ringzero.zero import Hybrid, checkpoint, load, save
from tests import awkward, in_turn
from tests.awkward import mlp
from tests.zero.test_zero import sharded, step_sharded, zero
from tests.zero.test_zero_checkpoint import equal


def states(model):
    return dict(model.state_dict()), model.optimizer_state_dict()


def held_back():
    """Writing waits for the event that is returned."""
    go_on, write = threading.Event(), checkpoint.write_file

    def later(*args):
        go_on.wait()
        return write(*args)

    checkpoint.write_file = later
    return go_on


def trained_meanwhile(folder, stage, name, options):
    """What was saved, what is loaded while three more steps were made, and how many files there are."""
    model = sharded(stage, name, **options)
    scheduler = torch.optim.lr_scheduler.StepLR(model.optimizer, 1, gamma=0.5)
    step_sharded(model, 0)
    go_on = held_back()
    for begun in range(2):  # the first one's manifest is there when the second one begins
        then, rates = states(model), [group["lr"] for group in model.optimizer.param_groups]
        saving = save(model, folder, {"begun": begun}, asynchronous=True)
        for step in range(1, 4):
            step_sharded(model, step)
            scheduler.step()
        assert (folder / checkpoint.MANIFEST).exists() is (begun > 0)
        go_on.set()
        saving.wait()
        dist.barrier()
        go_on.clear()
    go_on.set()
    other = sharded(3, name)
    extra = load(other, folder)
    assert [group["lr"] for group in other.optimizer.param_groups] == rates
    return equal(states(other)[0], then[0]), equal(states(other)[1], then[1]), extra, len(list(folder.iterdir()))


@pytest.mark.parametrize(
    ("stage", "name", "options", "device"),
    [
        (3, "Frozen", {}, "cpu"),
        (2, "MixedTypes", {}, "cpu"),
        (1, "Tied", {}, "strict"),
        (3, "OddSizes", {"travel": Hybrid(2)}, "strict"),
    ],
)
def test_it_has_what_was_there_when_it_was_called(stage, name, options, device, tmp_path):
    results = launch(trained_meanwhile, tmp_path, stage, name, options, world_size=4, device=device).returns
    files = 1 + (2 if options else 4)
    assert results == [(True, True, {"begun": 1}, files)] * 4


def goes_wrong(folder):
    """What a wait, a save and a load say of a disk that is full on rank 1; after that all is well."""
    model, real = zero(3, mlp(), torch.optim.AdamW), checkpoint.save_file
    save(model, folder, 0)

    def full(tensors, path):
        raise OSError("no space left")

    said = []
    for then in ("wait", "save", "load"):
        checkpoint.save_file = full if dist.get_rank() == 1 else real
        saving = save(model, folder, 1, asynchronous=True)
        try:
            if then == "wait":
                saving.wait()
            elif then == "save":
                save(model, folder, 2)
            else:
                load(model, folder)
        except OSError as error:
            said.append(str(error))
        checkpoint.save_file = real
    said.append(awkward.error_of(lambda: save(model, folder, {1, 2}, asynchronous=True)))
    kept = load(model, folder)
    save(model, folder, 3, asynchronous=True)
    save(model, folder, 4, asynchronous=True)  # waits for the one before
    return said, kept, load(model, folder), len(list(folder.iterdir()))


def test_what_went_wrong_is_raised_on_every_rank_once(tmp_path):
    for said, kept, last, files in launch(goes_wrong, tmp_path, world_size=3).returns:
        assert said[:3] == ["rank 1: no space left"] * 3
        assert "set is not JSON serializable" in said[3]
        assert (kept, last, files) == (0, 4, 4)


def digest(model):
    """Of all numbers of the parameters and the optimizer."""
    parameters, optimizer = states(model)
    tensors = [*parameters.values(), *(value for state in optimizer["state"].values() for value in state.values())]
    return hashlib.sha256(b"".join(value.detach().numpy().tobytes() for value in tensors)).hexdigest()


def killed_at(folder, victim, seconds):
    """Train and save in each step; ``victim`` dies so many ``seconds`` after the first set is whole."""

    def die():
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    model = zero(3, mlp(layers=3), torch.optim.AdamW, lr=1e-3)
    for step in range(10**6):
        model(torch.ones(2, 8)).square().mean().backward()
        model.step()
        model.zero_grad()
        saving = save(model, folder, {"step": step, "digest": digest(model)}, asynchronous=True)
        if step == 0:
            saving.wait()
            if dist.get_rank() == victim:
                threading.Thread(target=die, daemon=True).start()


def found(folder):
    model = zero(2, mlp(9, layers=3), torch.optim.AdamW, lr=1e-3)
    extra = load(model, folder)
    steps = {int(state["step"]) for state in model.optimizer_state_dict()["state"].values()}
    save(model, folder, extra)  # what was left lying about is in nobody's way
    return extra, digest(model), steps, len(list(folder.iterdir()))


def test_killed_at_any_moment_the_last_whole_one_is_there(tmp_path):
    random.seed(0)
    reached = []
    for number in range(50 if in_turn.thorough else 15):
        folder = tmp_path / str(number)
        with pytest.raises(RankError, match="SIGKILL"):
            launch(killed_at, folder, random.randrange(3), random.uniform(0, 0.3), world_size=3)
        for extra, numbers, steps, files in launch(found, folder).returns:
            assert numbers == extra["digest"]
            assert steps == {extra["step"] + 1}
            assert files == 3
        reached.append(extra["step"])
    assert max(reached) > 0
