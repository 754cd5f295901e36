"""Ours beside torch's in programs that were not written for either; every deviation is in one committed table."""

import gc

import pytest
import torch
import torch.distributed as dist
from hypothesis import HealthCheck, Phase, given, seed, settings
from torch import nn

from ringzero import launch
from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel
from ringzero.zero import STAGES
from tests.in_turn import in_turn
from tests.peers import generated, outcomes
from tests.peers.behaviours import BATCH, BEHAVIOURS, WIDTH, batch, layers, seeded
from tests.peers.trainers import OURS, TRAINERS, OneProcess

ROWS = outcomes.committed()
TABLE = {name: row["outcomes"] for name, row in ROWS.items()}
DEVIATES = [(name, each) for name in BEHAVIOURS for each in OURS if TABLE[name][each] != outcomes.RIGHT]
# Ranks that wait for one another for ever: `launch` says so, with the line of each. Torch's would sum what does not
# belong together, or wait too.
HANGS = {
    "Two models in one loss, whose order differs between ranks",
    "Rank 0 alone evaluates the module, not the wrapper",
    "A layer that only one rank's samples use, AdamW",
}


def test_the_table_has_every_program_and_trainer():
    assert list(TABLE) == list(BEHAVIOURS)
    assert len(BEHAVIOURS) >= 80
    assert all(list(row) == list(TRAINERS) for row in TABLE.values())


def test_nothing_of_ours_is_silently_wrong():
    assert not [(name, each) for name, each in DEVIATES if TABLE[name][each] == outcomes.WRONG]
    assert {name for name, each in DEVIATES if TABLE[name][each] == outcomes.HANGS} <= HANGS
    assert {name for name, row in ROWS.items() if row["why"]} == {name for name, _ in DEVIATES}


@pytest.mark.parametrize(("trainer", "world_size"), [*((each, 2) for each in TRAINERS), *((each, 3) for each in OURS)])
def test_what_the_table_calls_right_is_right(trainer, world_size, request):
    """On 3 ranks half of them in turn, without torch.compile, which takes seconds."""
    names = [name for name in BEHAVIOURS if TABLE[name][trainer] == outcomes.RIGHT]
    if world_size == 3:
        names = in_turn([name for name in names if "torch.compile" not in name], 2)
    for rank in launch(outcomes.on_a_rank, names, trainer, world_size=world_size).returns:
        for name, state in zip(names, rank, strict=True):
            assert outcomes.is_close(outcomes.alone(name), state), name


@pytest.mark.parametrize(("name", "trainer"), DEVIATES)
def test_what_the_table_calls_refused_is_refused(name, trainer):
    stated = TABLE[name][trainer]
    # One that waits for ever may be given up soon; another one may take its time on a busy machine.
    assert outcomes.of(name, trainer, timeout=5 if stated == outcomes.HANGS else 1200) == stated


def of_all(plans):
    return [generated.train(plan, make) for plan in plans for make in OURS.values()]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_generated_models(world_size, seeds):
    """More of them with ``--seeds``: 4 a seed and number of ranks."""
    for number in range(seeds):
        plans = drawn(4, 100 * world_size + number)
        trained = [(plan, name) for plan in plans for name in OURS]
        alone = [state for plan in plans for state in [generated.train(plan, OneProcess)] * len(OURS)]
        for rank in launch(of_all, plans, world_size=world_size).returns:
            for what, expected, state in zip(trained, alone, rank, strict=True):
                assert outcomes.is_close(expected, state), what


def drawn(count, number):
    plans = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(generated.plans())
    def draw(plan):
        plans.append(plan)

    draw()
    return plans


@pytest.fixture
def seeds(request):
    return request.config.getoption("--seeds")


# ---- what one process cannot be compared with


def with_batch_norm(wrap):
    model = wrap(seeded(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, 1))))
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(3):
        model(batch(step)[rank::n]).square().mean().backward()
        model(batch(step + 10)[rank::n]).square().mean().backward()
        optimizer = model if isinstance(model, STAGES[1]) else torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.step()
        model.zero_grad()
    return {key.removeprefix("module."): value.clone() for key, value in model.state_dict().items()}


