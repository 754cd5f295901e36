"""After ``finish()`` a module is the program's: nothing of the trainer is left on it, under NCCL's rules too."""

import pytest
import torch
from torch import nn

from ringzero import launch
from ringzero.data_parallel import DistributedDataParallel
from ringzero.unsynced import DiLoCo, Gossip, LocalSGD, Pairwise, ParameterServer, PushSum, graphs
from ringzero.unsynced.by_collectives import ServedByCollectives
from ringzero.unsynced.compression import TopK


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1)


TRAINERS = {
    "Gossip": lambda module: Gossip(module, sgd(module), graphs.ring(2)),
    "PushSum": lambda module: PushSum(module, sgd(module), graphs.ring(2)),
    "LocalSGD": lambda module: LocalSGD(module, sgd(module), 2),
    "DiLoCo": lambda module: DiLoCo(module, sgd(module), 2, delay=1, fragments=2),
    "Pairwise": lambda module: Pairwise(module, sgd(module)),
    "ServedByCollectives": lambda module: ServedByCollectives(module, torch.optim.SGD, lr=0.1),
    "ParameterServer": lambda module: ParameterServer(module, torch.optim.SGD, lr=0.1),
    "ParameterServer, overlap": lambda module: ParameterServer(module, torch.optim.SGD, lr=0.1, overlap=True),
}


def hooks_of(module):
    kinds = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")
    on_modules = sum(len(getattr(each, kind)) for each in module.modules() for kind in kinds)
    return on_modules + sum(len(p._post_accumulate_grad_hooks or ()) for p in module.parameters())


def goes_on_alone(name):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    x, trainer = torch.ones(2, 4), TRAINERS[name](module)
    for _ in range(3):
        module(x).square().mean().backward()
        trainer.step()
        module.zero_grad()
    trainer.finish()
    assert hooks_of(module) == 0
    optimizer = sgd(module)
    for _ in range(2):  # two backward passes before a step: no business of the trainer's
        module(x).square().mean().backward()
    optimizer.step()
    after = [p.detach().clone() for p in module.parameters()]
    module(x)
    assert all(torch.equal(p, q) for p, q in zip(module.parameters(), after, strict=True))
    return True


@pytest.mark.parametrize("device", ["cpu", "strict"])
@pytest.mark.parametrize("name", TRAINERS)
def test_what_is_over_leaves_the_module(name, device):
    assert all(launch(goes_on_alone, name, world_size=2, device=device).returns)


def compressed_until_it_leaves():
    module = nn.Linear(4, 4)
    replica = DistributedDataParallel(module, compressor=TopK(0.5))
    replica(torch.ones(2, 4)).sum().backward()
    replica.leave()
    assert hooks_of(module) == 0
    module.zero_grad()
    torch.nn.Linear.forward(module, torch.ones(2, 4) * (torch.distributed.get_rank() + 1)).sum().backward()
    return module.weight.grad[0, 0].item()


def test_compression_goes_with_its_replica():
    assert launch(compressed_until_it_leaves).returns == [2.0, 4.0]


def gossip_goes_on_after_finish():
    """``finish`` may come in the middle: the next step begins again."""
    module = nn.Linear(4, 4)
    trainer = TRAINERS["Gossip"](module)
    for _ in range(2):
        for _ in range(2):
            module(torch.ones(2, 4)).sum().backward()
            trainer.step()
        trainer.finish()
    assert hooks_of(module) == 0
    return trainer.round


def test_gossip_goes_on_after_finish():
    assert launch(gossip_goes_on_after_finish).returns == [4, 4]
