"""Sharded checkpoints: resumed by other numbers of ranks, damaged, and with ranks killed while they write."""

import os
import signal

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, launch
from ringzero.zero import load, save
from tests.awkward import error_of, mlp
from tests.zero.test_zero import sharded, step_sharded, zero

SAVED = 3  # the steps before a checkpoint


def equal(ours, theirs):
    """Two states bit for bit."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(equal(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    return torch.equal(ours, theirs) if isinstance(ours, torch.Tensor) else ours == theirs


def written(directory, name, stage):
    """Train, save, and train one step more: the states at both points."""
    model = sharded(stage, name)
    for step in range(SAVED):
        step_sharded(model, step)
    save(model, directory, {"step": SAVED})
    then = model.state_dict(), model.optimizer_state_dict()
    step_sharded(model, SAVED)
    return then, dict(model.state_dict())


def resumed(directory, name, stage, options):
    model = sharded(stage, name, **options)
    step_sharded(model, 7)  # something to overwrite
    extra = load(model, directory)
    then = model.state_dict(), model.optimizer_state_dict()
    step_sharded(model, extra["step"])
    return then, dict(model.state_dict())


@pytest.mark.parametrize("name", ["Tied", "Frozen", "OddSizes", "MixedTypes"])
def test_resume_with_other_ranks_stage_and_buckets(name, tmp_path):
    """Parameters and states bit for bit; the step after that within rounding, as other ranks sum in another order."""
    (then, after), *_ = launch(written, tmp_path, name, 2, world_size=3).returns
    assert len(list(tmp_path.iterdir())) == 4
    for stage, world_size, options in ((2, 3, {}), (3, 1, {}), (1, 2, {"bucket_cap_mb": 25}), (3, 4, {})):
        resume = launch(resumed, tmp_path, name, stage, options, world_size=world_size).returns
        for ours, later in resume:
            assert equal(dict(ours[0]), dict(then[0]))
            assert equal(ours[1], then[1])
            torch.testing.assert_close(later, after, rtol=1e-4, atol=1e-5)


class Counting(torch.nn.Module):
    """Its extra state is made anew when torch asks for it: a tensor, or a dict."""

    def __init__(self, as_tensor):
        super().__init__()
        self.linear, self.calls, self.as_tensor = torch.nn.Linear(4, 4), 0, as_tensor

    def forward(self, x):
        self.calls += 1
        return self.linear(x)

    def get_extra_state(self):
        return torch.tensor(self.calls) if self.as_tensor else {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state.item() if self.as_tensor else state["calls"]


def with_extra_states(stage, as_tensor, folder):
    def counting():
        torch.manual_seed(0)
        return zero(stage, torch.nn.Sequential(Counting(as_tensor), torch.nn.Linear(4, 4)))

    first, second, third = (counting() for _ in range(3))
    for _ in range(3):
        first(torch.ones(2, 4))
    second.load_state_dict(first.state_dict())
    plain = torch.nn.Sequential(Counting(as_tensor), torch.nn.Linear(4, 4))
    plain.load_state_dict(first.state_dict())
    said = error_of(lambda: save(first, folder))
    if as_tensor:
        load(third, folder)
    return said, [plain[0].calls, second.module[0].calls, third.module[0].calls]


@pytest.mark.parametrize("stage", [1, 3])
def test_extra_states_of_modules_are_taken_over(stage, tmp_path):
    for said, calls in launch(with_extra_states, stage, True, tmp_path).returns:
        assert (said, calls) == ("nothing was raised", [3, 3, 3])
    for said, calls in launch(with_extra_states, stage, False, tmp_path / "other").returns:
        assert said.startswith("0._extra_state is a dict, and files hold tensors")
        assert calls == [3, 3, 0]


def test_resume_with_fp32_masters_and_before_the_first_step(tmp_path):
    def work():
        model = zero(2, mlp(), torch.optim.AdamW, mixed_precision=torch.bfloat16)
        save(model, tmp_path)
        model(torch.ones(2, 8)).sum().backward()
        model.step()
        stepped = dict(model.state_dict())
        save(model, tmp_path)
        again = zero(3, mlp(5), torch.optim.AdamW, mixed_precision=torch.bfloat16)
        load(again, tmp_path)
        return stepped, dict(again.state_dict()), len(list(tmp_path.iterdir()))

    for stepped, again, files in launch(work).returns:
        assert files == 3  # the first set is gone
        assert equal(stepped, again)
        assert stepped["0.weight"].dtype == torch.float32


def loaded(directory):
    """What ``load`` raises, and whether anything was changed."""
    model = zero(2, mlp(9), torch.optim.AdamW)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises((ValueError, OSError)) as raised:
        load(model, directory)
    return str(raised.value), equal(before, dict(model.state_dict())) and not model.optimizer.state


def truncate(path):
    path.write_bytes(path.read_bytes()[:-5])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damaged", ["shard-1-0-of-3.safetensors", "shard-1-2-of-3.safetensors"])
@pytest.mark.parametrize(
    ("damage", "says"),
    [(os.unlink, "is missing"), (truncate, r"has \d+ bytes instead of \d+"), (flip, "is not what was written")],
)
def test_a_damaged_set_is_refused_by_name_and_nothing_is_overwritten(damage, says, damaged, tmp_path):
    def write():
        save(zero(1, mlp(), torch.optim.AdamW), tmp_path)

    launch(write, world_size=3)
    damage(tmp_path / damaged)
    for message, unchanged in launch(loaded, tmp_path).returns:
        assert unchanged
        assert damaged in message
        with pytest.raises(ValueError, match=says):
            raise ValueError(message)


def test_a_set_of_something_else_is_refused(tmp_path):
    def work():
        nothing = loaded(tmp_path / "nowhere")
        save(zero(1, mlp(), torch.optim.SGD), tmp_path / "sgd")
        save(zero(1, mlp(layers=5), torch.optim.AdamW), tmp_path / "deeper")
        return [nothing, loaded(tmp_path / "sgd"), loaded(tmp_path / "deeper")]

    for results in launch(work).returns:
        messages, unchanged = zip(*results, strict=True)
        assert all(unchanged)
        assert "there is no checkpoint in" in messages[0]
        assert "optimizer is SGD, here AdamW" in messages[1]
        assert "parameter/4.weight is [8, 8], here unknown" in messages[2]


CALLS = ("save_file", "fsync", "replace", "open", "fsync", "write_text", "fsync", "replace", "open", "fsync", "unlink")


def killed(directory, victim, point):
    """Save twice; in the second save ``victim`` dies at its ``point``-th of ``CALLS``, with half a file written."""
    from ringzero.zero import checkpoint

    made = []

    def dying(owner, name, half_way=None):
        real = getattr(owner, name)

        def call(*args, **kwargs):
            made.append(name)
            assert name == CALLS[min(len(made), len(CALLS)) - 1]
            if len(made) == point:
                if half_way:
                    half_way(*args)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        setattr(owner, name, call)

    model = zero(2, mlp(), torch.optim.AdamW)
    for step in (1, 2):
        model(torch.ones(2, 8)).sum().backward()
        model.step()
        model.zero_grad()
        if step == 2 and dist.get_rank() == victim:
            for name in ("open", "fsync", "replace", "unlink"):
                dying(os, name)
            dying(checkpoint, "save_file", lambda tensors, path: path.write_bytes(b"half"))
            dying(type(directory), "write_text", lambda path, text: path.write_bytes(text[: len(text) // 2].encode()))
        save(model, directory, {"step": step})


def steps_alone(steps):
    module = mlp()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1)
    for _ in range(steps):
        module(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return module.state_dict()


def loads(directory):
    model = zero(3, mlp(9), torch.optim.AdamW)
    extra = load(model, directory)
    save(model, directory, extra)  # what was left lying about is in nobody's way
    return extra["step"], dict(model.state_dict()), sorted(each.name for each in directory.iterdir())


@pytest.mark.parametrize(("victim", "points"), [(0, (1, 3, 6, 7, 8, 9, 11, 12)), (2, (1, 2, 3))])
def test_whoever_is_killed_while_writing_a_whole_set_stays(victim, points, tmp_path):
    for point in points:
        directory = tmp_path / str(point)
        with pytest.raises(RankError):
            launch(killed, directory, victim, point, world_size=3)
        for step, state, files in launch(loads, directory).returns:
            assert step == (2 if point > 8 else 1)  # the manifest is replaced by the eighth call
            torch.testing.assert_close(state, dict(steps_alone(step)))
            assert len(files) == 3
