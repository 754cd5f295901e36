"""A step with gradients that no_sync left on each rank is refused; all that is right with no_sync is left alone."""

import functools

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel
from tests.awkward import error_of, mlp

KINDS = [NaiveDataParallel, FlatDataParallel, DistributedDataParallel]


def loss(model, step, parts=1):
    x = torch.randn(8, 8, generator=torch.Generator().manual_seed(step)).double()
    return model(x[dist.get_rank() :: dist.get_world_size()]).square().mean() / parts


def windows(model, optimizer):
    """Windows of four, the last of which is cut short by the end of the epoch."""
    for i in range(6):
        if i % 4 == 3:
            loss(model, i).backward()
        else:
            with model.no_sync():
                loss(model, i).backward()
        if i in (3, 5):
            optimizer.step()
            optimizer.zero_grad()


def thrown_away(model, optimizer):
    """By the optimizer, of which the model knows nothing."""
    for i, set_to_none in enumerate((True, False)):
        with model.no_sync():
            loss(model, i).backward()
        optimizer.zero_grad(set_to_none)
        optimizer.step()
        loss(model, 2 + i).backward()
        optimizer.step()


def averaged_by_hand(model, optimizer):
    for i in range(2):
        with model.no_sync():
            loss(model, i).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        optimizer.step()
        optimizer.zero_grad()


def added_to_later(model, optimizer):
    with model.no_sync():
        loss(model, 0).backward()
    loss(model, 1).backward()
    optimizer.step()


def another_optimizer(model, optimizer):
    other = torch.nn.Linear(2, 2)
    with model.no_sync():
        loss(model, 0).backward()
    other(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(other.parameters(), lr=0.1).step()
    model.zero_grad()


RIGHT = [thrown_away, averaged_by_hand, added_to_later, another_optimizer]


def programs():
    found = {}
    for kind in KINDS:
        for program in [windows, *RIGHT]:
            module = mlp().double()
            model, optimizer = kind(module), torch.optim.SGD(module.parameters(), lr=0.1)
            found[kind.__name__, program.__name__] = (
                error_of(functools.partial(program, model, optimizer)),
                [p.detach() for p in module.parameters()],
            )
    return found


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_steps_with_leftovers_are_refused_and_right_programs_are_not(world_size):
    ranks = launch(programs, world_size=world_size).returns
    for (kind, program), (error, parameters) in ranks[-1].items():
        if program == "windows" and world_size > 1:
            assert error.startswith("this step would use gradients that no_sync left on each rank"), (kind, error)
            assert "0.weight, 0.bias" in error
        else:
            assert error == "nothing was raised", (kind, program, error)
        same = zip(parameters, ranks[0][kind, program][1], strict=True)
        assert all(torch.equal(a, b) for a, b in same), (kind, program)
