"""What one rank alone cannot read, write or take over raises on all, by the rank's name, and no rank waits."""

import shutil
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.zero import STAGES, File, Host, Hybrid, ZeroPlusPlus, ZeroStage2, load, save
from tests.awkward import error_of
from tests.data_parallel.test_shared_with_the_program import Trip, Tripping


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


KINDS = {
    "1": (1, {}),
    "2": (2, {"bucket_cap_mb": 2e-4}),
    "2, each alone": (2, {"find_unused": True}),
    "2, Host": (2, {"home": Host}),
    "2, Hybrid": (2, {"travel": Hybrid, "bucket_cap_mb": 2e-4}),
    "3": (3, {}),
    "3, all ahead": (3, {"prefetch": 9}),
    "3, any order": (3, {"find_unused": True}),
    "3, ZeRO++": (3, {"travel": ZeroPlusPlus}),
}


class TrippingForward(Tripping):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i == self.at and Trip.on:
                raise ArithmeticError("boom")
            x = layer(x)
        return x


class Tiny(Tripping):
    """Two numbers, so that one of three ranks has none of them."""

    def __init__(self, at):
        super().__init__(0)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(1, 1).double()])

    def forward(self, x):
        return super().forward(x[:, :1])


def goes_on(kind, make, failing, in_step, then="zero_grad", syncs=True):
    """What each step raised, and the parameters at the end; the rank goes on where only it knows of the error."""
    stage, options = KINDS[kind]
    options = {key: value() if isinstance(value, type) else value for key, value in options.items()}
    module, raised = make(), []
    model = STAGES[stage](module, torch.optim.SGD, lr=0.1, momentum=0.9, **options)
    for step in range(4):
        Trip.on = step == in_step and dist.get_rank() in failing
        x = torch.randn(6, 6, generator=torch.Generator().manual_seed(step)).double()
        x = x[dist.get_rank() :: dist.get_world_size()].requires_grad_()
        try:
            with nullcontext() if syncs or step != in_step else model.no_sync():
                model(x).square().mean().backward()
            if syncs or step != in_step:
                model.step()
        except ArithmeticError:
            raised.append("boom")
            if then == "go on":
                continue
        except RuntimeError as error:
            raised.append(str(error))
            break
        raised.append(error_of(model.zero_grad))
        if raised[-1] != "nothing was raised":
            break
    Trip.on = False
    return raised, None if "on rank" in raised[-1] else dict(model.state_dict())


def by_kind(*args, **options):
    return {kind: goes_on(kind, *args, **options) for kind in KINDS}


def assert_all_were_told(ranks):
    for rank in ranks:
        for kind, (raised, _) in rank.items():
            assert "ended with an error on rank 1 and not on the others" in raised[-1], (kind, raised)


@pytest.mark.parametrize(("at", "in_step"), [(0, 0), (0, 2), (1, 0), (1, 2), (2, 2)])
def test_an_error_of_a_backward_pass_on_one_rank_is_noticed_by_all(at, in_step):
    """Even where every gradient of the pass had come before the error (``at`` 0)."""
    assert_all_were_told(launch(by_kind, partial(Tripping, at), (1,), in_step, world_size=2, timeout=100).returns)


def test_where_a_rank_has_no_number_all_are_asked():
    ranks = launch(goes_on, "2", partial(Tiny, 0), (1,), 1, world_size=3, timeout=60).returns
    assert_all_were_told([{"2": rank} for rank in ranks])


def test_the_error_is_noticed_without_zero_grad_too():
    assert_all_were_told(launch(by_kind, partial(Tripping, 1), (1,), 1, "go on", world_size=2, timeout=100).returns)


def test_the_error_is_noticed_by_nvidias_rules_too():
    ranks = launch(by_kind, partial(Tripping, 1), (1,), 1, world_size=2, timeout=200, device="strict").returns
    assert_all_were_told(ranks)


def of_a_forward_pass(*args):
    return {kind: goes_on(kind, *args) for kind in KINDS if kind.startswith("3")}


@pytest.mark.parametrize("in_step", [0, 2])
@pytest.mark.parametrize("then", ["zero_grad", "go on"])
def test_an_error_of_a_forward_pass_on_one_rank_is_noticed_where_all_gather_in_it(in_step, then):
    ranks = launch(of_a_forward_pass, partial(TrippingForward, 1), (1,), in_step, then, world_size=2, timeout=100)
    assert_all_were_told(ranks.returns)


@pytest.mark.parametrize("make", [Tripping, TrippingForward])
@pytest.mark.parametrize(("at", "in_step"), [(0, 0), (0, 2), (1, 2)])
def test_an_error_on_all_ranks_leaves_the_pass_out(make, at, in_step):
    module = Tripping(at)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        x = torch.randn(6, 6, generator=torch.Generator().manual_seed(step)).double()
        if step != in_step:
            optimizer.zero_grad()
            module(x).square().mean().backward()
            optimizer.step()
    for rank in launch(by_kind, partial(make, at), (0, 1), in_step, world_size=2, timeout=100).returns:
        for kind, (raised, state) in rank.items():
            assert [text for text in raised if text not in ("boom", "nothing was raised")] == [], kind
            if kind != "3, ZeRO++":
                torch.testing.assert_close(state, dict(module.state_dict()), rtol=0, atol=1e-14, msg=kind)


def in_no_sync(failing, then):
    return {kind: goes_on(kind, partial(Tripping, 1), failing, 1, then, syncs=False) for kind in KINDS}


@pytest.mark.parametrize("then", ["zero_grad", "go on"])
def test_an_error_in_no_sync_is_the_rank_s_own_where_nothing_is_reduced(then):
    """In stage 1 as in DDP: what came adds up. Later stages reduce every pass."""
    for rank in launch(in_no_sync, (1,), then, world_size=2, timeout=100).returns:
        raised, _ = rank.pop("1")
        assert [text for text in raised if text not in ("boom", "nothing was raised")] == []
        assert_all_were_told([rank])


def thrown_forward_in_a_window():
    """All ranks have the error: what was added up before stays."""
    module, plain = TrippingForward(1), Tripping(0)
    model = STAGES[3](module, torch.optim.SGD, lr=0.1)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    x = torch.randn(6, 6, generator=torch.Generator().manual_seed(0)).double()
    for part in x.split(3):
        model(part[dist.get_rank() :: 2]).square().sum().backward()
        (plain(part).square().sum() / 2).backward()
        Trip.on = True
        with pytest.raises(ArithmeticError):
            model(part)
        Trip.on = False
    model.step()
    optimizer.step()
    torch.testing.assert_close(dict(model.state_dict()), dict(plain.state_dict()))


def test_a_forward_pass_that_fails_on_all_ranks_changes_no_gradient():
    launch(thrown_forward_in_a_window, world_size=2, timeout=60)
