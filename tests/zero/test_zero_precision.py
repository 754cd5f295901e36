"""With ``mixed_precision``: gradients add up in the type that is stepped, and what is frozen keeps its precision."""

from contextlib import nullcontext

import pytest
import torch
import torch.distributed as dist

from ringzero import launch, zero
from ringzero.zero import STAGES, File, GradScaler, Host

HALVES = torch.bfloat16, torch.float16
HOMES = {"device": lambda folder: None, "host": lambda folder: Host(), "file": File}


def added_up(stage, dtype, home, folder, in_no_sync):
    """The weight, minus the sum of gradients of 2048 and 511 of 0.5, stepped with a rate of 1; and that once more."""
    linear = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(linear.weight)
    model = STAGES[stage](linear, torch.optim.SGD, lr=1.0, mixed_precision=dtype, home=HOMES[home](folder))
    scaler = GradScaler("cpu", init_scale=1.0, growth_interval=9)
    for i in range(2 * 512):
        last, x = i % 512 == 511, torch.full((1, 1), 0.5 if i % 512 else 2048.0)
        with model.no_sync() if in_no_sync and not last else nullcontext():
            scaler.scale(model(x).sum()).backward()
        if last:
            scaler.step(model)
            scaler.update(1.0)
            model.zero_grad()
    return model.state_dict()["weight"].item()


WHERE = [(1, "device", True), (1, "device", False), (2, "device", False), (3, "host", False), (1, "host", True),
         (2, "file", False)]  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("stage", "home", "in_no_sync"), WHERE)
def test_many_small_gradients_add_up(stage, home, in_no_sync, dtype, tmp_path):
    for got in launch(added_up, stage, dtype, home, str(tmp_path), in_no_sync, world_size=2).returns:
        assert got == pytest.approx(-2 * (2048 + 511 / 2), rel=2**-7 if dtype is torch.bfloat16 else 2**-10)


def forgotten():
    """A window of two passes that is forgotten, and another pass."""
    linear = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(linear.weight)
    model = STAGES[1](linear, torch.optim.SGD, lr=1.0, mixed_precision=torch.bfloat16)
    with model.no_sync():
        for _ in range(2):
            model(torch.ones(1, 1)).sum().backward()
    model.zero_grad()
    model(torch.ones(1, 1)).sum().backward()
    model.step()
    return model.state_dict()["weight"].item()


def test_a_window_may_be_forgotten():
    assert launch(forgotten, world_size=2).returns == [-1.0, -1.0]


def adapted():
    torch.manual_seed(dist.get_rank())
    base, head = torch.nn.Linear(5, 7), torch.nn.Linear(7, 3)
    base.requires_grad_(False)
    base.half_of_it = base.bias  # tied: under two keys of the state_dict
    return torch.nn.Sequential(base, head, torch.nn.BatchNorm1d(3))


def kept(stage, dtype, folder):
    module, off = adapted(), []
    want = {name: p.detach().clone() for name, p in module[0].named_parameters(prefix="0")}
    for value in want.values():
        dist.broadcast(value, 0)

    def compare(state):
        off.extend((state[name] - value).abs().max().item() for name, value in want.items())

    model = STAGES[stage](module, torch.optim.SGD, lr=0.1, mixed_precision=dtype, unused=["0.bias"])
    assert module[0].weight.dtype == dtype
    compare(model.state_dict())
    zero.save(model, folder)
    want = {name: torch.randn(value.shape, generator=torch.Generator().manual_seed(1)) for name, value in want.items()}
    model.load_state_dict(model.state_dict() | want | {"0.half_of_it": want["0.bias"]})
    compare(model.state_dict())
    with nullcontext() if stage < 3 else model.whole_parameters(write=True):
        module[0].weight.data.fill_(0.5)  # the program's own
    want["0.weight"] = torch.full((7, 5), 0.5)
    compare(model.state_dict())
    zero.load(model, folder)
    module[0].weight.requires_grad_()
    model.add_param_group({"params": [module[0].weight]})
    want = model.state_dict()
    model.leave()
    compare(module.state_dict())
    assert {p.dtype for p in module.parameters()} == {torch.float32}
    start = adapted().state_dict()
    return max(off), want["0.weight"], start["0.weight"]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("stage", STAGES)
def test_what_is_frozen_keeps_its_precision(stage, dtype, tmp_path):
    results = launch(kept, stage, dtype, str(tmp_path), world_size=3).returns
    assert [off for off, _, _ in results] == [0.0] * 3
    assert all(torch.equal(weight, results[0][2]) for _, weight, _ in results)


def written_by_data(stage, home, then, folder):
    """Where a parameter was written to by ``data`` what is stepped is what was written; elsewhere what it was."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))
    model = STAGES[stage](
        module, torch.optim.SGD, lr=0.5, momentum=0.9, mixed_precision=torch.bfloat16, home=HOMES[home](folder)
    )
    model(torch.ones(2, 5)).sum().backward()
    model.step()
    model.zero_grad()
    want, optimizer = model.state_dict(), model.optimizer_state_dict()
    module[0].weight.data.mul_(0.5)
    want["0.weight"] = module[0].weight.detach().float()
    if then == "step":
        model(torch.zeros(2, 5)).sum().backward()
        model.step()  # the weight's gradient is 0, and its momentum is not
        want["0.weight"] -= 0.5 * 0.9 * optimizer["state"][0]["momentum_buffer"]
        return [model.state_dict()["0.weight"]], [want["0.weight"]]
    if then == "load":
        model.load_optimizer_state_dict(optimizer)
    if then == "save":
        zero.save(model, folder)
        model.load_state_dict({name: torch.zeros_like(value) for name, value in want.items()})
        zero.load(model, folder)
    if then == "leave":
        model.leave()
        assert {type(p) for p in module.parameters()} == {torch.nn.Parameter}
    return list((module if then == "leave" else model).state_dict().values()), list(want.values())


@pytest.mark.parametrize("then", ["look", "step", "load", "save", "leave"])
@pytest.mark.parametrize(("stage", "home"), [(1, "device"), (2, "device"), (2, "host")])
def test_what_is_written_to_data_is_not_lost(stage, home, then, tmp_path):
    for got, want in launch(written_by_data, stage, home, then, str(tmp_path), world_size=3).returns:
        torch.testing.assert_close(got, want, rtol=0, atol=1e-6 if then == "step" else 0)


def compiled_in_bf16():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))
    model = STAGES[2](module, torch.optim.SGD, lr=0.5, mixed_precision=torch.bfloat16)
    compiled = torch.compile(lambda x: module(x).sum(), backend="aot_eager", fullgraph=True)
    for _ in range(2):
        compiled(torch.ones(2, 5, dtype=torch.bfloat16)).backward()
        _ = module[0].weight.data
        model.step()
        model.zero_grad()
    return model.state_dict()["1.bias"]


def test_parameters_that_are_watched_can_be_compiled():
    """In one graph."""
    first, second = launch(compiled_in_bf16, world_size=2, timeout=120).returns
    assert torch.equal(first, second)
