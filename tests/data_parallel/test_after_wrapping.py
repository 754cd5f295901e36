"""What changes in a module after it was wrapped is adopted, or refused by name; right programs are left alone."""

import copy
import functools
import re

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parametrizations, prune

from ringzero import launch
from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel
from tests.awkward import error_of

KINDS = {
    "naive": NaiveDataParallel,
    "flat": FlatDataParallel,
    "ddp": DistributedDataParallel,
    "ddp, find_unused": functools.partial(DistributedDataParallel, find_unused=True),
}


class Net(nn.Module):
    """Room for an adapter, a list of blocks and a head, in float64."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.base, self.blocks, self.head = nn.Linear(6, 6), nn.ModuleList([nn.Linear(6, 6)]), nn.Linear(6, 3)
        self.named, self.adapter = nn.ModuleDict({"one": nn.Linear(6, 6)}), None
        self.double()

    def forward(self, x):
        x = self.base(x)
        for block in [*self.blocks, *self.named.values()]:
            x = block(x).tanh()
        return self.head(x) + (0 if self.adapter is None else self.adapter(x))


def adapter(net):
    net.adapter = nn.Linear(6, 3).double()


def head(net):
    net.head = nn.Linear(6, 3).double()


def parameter_of_its_own(net):
    net.head.bias = nn.Parameter(torch.randn(3).double())


def assigned(net):
    net.load_state_dict(Net(5).state_dict(), assign=True)


def inserted(net):
    net.blocks.insert(0, nn.Linear(6, 6).double())


def appended(net):
    net.blocks.append(nn.Linear(6, 6).double())


def named(net):
    net.named["two"] = nn.Linear(6, 6).double()


def weight_norm(net):
    parametrizations.weight_norm(net.base)


def old_weight_norm(net):
    nn.utils.weight_norm(net.base)


def frozen_first(net):
    """A frozen module is nobody's business until it is unfrozen."""
    net.adapter = nn.Linear(6, 3).double().requires_grad_(False)
    yield
    net.adapter.requires_grad_(True)


def overwritten(net):
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        net.float().double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)


def put_in_by_hand(net):
    net.base._parameters["weight"] = nn.Parameter(net.base.weight.detach().clone())


CAME = "came into the Net after it was wrapped, and no rank would average the gradient: wrap the module again"
REFUSED = {
    adapter: "adapter.weight, adapter.bias " + CAME,
    head: "head.weight, head.bias " + CAME,
    parameter_of_its_own: "head.bias " + CAME,
    assigned: "base.weight, base.bias, ",
    inserted: "blocks.0.weight, blocks.0.bias " + CAME,
    appended: "blocks.1.weight, blocks.1.bias " + CAME,
    named: "named.two.weight, named.two.bias " + CAME,
    weight_norm: "base.parametrizations.weight.original0, base.parametrizations.weight.original1 " + CAME,
    old_weight_norm: "base.weight_g, base.weight_v " + CAME,
    frozen_first: "adapter.weight, adapter.bias " + CAME,
    overwritten: "base.weight, base.bias, ",
    put_in_by_hand: "base.weight " + CAME,
}


def data(step, rank=0, n=1):
    source = torch.Generator().manual_seed(step)
    x = torch.randn(12, 6, generator=source, dtype=torch.float64)
    return x[rank::n], x[rank::n, :3].sin()


def trained(model, module, steps, rank=0, n=1):
    optimizer = torch.optim.SGD((p for p in module.parameters() if p.requires_grad), lr=0.1)
    for step in steps:
        x, y = data(step, rank, n)
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    return module.state_dict()


def changed_modules(change):
    return {kind: a_changed_module(change, kind) for kind in KINDS}


def a_changed_module(change, kind):
    """The error, whether it comes again, and the state after the error's own advice was followed."""
    rank, n = dist.get_rank(), dist.get_world_size()
    net = Net(rank)
    model = KINDS[kind](net)
    trained(model, net, range(2), rank, n)
    torch.manual_seed(7 + rank)  # what comes is another on each rank
    again = change(net)
    if again is not None:
        next(again)
        trained(model, net, [2], rank, n)
        next(again, None)
    errors = [error_of(functools.partial(trained, model, net, [3], rank, n)) for _ in range(2)]
    model = KINDS[kind](net)
    return errors, trained(model, net, range(4, 7), rank, n)


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_new_parameters_are_refused_by_name_and_the_advice_helps(change):
    ranks = launch(changed_modules, change, world_size=2).returns
    for kind in KINDS:
        for errors, state in (of_rank[kind] for of_rank in ranks):
            assert all(REFUSED[change] in error for error in errors), (kind, errors)
            for name, value in ranks[0][kind][1].items():
                torch.testing.assert_close(state[name], value, rtol=0, atol=0, msg=f"{kind} {name}")


def pruned(net):
    prune.random_unstructured(net.base, "weight", amount=0.5)


def orthogonal_map(net):
    """A parametrization without a change of the parameter itself: the tensor that was wrapped gets another name."""

    class Twice(nn.Module):
        def forward(self, weight):
            return 2 * weight

    nn.utils.parametrize.register_parametrization(net.base, "weight", Twice())


