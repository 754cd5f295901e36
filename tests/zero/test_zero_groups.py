"""Models that are made and dropped leave nothing behind: their groups serve the next ones, of whatever kind."""

import os
import threading

import torch

from ringzero import launch
from ringzero.zero import STAGES, Host, Hybrid, ZeroPlusPlus

MADE = [
    (3, {"travel": ZeroPlusPlus(ranks_per_node=2)}),
    (1, {}),
    (2, {"travel": Hybrid(2), "home": True}),
    (3, {}),
    (3, {"travel": Hybrid(1)}),
]


def held():
    """Descriptors and threads of this process."""
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task"))


def made_and_dropped(times):
    seen = []
    for i in range(times):
        stage, options = MADE[i % len(MADE)]
        options = options | ({"home": Host()} if "home" in options else {})
        module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
        model = STAGES[stage](module, torch.optim.SGD, lr=0.1, **options)
        model(torch.ones(2, 4)).sum().backward()
        model.step()
        del model, module
        seen.append(held())
    return seen, torch.distributed.distributed_c10d._world.pg_map.__len__()


def test_what_models_opened_serves_the_next_ones():
    for seen, groups in launch(made_and_dropped, 25, world_size=4).returns:
        first, last = seen[2 * len(MADE) - 1], seen[-1]
        assert all(late <= early for early, late in zip(first, last, strict=True)), seen
        assert groups <= 16  # the world, ten for a ZeRO++ model at most, nodes and what lies across them


def opened(travel):
    before = len(torch.distributed.distributed_c10d._world.pg_map)
    model = STAGES[3](torch.nn.Linear(4, 4), torch.optim.SGD, lr=0.1, travel=travel)
    return len(torch.distributed.distributed_c10d._world.pg_map) - before, len(model.vectors())


def test_zero_plus_plus_opens_a_group_for_each_thing_that_travels_at_once():
    """Of its own one for reductions and one for gathers; of nodes two, one of those across, and both as they are."""
    for groups, _ in launch(opened, ZeroPlusPlus(ranks_per_node=2), world_size=4).returns:
        assert groups == 7