def all_with_batch_norm():
    zero = {"optimizer": torch.optim.SGD, "lr": 0.1}
    return {
        "torch": with_batch_norm(nn.parallel.DistributedDataParallel),
        "naive": with_batch_norm(NaiveDataParallel),
        "flat": with_batch_norm(FlatDataParallel),
        "ddp": with_batch_norm(DistributedDataParallel),
        "zero": with_batch_norm(lambda module: STAGES[1](module, **zero)),
    }


def test_batch_norm_in_training_is_as_under_torch_s_ddp():
    """Statistics are each rank's own in a pass, and rank 0's before the next."""
    for rank in launch(all_with_batch_norm, world_size=3).returns:
        for name in ("naive", "flat", "ddp", "zero"):
            for key, expected in rank["torch"].items():
                torch.testing.assert_close(rank[name][key], expected, rtol=1e-10, atol=1e-10, msg=f"{name} {key}")


def buffers_after_two_passes(broadcast_buffers):
    module = seeded(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)))
    model = DistributedDataParallel(module, broadcast_buffers=broadcast_buffers)
    for step in range(2):
        model(batch(step)[dist.get_rank() :: 2] * (1 + dist.get_rank())).square().mean().backward()
    model(batch(0) * 0)  # a pass that trains: everyone begins it with rank 0's buffers
    return module[1].running_var


def test_buffers_stay_each_rank_s_own_if_that_is_asked_for():
    same, own = (launch(buffers_after_two_passes, each).returns for each in (True, False))
    assert torch.equal(same[0], same[1])
    assert not torch.allclose(own[0], own[1])


def joined_with_batch_norm():
    module = seeded(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, 1)))
    model = DistributedDataParallel(module)
    with model.join():
        for step in range(2 + 2 * dist.get_rank()):
            model(batch(step)).square().mean().backward()
            model.zero_grad()
    return {key: value.clone() for key, value in model.state_dict().items()}


def test_ranks_that_run_out_of_data_do_not_keep_others_waiting_for_buffers():
    first, *others = launch(joined_with_batch_norm, world_size=3).returns
    assert all(torch.equal(other[key], first[key]) for other in others for key in first)


def many_models():
    """A process group for each would need more sockets than a process may have."""
    groups = set()
    for i in range(60):
        if i % 3 == dist.get_rank():
            gc.collect(0)  # Python does at times of its own, so ranks find different models gone
        model = DistributedDataParallel(seeded(layers, i))
        model(batch(0)).mean().backward()
        groups.add(model.group.group_name)
    return len(groups)


def test_a_model_that_is_gone_leaves_its_process_group_to_the_next():
    for groups in launch(many_models, world_size=3).returns:
        assert groups <= 3


def lost_wrapper():
    module = seeded(layers)
    DistributedDataParallel(module)
    gc.collect()
    module(batch(0)).mean().backward()


def test_a_wrapper_that_is_gone_is_missed():
    with pytest.raises(Exception, match="the DistributedDataParallel that averages this gradient is gone; keep it"):
        launch(lost_wrapper)


class Rotary(nn.Module):
    """Its angles lose their meaning in bfloat16."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("angles", torch.arange(2000, 2000 + WIDTH) / 10)

    def forward(self, x):
        return self.layer(x) * torch.cos(self.angles).to(x.dtype)


def angles_of(stage):
    model = STAGES[stage](Rotary(), torch.optim.SGD, lr=0.1, mixed_precision=torch.bfloat16)
    output = model(torch.ones(BATCH, WIDTH))
    return model.module.angles, output.dtype == model.module.layer.weight.dtype == torch.bfloat16


@pytest.mark.parametrize("stage", STAGES)
def test_mixed_precision_leaves_buffers_alone(stage):
    for angles, is_low in launch(angles_of, stage).returns:
        assert is_low
        assert torch.equal(angles, Rotary().angles)