def replaced_data(net):
    for parameter in net.parameters():
        parameter.data = parameter.data.clone()


def frozen_teacher(net):
    net.teacher = copy.deepcopy(net.head).requires_grad_(False)


def unfrozen(net):
    net.head.bias.requires_grad_(True)


def loaded(net):
    net.load_state_dict(Net(5).state_dict())


def another_model(net):
    Net(3)


def buffer(net):
    net.register_buffer("mean", torch.zeros(3))


RIGHT = [pruned, orthogonal_map, replaced_data, frozen_teacher, unfrozen, loaded, another_model, buffer]


def right_programs(change):
    return {kind: a_right_program(change, kind) for kind in KINDS}


def a_right_program(change, kind):
    rank, n = dist.get_rank(), dist.get_world_size()
    net = Net(rank)
    net.head.bias.requires_grad_(change is not unfrozen)
    model = KINDS[kind](net)
    trained(model, net, range(2), rank, n)
    torch.manual_seed(7)
    change(net)
    return trained(model, net, range(2, 5), rank, n)


@pytest.mark.parametrize("change", RIGHT, ids=lambda change: change.__name__)
def test_what_is_right_is_trained_as_in_one_process(change):
    net = Net(0)
    net.head.bias.requires_grad_(change is not unfrozen)
    trained(net, net, range(2))
    torch.manual_seed(7)
    change(net)
    alone = trained(net, net, range(2, 5))
    for of_rank in launch(right_programs, change, world_size=2).returns:
        for kind, state in of_rank.items():
            torch.testing.assert_close(state, alone, rtol=0, atol=1e-12, msg=kind)


def called_without_the_wrapper():
    errors = {}
    for kind, wrap in KINDS.items():
        net = Net(0)
        model, (x, y) = wrap(net), data(0)
        model(x)  # of which no backward pass comes
        adapter(net)
        errors[kind] = error_of(lambda net=net, x=x, y=y: (net(x) - y).square().mean().backward())
    return errors


def test_a_module_that_is_called_without_its_wrapper_is_looked_at_too():
    for errors in launch(called_without_the_wrapper, world_size=2).returns:
        assert all(REFUSED[adapter] in error for error in errors.values()), errors


def looked_at_without_gradients():
    """A probe that is only evaluated is no part of training, and may leave again; a forward pass of the module itself
    is seen, too."""
    net = Net()
    model = DistributedDataParallel(net)
    net.adapter = nn.Linear(6, 3).double()
    with torch.no_grad():
        model(data(0)[0])
    refused = error_of(lambda: net(data(0)[0]).sum().backward())
    net.adapter = None
    model.zero_grad()
    net.load_state_dict(Net().state_dict())
    model(data(0)[0]).sum().backward()
    return refused


def test_a_probe_for_evaluation_is_left_alone():
    for refused in launch(looked_at_without_gradients, world_size=2).returns:
        assert "adapter.weight, adapter.bias " + CAME in refused


def conversions(change):
    return {kind: converted(change, kind) for kind in KINDS}


def converted(change, kind):
    net = Net()
    model = KINDS[kind](net)
    for _ in range(2):  # the second cuts the buckets anew, and takes the types that it finds
        model(data(0)[0]).sum().backward()
        model.zero_grad(set_to_none=True)
    x = change(net, data(1)[0])
    first = error_of(lambda: model(x).sum().backward())
    model = KINDS[kind](net)
    model.zero_grad()
    model(x).sum().backward()
    return first, [p.grad for p in net.parameters()]


def to_float(net, x):
    net.float()
    return x.float()


def larger(net, x):
    net.base.weight.data = torch.cat([net.base.weight.data, net.base.weight.data], 1)
    return torch.cat([x, x], 1)


@pytest.mark.parametrize("change", [to_float, larger])
def test_another_type_or_shape_is_named_or_right(change):
    net = Net()
    net(change(net, data(1)[0])).sum().backward()
    expected = [p.grad for p in net.parameters()]
    for of_rank in launch(conversions, change, world_size=2).returns:
        for kind, (first, gradients) in of_rank.items():
            if kind in ("naive", "flat"):  # they make their buffers in each pass
                assert first == "nothing was raised", kind
            else:
                assert re.search("the gradient of .* when the module was wrapped; .* wrap the module again", first), (
                    kind
                )
            torch.testing.assert_close(gradients, expected)


def summaries():
    net = Net()
    net.base.requires_grad_(False)
    net.register_buffer("mean", torch.zeros(3))
    return [wrap(net, unused=("head.bias",)).summary() for wrap in KINDS.values()]


def test_a_summary_says_what_a_model_holds():
    for rank, texts in enumerate(launch(summaries, world_size=2).returns):
        for text in texts:
            for part in (
                f"of a Net, on rank {rank} of 2",
                "5 tensors with 102 numbers of float64",
                "2 tensors with 42 numbers of float64",
                "head.bias",
                "1 tensor with 3 numbers of float32",
                "1 of its own: 2 ranks on",
            ):
                assert part in text
        assert [re.search(r"buckets +(\d) of", text)[1] for text in texts] == ["5", "1", "1", "1"]
