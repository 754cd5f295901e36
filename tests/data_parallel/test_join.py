"""After ``join``: optimizers of ranks that had fewer batches go on as those of the others, beside one process."""

from functools import partial

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.data_parallel import DistributedDataParallel
from tests.awkward import error_of, mlp

OPTIMIZERS = {
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "AdamW": partial(torch.optim.AdamW, lr=0.1),
    "AMSGrad": partial(torch.optim.Adam, lr=0.1, amsgrad=True, foreach=False),
    "no states": partial(torch.optim.SGD, lr=0.1),
}


def loss_of(model, number, rank):
    return model(torch.full((2, 8), float(rank + number), dtype=torch.float64)).square().mean()


def plain_step(optimizer, loss, batch):
    loss().backward()
    optimizer.step()
    optimizer.zero_grad()


def every_other_with_a_closure(optimizer, loss, batch):
    """That step begins before its backward pass."""

    def closure():
        found = loss()
        found.backward()
        return found

    if batch % 2 == 0:
        return plain_step(optimizer, loss, batch)
    optimizer.step(closure)
    optimizer.zero_grad()


def uneven_with_states(make, epochs, step=plain_step):
    """Each epoch has numbers of batches by rank. Then a step on all ranks. With what a checkpoint of this rank has."""
    rank, module = dist.get_rank(), mlp(dist.get_rank()).double()
    model, optimizer = DistributedDataParallel(module, bucket_cap_mb=1e-4), make(module.parameters())
    for number, batches in enumerate(epochs):
        with model.join():
            for batch in range(batches[rank]):
                step(optimizer, partial(loss_of, model, 10 * number + batch, rank), batch)
    states = optimizer.state_dict()
    for batch in (5, 6):
        step(optimizer, partial(loss_of, model, batch, rank), batch)
    return states, dict(model.state_dict()), optimizer.state_dict()


def uneven_alone(make, epochs):
    module = mlp(0).double()
    optimizer = make(module.parameters())
    steps = [
        (10 * number + batch, [rank for rank, has in enumerate(batches) if batch < has])
        for number, batches in enumerate(epochs)
        for batch in range(max(batches))
    ]
    for number, ranks in [*steps, (5, (0, 1)), (6, (0, 1))]:
        (sum(loss_of(module, number, rank) for rank in ranks) / 2).backward()
        optimizer.step()
        optimizer.zero_grad()
    return dict(module.state_dict()), optimizer.state_dict()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("epochs", [[(1, 3)], [(3, 1)], [(2, 2)], [(1, 2), (1, 0)], [(0, 2)]])
def test_after_join_optimizers_go_on_as_that_of_the_rank_with_most_batches(optimizer, epochs):
    (states, *first), (others, *second) = launch(
        uneven_with_states, OPTIMIZERS[optimizer], epochs, world_size=2
    ).returns
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    torch.testing.assert_close(first, [*uneven_alone(OPTIMIZERS[optimizer], epochs)])
    if epochs != [(0, 2)]:  # there nobody knows the optimizer of rank 0 before it makes a step
        torch.testing.assert_close(states, others, rtol=0, atol=0)


@pytest.mark.parametrize("epochs", [[(1, 3)], [(1, 2), (1, 0)]])
def test_a_step_with_a_closure_waits_for_no_rank_inside_join_and_after_it(epochs):
    plain, in_turns = (
        launch(uneven_with_states, OPTIMIZERS["momentum"], epochs, step, world_size=2).returns
        for step in (plain_step, every_other_with_a_closure)
    )
    torch.testing.assert_close(in_turns, plain, rtol=0, atol=0)


def refused_after_join(case):
    rank, module = dist.get_rank(), mlp().double()
    model = DistributedDataParallel(module)
    kind = torch.optim.Adagrad if rank == 0 and case == "another kind" else torch.optim.AdamW
    optimizer = kind(module.parameters())
    with model.join():
        for batch in range(2 * rank):
            loss_of(model, batch, rank).backward()
            optimizer.step()
            optimizer.zero_grad()
    if case == "join again":
        return error_of(lambda: model.join().__enter__())
    loss_of(model, 0, rank).backward()
    return error_of(optimizer.step)


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        (
            "another kind",
            "rank 1, which made most steps, steps with AdamW of 8 parameters in 1 groups, and rank 0 with Ad",
        ),
        ("join again", "in the last join a rank had no data at all, so the states of its optimizer are still older"),
    ],
)
def test_states_that_a_rank_cannot_take_over_are_refused_on_all(case, sentence):
    for raised in launch(refused_after_join, case, world_size=2).returns:
        assert sentence in raised


def renewed_after_join():
    """A new optimizer begins anew, on every rank."""
    rank, module = dist.get_rank(), mlp().double()
    model = DistributedDataParallel(module)
    optimizer = torch.optim.AdamW(module.parameters())
    with model.join():
        for batch in range(2 * rank):
            loss_of(model, batch, rank).backward()
            optimizer.step()
            optimizer.zero_grad()
    optimizer = torch.optim.AdamW(module.parameters())
    loss_of(model, 0, rank).backward()
    optimizer.step()
    return {int(state["step"]) for state in optimizer.state.values()}, dict(module.state_dict())


def test_a_new_optimizer_after_join_is_new_on_every_rank():
    first, second = launch(renewed_after_join, world_size=2).returns
    torch.testing.assert_close(first[1], second[1], rtol=0, atol=0)
    assert first[0] == second[0] == {1}
