"""Frozen parameters in stage 3: sharded, gathered for both passes and freed after, with no gradient and no state."""

import functools
import gc
import time

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from ringzero import launch
from ringzero.costs.page import memory
from ringzero.record import recorded
from ringzero.record.operation import bytes_sent
from ringzero.zero import STAGES, Host, Hybrid, ZeroPlusPlus, ZeroStage3, load, resident, save
from ringzero.zero.gather import Unit
from tests import awkward
from tests.zero.test_zero import close, storages

WIDTH = 32


class Adapted(nn.Module):
    """A frozen layer with two thin matrices beside it: LoRA."""

    def __init__(self, width=WIDTH, rank=1):
        super().__init__()
        self.base = nn.Linear(width, width, bias=False).requires_grad_(False)
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)

    def forward(self, x):
        return x + torch.tanh(self.base(x) + self.up(self.down(x)))


class Frozen(nn.Module):
    """All that may be frozen: before the first that is trained and after, whole units and parts, tied, other types."""

    def __init__(self):
        super().__init__()
        self.bottom, self.middle = nn.Linear(6, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Linear(WIDTH, WIDTH).double()
        self.of_the_root = nn.Parameter(torch.rand(WIDTH))
        self.codes = nn.Parameter(torch.randint(-3, 3, (7, 5)), requires_grad=False)
        for each in (self.bottom, self.middle, self.wide):
            each.requires_grad_(False)
        self.of_the_root.requires_grad_(False)
        self.adapted = nn.ModuleList(Adapted() for _ in range(3))
        self.adapted[2].base.weight = self.adapted[1].base.weight
        self.middle.again = self.middle.weight
        self.last = nn.Linear(WIDTH, 3)

    def forward(self, tokens):
        x = self.bottom(tokens.float() / 10)
        x = checkpoint(self.adapted[0], x, use_reentrant=False) * self.of_the_root + self.codes.sum()
        x = self.middle(self.wide(self.adapted[1](x).double()).float())
        return self.last(self.adapted[2](self.middle(x)))


def of(kind, seed):
    torch.manual_seed(seed)
    return kind()


def lora():
    return nn.Sequential(*(Adapted() for _ in range(4)))


def train(model, step, steps=3):
    for number in range(steps):
        rank, n = (dist.get_rank(), dist.get_world_size()) if hasattr(model, "vectors") else (0, 1)
        tokens, targets = awkward.batch(number)
        awkward.loss_of(model, tokens[rank::n], targets[rank::n]).backward()
        step.step()
        step.zero_grad()


@functools.cache
def alone():
    module = of(Frozen, 0)
    train(module, torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], lr=0.01))
    return dict(module.state_dict())


