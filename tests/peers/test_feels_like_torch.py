"""What a program for torch's DDP, ZeroRedundancyOptimizer or GradScaler calls, beside what torch makes of it."""

import functools
import re

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from ringzero import launch
from ringzero.data_parallel import DistributedDataParallel
from ringzero.zero import STAGES
from tests import awkward
from tests.peers.behaviours import WIDTH, batch, layers, seeded
from tests.peers.trainers import SGD, OneProcess

# ---- communication hooks


def twice(state, bucket):
    """A hook of the user's: torch's all-reduce, called behind a future, and what it was told of the buckets."""
    state.append((bucket.index(), bucket.is_last(), [tuple(g.shape) for g in bucket.gradients()]))
    assert bucket.buffer().numel() == sum(p.numel() for p in bucket.parameters())
    return default_hooks.allreduce_hook(None, bucket).then(lambda mean: 2 * mean.value())


def power_sgd():
    return powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=0.5)


HOOKS = {
    "none": None,
    "all-reduce": (lambda: None, default_hooks.allreduce_hook),
    "float16": (lambda: None, default_hooks.fp16_compress_hook),
    "PowerSGD": (power_sgd, powerSGD_hook.powerSGD_hook),
    "user's": (list, twice),
}


def hooked(wrap, name):
    model = wrap(seeded(layers).float(), bucket_cap_mb=25)
    if HOOKS[name] is not None:
        make_state, hook = HOOKS[name]
        state = make_state()
        model.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        model(batch(step)[dist.get_rank() :: dist.get_world_size()].float()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    seen = state if name == "user's" else None
    return seen, [p.detach().clone() for p in model.parameters()]


def both_hooked():
    return {
        name: [hooked(each, name) for each in (DistributedDataParallel, nn.parallel.DistributedDataParallel)]
        for name in HOOKS
    }


def test_communication_hooks_of_torch_give_what_they_give_there():
    """Within tolerance: gradients are divided before or after a sum, and rounded in another order."""
    for rank in launch(both_hooked, world_size=3).returns:
        for name, ((seen, ours), (seen_by_torchs, torchs)) in rank.items():
            tolerance = 1e-3 if name == "float16" else 1e-5
            torch.testing.assert_close(ours, torchs, rtol=tolerance, atol=tolerance, msg=name)
            if seen is not None:
                assert len(seen) == len(seen_by_torchs)
                assert {(index, is_last) for index, is_last, _ in seen} == {(0, True)}
        apart = [
            (rank["none"][0][1][0] - rank[name][0][1][0]).abs().max() for name in ("float16", "PowerSGD", "user's")
        ]
        assert min(apart) > 0  # so the hook was called


# ---- uneven data


RANKS, LR = 3, 0.02


def data(epoch, step, rank):
    return batch(100 * epoch + 10 * step + rank)


def until_out_of_data(wrap, clip, optimizer_of, epochs, mean_over_all):
    """One step more on rank 1, two on rank 2; a schedule that ranks without data do not follow."""
    model = wrap(seeded(layers))
    optimizer = getattr(model, "optimizer", None) or optimizer_of(model.parameters(), lr=LR)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for epoch in range(epochs):
        with model.join(divide_by_initial_world_size=mean_over_all):
            for step in range(2 + dist.get_rank()):
                x = data(epoch, step, dist.get_rank())
                with model.no_sync():
                    model(x).square().mean().backward()
                model(x + 1).square().mean().backward()
                clip(model)
                (model if hasattr(model, "vectors") else optimizer).step()
                model.zero_grad()
                schedule.step()
        for group in optimizer.param_groups:  # not the same on all ranks any more
            group["lr"] = LR
    return dict(model.state_dict())


def all_joined(kind, *how):
    def of_all_ranks(model):
        model.clip_grad_norm_(0.1)

    def of_this_rank(model):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    def zero(stage):
        return functools.partial(STAGES[stage], optimizer=kind, bucket_cap_mb=1e-4, lr=LR)

    return {
        "ddp": until_out_of_data(DistributedDataParallel, of_this_rank, kind, *how),
        "stage 1": until_out_of_data(zero(1), of_all_ranks, kind, *how),
        "stage 2": until_out_of_data(zero(2), of_all_ranks, kind, *how),
    }


def all_in_one_process(kind, epochs, mean_over_all):
    module = seeded(layers)
    optimizer = kind(module.parameters(), lr=LR)
    for epoch in range(epochs):
        for step in range(1 + RANKS):
            optimizer.param_groups[0]["lr"] = LR * 0.5**step
            with_data = [data(epoch, step, rank) for rank in range(RANKS) if step < 2 + rank]
            losses = [module(x).square().mean() + module(x + 1).square().mean() for x in with_data]
            (sum(losses) / (RANKS if mean_over_all else len(losses))).backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            optimizer.step()
            optimizer.zero_grad()
    return module.state_dict()


# In data parallelism a rank without data does not step, so AdamW's states differ afterwards; with plain SGD a second
# epoch begins as on one process.
@pytest.mark.parametrize(("kind", "epochs"), [(torch.optim.AdamW, 1), (torch.optim.SGD, 2)])
def test_ranks_with_more_data_train_on(kind, epochs):
    for mean_over_all in (True, False):
        alone = all_in_one_process(kind, epochs, mean_over_all)
        for rank in launch(all_joined, kind, epochs, mean_over_all, world_size=RANKS).returns:
            for name, state in rank.items():
                for key, expected in alone.items():
                    assert torch.allclose(state[key], expected, rtol=1e-10, atol=1e-10), (name, key, mean_over_all)


def ends_together():
    model = DistributedDataParallel(seeded(layers))
    steps = []

    def train():
        with model.join(throw_on_early_termination=True):
            for step in range(2 + dist.get_rank()):
                model(batch(step)).mean().backward()
                steps.append(step)

    return awkward.error_of(train), len(steps)


def test_all_ranks_may_end_when_one_is_out_of_data():
    (first, first_steps), (second, second_steps) = launch(ends_together).returns
    assert (first_steps, second_steps) == (2, 2)
    assert "Rank 0 exhausted all inputs." in first
    assert "Detected at least one rank that exhausted inputs" in second


# ---- a list of parameters


def of_a_list(stage):
    first, second = (nn.Parameter(p) for p in torch.randn(2, WIDTH, WIDTH, generator=torch.Generator().manual_seed(0)))
    given = [first, second] if stage == 1 else [{"params": first}, {"params": [second], "lr": 0.1}]
    model = STAGES[stage](given, torch.optim.AdamW, lr=0.1)
    for step in range(3):
        x = batch(step)[dist.get_rank() :: dist.get_world_size()].float()
        (x @ first @ second).square().mean().backward()
        model.step()
        model.zero_grad()
    return [first.detach().clone(), second.detach().clone()]


def test_zero_takes_a_list_of_parameters_or_of_groups():
    weights = [nn.Parameter(p) for p in torch.randn(2, WIDTH, WIDTH, generator=torch.Generator().manual_seed(0))]
    optimizer = torch.optim.AdamW(weights, lr=0.1)
    for step in range(3):
        (batch(step).float() @ weights[0] @ weights[1]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    for rank in launch(lambda: [of_a_list(1), of_a_list(2)], world_size=3).returns:
        for trained in rank:
            torch.testing.assert_close(trained, [w.detach() for w in weights], rtol=1e-4, atol=1e-5)


def added_in_bfloat16():
    module = seeded(layers).float()
    module[2].requires_grad_(False)
    model = STAGES[1](module, torch.optim.SGD, lr=0.1, mixed_precision=torch.bfloat16, units=iter([module[0]]))
    model.add_param_group({"params": [p.requires_grad_() for p in module[2].parameters()]})
    return [str(vector.master.dtype) for vector in model.vectors()], [str(p.dtype) for p in module.parameters()]


def test_what_is_added_is_stepped_in_the_precision_it_was_given_in():
    for masters, computed_with in launch(added_in_bfloat16).returns:
        assert set(masters) == {"torch.float32"}
        assert set(computed_with) == {"torch.bfloat16"}


# ---- a loop as accelerate's users write it


def accelerated(wrap):
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState

    for state in (AcceleratorState, GradientState):
        state._reset_state()  # of an earlier program of this process
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    trainer = wrap(seeded(layers), SGD)
    for step in range(4):
        with accelerator.accumulate(trainer.model):
            loss = trainer(trainer.part(batch(step))).square().mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                trainer.clip(0.1)
                trainer.step()
                trainer.zero_grad()
    return trainer.state()


def all_accelerated():
    from tests.peers.trainers import OURS

    return {name: accelerated(trainer) for name, trainer in OURS.items()}


def test_a_loop_of_accelerate_trains_as_one_process():
    alone = accelerated(OneProcess)
    for rank in launch(all_accelerated).returns:
        for name, state in rank.items():
            torch.testing.assert_close(state, alone, rtol=1e-10, atol=1e-10, msg=name)


# ---- units by default


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.blocks = nn.Linear(2, 4), nn.ModuleList(Block() for _ in range(3))
        self.scale = nn.Parameter(torch.ones(4))


def with_units_by_default():
    STAGES[3](Transformer(), torch.optim.SGD, lr=0.1)


def test_units_by_default_are_said_once():
    first, second = launch(with_units_by_default).output
    assert "1 Linear: 12; 3 Block: 60; the Transformer itself: 4\n" in first
    assert second == ""


# ---- what is refused


def zero(stage=1, **options):
    return STAGES[stage](seeded(layers), torch.optim.SGD, lr=0.1, **options)


def add(group, stage=1):
    module = seeded(layers)
    module[2].requires_grad_(False)
    STAGES[stage](module, torch.optim.SGD, lr=0.1).add_param_group({"params": group(module)})


def forward_in_whole_parameters():
    model = zero(3)
    with model.whole_parameters():
        model(batch(0))


def torchs_scaler():
    model, scaler = zero(), torch.amp.GradScaler("cpu")
    scaler.scale(model(batch(0)).mean()).backward()
    scaler.step(model)


def other_optimizer():
    model = zero(2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(batch(0)).mean().backward()
    optimizer.step()


def two_hooks():
    model = DistributedDataParallel(seeded(layers))
    for _ in range(2):
        model.register_comm_hook(None, default_hooks.allreduce_hook)


def no_future():
    model = DistributedDataParallel(seeded(layers))
    model.register_comm_hook(None, lambda state, bucket: bucket.buffer())
    model(batch(0)).mean().backward()


REFUSED = [
    (
        lambda: add(lambda module: nn.Parameter(torch.ones(3))),
        r"a parameter to add, of shape \(3,\), is not in the mod",
    ),
    (lambda: add(lambda module: module[0].parameters()), "0.weight is trained already"),
    (lambda: add(lambda module: module[2].parameters(), 3), "2.weight is frozen; call its requires_grad_"),
    (forward_in_whole_parameters, "inside whole_parameters the module makes no forward or backward pass; end it first"),
    (torchs_scaler, "ZeroStage1 is no optimizer.*ringzero.zero.GradScaler"),
    (lambda: zero(3).join(), "ZeroStage3 has no join.*take stage 1 or 2"),
    (lambda: STAGES[3]([nn.Parameter(torch.ones(3))], torch.optim.SGD), "ZeroStage3 gathers parameters when the forw"),
    (lambda: STAGES[1]([torch.ones(3)], torch.optim.SGD), "give a module or its parameters, not a Tensor"),
    (other_optimizer, "this AdamW steps parameters that a ZeroStage2 has sharded.*call model.step()"),
    (two_hooks, "register_comm_hook can only be called once"),
    (no_future, "the communication hook returned a Tensor; it must return a future"),
]


def errors():
    return [awkward.error_of(work) for work, _ in REFUSED]


def test_what_cannot_be_is_refused_by_name():
    for raised in launch(errors).returns:
        for (_, message), text in zip(REFUSED, raised, strict=True):
            assert re.search(message, text), text
