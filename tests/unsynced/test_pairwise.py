"""AD-PSGD: pairs of ranks average while all train."""

import os
import random
import signal
import threading
import time

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, launch
from ringzero.unsynced.pairwise import Pairwise
from ringzero_course.tasks import characters


def flat(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def meet(steps):
    """Ranks move apart by a step each, and train no more. Returns ``(start, end, distance at the end, averages)``."""
    module = torch.nn.Linear(9, 5)
    trainer = Pairwise(module, torch.optim.SGD(module.parameters(), lr=1.0))
    torch.manual_seed(dist.get_rank())
    module.weight.grad, module.bias.grad = torch.randn(5, 9), torch.randn(5)
    start = flat(module) - torch.cat([module.weight.grad.flatten(), module.bias.grad])
    trainer.step()
    module.zero_grad()
    dist.barrier()
    for _ in range(steps):
        time.sleep(0.005)
        trainer.step()
    trainer.finish()
    return start, flat(module), trainer.consensus_distance(), trainer.averages


@pytest.mark.parametrize("ranks", [4, 3, 1])
def test_pairs_keep_the_mean_and_come_together(ranks):
    starts, ends, distances, averages = zip(*launch(meet, 30, world_size=ranks).returns, strict=True)
    torch.testing.assert_close(torch.stack(ends).mean(0), torch.stack(starts).mean(0))
    apart = (torch.stack(starts) - torch.stack(starts).mean(0)).square().sum(1).mean().sqrt()
    assert distances[0] <= apart / 4  # less, the better the ranks' turns mix
    asking, answering = sum(averages[::2]), sum(averages[1::2])
    assert asking == answering == (31 * len(averages[::2]) if ranks > 1 else 0)


def train(steps, slow, dies):
    """Returns ``(loss on text held out, steps a second)``."""
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    model = characters.Model(hidden=32)
    trainer = Pairwise(model, torch.optim.SGD(model.parameters(), lr=0.3))
    if dies and dies[0] == rank:
        threading.Timer(dies[1], os.kill, (os.getpid(), signal.SIGKILL)).start()
    for step in range(steps):
        if rank == slow:
            time.sleep(0.01)
        characters.loss(model, characters.batch(step, rank, n, samples=48)).backward()
        trainer.step()
        trainer.zero_grad()
    trainer.finish()
    return characters.held_out_loss(model, every=16), sorted(trainer.lost)


def test_models_learn_and_stay_close():
    losses = [loss for loss, _ in launch(train, 60, 3, None, world_size=4).returns]
    torch.manual_seed(0)
    start = characters.held_out_loss(characters.Model(hidden=32), every=16)
    assert max(losses) < start - 0.3  # how much they learn, and how near they are, depends on the ranks' pace
    assert max(losses) - min(losses) < start - max(losses)


def test_training_goes_on_when_a_rank_is_killed_at_any_moment(request):
    """``--seeds K``: K kills, of ranks that ask and of ranks that answer. Survivors have learned."""
    torch.manual_seed(0)
    learned = characters.held_out_loss(characters.Model(hidden=32), every=16) - 0.3
    for seed in range(2 * request.config.getoption("seeds")):
        draw = random.Random(seed)
        dies = draw.randrange(4), draw.uniform(0.0, 0.3)
        ranks = launch(train, 60, None, dies, world_size=4, may_lose=True)
        for rank, each in enumerate(ranks.returns):
            if rank not in ranks.lost:
                assert each[0] < learned, f"seed {seed}"
                assert set(each[1]) <= set(ranks.lost), f"seed {seed}"


def wide():
    model = torch.nn.Linear(2, 2, dtype=torch.float64)
    Pairwise(model, torch.optim.SGD(model.parameters(), lr=0.1))


def test_float64_is_refused():
    with pytest.raises(RankError, match="weight, bias: float64"):
        launch(wide, world_size=2)


def test_by_nccls_rules_too():
    assert launch(meet, 3, world_size=2, device="strict").returns[0][3] == 4