WAYS = {
    "as it is": {},
    "window": {"window": 1},
    "ahead": {"prefetch": 3},
    "find_unused": {"find_unused": True},
    "host": {"home": Host},
    "all on the host": {"home": functools.partial(Host, parameters=True)},
    "nodes": {"travel": lambda: Hybrid(dist.get_world_size() // 2 or 1)},
    "second shards": {"travel": lambda: ZeroPlusPlus(None, None, True, dist.get_world_size() // 2 or 1)},
    "one unit": {"units": ()},
}


def in_each_way():
    results = {}
    for way, options in WAYS.items():
        module = of(Frozen, dist.get_rank())
        made = {key: value() if callable(value) else value for key, value in options.items()}
        model = ZeroStage3(module, torch.optim.AdamW, lr=0.01, **made)
        with torch.no_grad():
            model(awkward.batch(9)[0])  # before it is known what backward passes reach
        train(model, model)
        results[way] = dict(model.state_dict())
    return results


@pytest.mark.parametrize(
    ("world_size", "device"), [(1, "cpu"), (2, "cpu"), (3, "cpu"), (4, "cpu"), (2, "strict"), (4, "strict")]
)
def test_trains_as_one_process(world_size, device):
    for ways in launch(in_each_way, world_size=world_size, device=device).returns:
        for way, state in ways.items():
            close(state, alone(), msg=way)


def held():
    """Bytes of all parameters and optimizer states that there are on this rank, between two steps."""
    gc.freeze()
    module = of(lora, 0)
    sizes = [sum(p.numel() for p in module.parameters() if p.requires_grad is trained) for trained in (False, True)]
    model = ZeroStage3(module, torch.optim.AdamW, lr=0.01, units=list(module))
    for _ in range(2):
        model(torch.ones(2, WIDTH)).sum().backward()
        model.step()
        model.zero_grad()
    for _ in range(100):  # a thread of gloo may still hold what it has sent
        gc.collect()
        there = storages(t for t in gc.get_objects() if issubclass(type(t), torch.Tensor) and t.dim())
        if there <= resident(model)["device"]:
            break
        time.sleep(0.05)
    return sizes, there, resident(model), model.summary()


def held_by_fsdp2():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    module, mesh = of(lora, 0), init_device_mesh("cpu", (dist.get_world_size(),))
    for each in (*module, module):
        fully_shard(each, mesh=mesh)
    named = dict(module.named_parameters())
    return [
        sum(p.to_local().untyped_storage().nbytes() for p in named.values() if p.requires_grad is trained)
        for trained in (False, True)
    ]


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_a_rank_holds_its_share_as_in_fsdp2(world_size):
    """Of what is frozen 4 bytes a number, by the formula; of what is trained also AdamW's two numbers."""
    theirs = launch(held_by_fsdp2, world_size=world_size).returns
    for ((frozen, trained), there, counted, said), (frozen_there, trained_there) in zip(
        launch(held, world_size=world_size).returns, theirs, strict=True
    ):
        share, *_ = memory.model_state_parts(frozen, 3, world_size, (4, 0, 0))
        expected = share + memory.model_state_bytes(trained, 3, world_size, (4, 0, 8))
        assert (there, counted["device"]) == (expected, expected)
        assert share == frozen_there
        assert 4 * trained / world_size <= trained_there  # padded to rows there
        assert f"what is frozen too, here {share / 4:,.0f} numbers" in said


def sent(reached):
    """Bytes that this rank sends in a step, without the first; and how many units are whole at most."""
    torch.manual_seed(0)
    layers = [nn.Linear(12, 12, bias=False).requires_grad_(False) for _ in range(6)]
    adapter = nn.Linear(12, 12, bias=False)
    module = nn.Sequential(*layers[: 6 - reached], adapter, *layers[6 - reached :])
    model = ZeroStage3(module, torch.optim.SGD, lr=0.1, units=list(module))
    most = 0
    unshard = Unit.unshard

    def counted(unit):
        nonlocal most
        unshard(unit)
        most = max(most, sum(each.whole for each in model.gatherer.order if each.vectors))

    for _ in range(3):
        before, most = len(recorded()), 0
        Unit.unshard = counted
        model(torch.ones(2, 12)).square().mean().backward()
        Unit.unshard = unshard
        model.step()
        model.zero_grad()
    return bytes_sent([op for op in recorded()[before:] if op.kind == "send"]), most


@pytest.mark.parametrize("reached", [0, 2, 6])
def test_a_frozen_unit_is_gathered_for_the_passes_that_come_through_it_and_freed(reached):
    """One gather forward, one backward if a gradient comes through it, and no reduction."""
    for size, most in launch(sent, reached, world_size=3).returns:
        assert size == 4 * 144 * 2 / 3 * (6 + reached + 3)
        assert most <= 3  # with the one ahead, and the one before that its last gradient leaves


def write(model):
    with model.whole_parameters(write=True):
        model.module.middle.weight.data.fill_(0.5)


def saved_and_loaded(folder, stage, other, dtype):
    """States of a model that was written, and of another one that read it."""
    model = STAGES[stage](of(Frozen, 0), torch.optim.SGD, lr=0.1, mixed_precision=dtype)
    if stage == 3:
        write(model)
    else:
        model.module.middle.weight.data.fill_(0.5)
    save(model, folder)
    again = STAGES[other](of(Frozen, 5), torch.optim.SGD, lr=0.1, mixed_precision=dtype)
    load(again, folder)
    third = STAGES[other](of(Frozen, 6), torch.optim.SGD, lr=0.1)
    third.load_state_dict(model.state_dict())
    output = again(awkward.batch(0)[0]).detach() if dtype is None else None
    third.leave()
    module = of(Frozen, 7)
    module.load_state_dict(model.state_dict())
    return [dict(each.state_dict()) for each in (model, again, third.module)], output, module(awkward.batch(0)[0])


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize(("stage", "other"), [(3, 3), (3, 1), (2, 3)])
def test_states_and_checkpoints_are_whole_and_read_by_any_stage(stage, other, dtype, tmp_path):
    for (ours, *others), output, expected in launch(
        saved_and_loaded, tmp_path, stage, other, dtype, world_size=3
    ).returns:
        assert (ours["middle.again"] == 0.5).all()
        for state in others:
            assert state.keys() == ours.keys()
            assert all(torch.equal(state[key], ours[key]) and state[key].dtype == ours[key].dtype for key in ours)
        if output is not None:
            close(output, expected.detach())


def changed_after_wrapping():
    model = ZeroStage3(of(Frozen, 0), torch.optim.SGD, lr=0.1)
    tokens = awkward.batch(0)[0]
    said = [awkward.error_of(lambda: model.module.middle.weight.norm())]
    before = model.state_dict()["middle.weight"].clone()
    model.module.middle.requires_grad_()
    said.append(awkward.error_of(lambda: model(tokens)))
    model.add_param_group({"params": list(model.module.middle.parameters())})
    train(model, model, steps=1)
    moved = not torch.equal(model.state_dict()["middle.weight"], before)
    model.module.wide = nn.Linear(WIDTH, WIDTH).double().requires_grad_(False)  # another one takes its place
    nn.init.zeros_(model.module.wide.weight)
    model(tokens)
    replaced = model.state_dict()["wide.weight"]
    model.module.middle.requires_grad_(False)
    said.append(awkward.error_of(lambda: model(tokens).sum().backward()))
    return said, moved, replaced


def two_stages(find_unused):
    """The head first, then the body: one is frozen when the other is added."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)).double()
    module[0].requires_grad_(False)
    model = ZeroStage3(module, torch.optim.SGD, lr=0.1, find_unused=find_unused)
    x = torch.ones(2, WIDTH, dtype=torch.float64)
    model(x).square().mean().backward()
    module.requires_grad_(True)
    module[1].requires_grad_(False)
    model.add_param_group({"params": list(module[0].parameters())})
    model.zero_grad()
    said = awkward.error_of(lambda: model(x).square().mean().backward())
    return said, module[1].weight.requires_grad


def test_parameters_may_be_added_while_others_are_frozen():
    for named, right in zip(*(launch(two_stages, each).returns for each in (False, True)), strict=True):
        assert not named[1]
        assert "1.weight, 1.bias frozen after the Sequential was wrapped, and got no gradient" in named[0]
        assert right == ("nothing was raised", False)


def test_what_is_frozen_or_unfrozen_after_wrapping_is_named():
    for (used, unfrozen, froze), moved, replaced in launch(changed_after_wrapping).returns:
        assert "middle.weight is used where it is not gathered" in used
        assert "middle.weight, middle.bias unfrozen since the model was sharded" in unfrozen
        assert moved
        assert not replaced.any()
        assert "middle.weight, middle.bias frozen after the Frozen was wrapped" in froze
