"""ZeRO against one process on the whole batch: values, bytes held and sent, and the order of events."""

import copy
import functools
import gc
import itertools
import re
import time

import pytest
import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

from ringzero import RankError, RankTimeout, launch
from ringzero.costs.page import memory
from ringzero.data_parallel import DistributedDataParallel
from ringzero.record import recorded
from ringzero.record.operation import bytes_sent
from ringzero.zero import STAGES, GradScaler, Host, ZeroStage3, save
from ringzero.zero.gather import Unit
from ringzero.zero.model import ZeroModel
from ringzero.zero.plain import PLAIN
from ringzero.zero.sharding import Layout
from tests import awkward
from tests.awkward import mlp, model_of

STEPS, MAX_NORM, ADAMW = 10, 0.3, {"lr": 0.01, "weight_decay": 0.1}
NEVER = {"Unused": ("never.weight", "never.bias")}
close = functools.partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)


def step_alone(model, optimizer, step, max_norm=MAX_NORM):
    """One process, the whole batch."""
    awkward.loss_of(model, *awkward.batch(step)).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return norm


def step_sharded(model, step, max_norm=MAX_NORM):
    """This rank's part of the batch, in two backward passes, the first without a word to the others."""
    rank, n = dist.get_rank(), dist.get_world_size()
    tokens, targets = (whole[rank::n].chunk(2) for whole in awkward.batch(step))
    with model.no_sync():
        (awkward.loss_of(model, tokens[0], targets[0]) / 2).backward()
    (awkward.loss_of(model, tokens[1], targets[1]) / 2).backward()
    norm = model.clip_grad_norm_(max_norm)
    model.step()
    model.zero_grad()
    return norm


@functools.cache
def alone(name, optimizer=torch.optim.AdamW, steps=STEPS, max_norm=MAX_NORM, **options):
    model = model_of(name)
    optimizer = optimizer([p for p in model.parameters() if p.requires_grad], **options or ADAMW)
    norms = [step_alone(model, optimizer, step, max_norm) for step in range(steps)]
    return model.state_dict(), norms


def sharded(stage, name, optimizer=torch.optim.AdamW, arguments=ADAMW, **options):
    """A model that is another on every rank before it is sharded, so a missing broadcast shows."""
    options = {"find_unused": name == "Unused", "unused": NEVER.get(name, ())} | options
    if stage < 3 and "units" not in options:
        options.setdefault("bucket_cap_mb", 1e-4)
    return STAGES[stage](model_of(name, dist.get_rank()), optimizer, **arguments, **options)


def step_plain(zero, step):
    """As ``step_sharded`` with all that the plain stages can: one backward pass, and no clipping."""
    rank, n = dist.get_rank(), dist.get_world_size()
    tokens, targets = awkward.batch(step)
    awkward.loss_of(zero.model, tokens[rank::n], targets[rank::n]).backward()
    zero.step()


def plain_state(zero):
    """The whole ``state_dict`` of a module in one of the plain stages."""
    values = {p: p.detach() for p in zero.model.parameters()}
    for layer in [] if type(zero) is PLAIN[0] else zero.layers:
        whole = layer.shard.new_empty(layer.n * len(layer.shard))
        dist.all_gather_into_tensor(whole, layer.shard.detach())
        pieces = whole[: sum(p.numel() for p in layer.parameters)].split([p.numel() for p in layer.parameters])
        values |= {p: piece.view(p.shape) for p, piece in zip(layer.parameters, pieces, strict=True)}
    named = zero.model.named_parameters(remove_duplicate=False)
    return {name: values[p] for name, p in named} | dict(zero.model.named_buffers())


def every_plain_model():
    """Without ``Unused``: the plain stages need a gradient of every parameter."""
    results = {}
    for stage, name in itertools.product(PLAIN, [name for name in awkward.MODELS if name not in NEVER]):
        zero = PLAIN[stage](model_of(name, dist.get_rank()), **ADAMW)
        for step in range(STEPS):
            step_plain(zero, step)
        results[stage, name] = plain_state(zero)
    return results


def every_model():
    results = {}
    for stage in STAGES:
        for name in awkward.MODELS:
            model = sharded(stage, name)
            norms = [step_sharded(model, step) for step in range(STEPS)]
            results[stage, name] = model.state_dict(), norms
    return results


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_n_ranks_train_as_one_process_on_the_whole_batch(world_size):
    """Within rounding: sums over ranks are taken in another order than over a batch. Across ranks bit for bit."""
    ranks = launch(every_model, world_size=world_size).returns
    for (stage, name), (state, norms) in ranks[0].items():
        expected, expected_norms = alone(name)
        close(dict(state), dict(expected), msg=f"{stage} {name}")
        close(torch.tensor(norms).float(), torch.tensor(expected_norms).float())
        assert max(norms) > MAX_NORM  # it was clipped
        for other in ranks[1:]:
            assert all(torch.equal(other[stage, name][0][key], state[key]) for key in state), (stage, name)


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_the_plain_stages_train_as_one_process_on_the_whole_batch(world_size):
    ranks = launch(every_plain_model, world_size=world_size).returns
    for (stage, name), state in ranks[0].items():
        expected, _ = alone(name, max_norm=float("inf"))
        close(state, dict(expected), msg=f"plain {stage} {name}")
        for other in ranks[1:]:
            assert all(torch.equal(other[stage, name][key], state[key]) for key in state), (stage, name)
        assert stage == 0 or all(torch.equal(ranks[0][1, name][key], state[key]) for key in state), (stage, name)


def by_each_algorithm(algorithms):
    results = {}
    for algorithm in algorithms:
        for stage in STAGES:
            model = sharded(stage, "OddSizes", algorithm=algorithm)
            for step in range(3):
                step_sharded(model, step)
            results[algorithm, stage] = model.state_dict()
    return results


@pytest.mark.parametrize("device", ["cpu", "strict"])
def test_every_algorithm_trains_as_one_process(device):
    """On NCCL, and so on strict, None is the backend's own."""
    algorithms = (None, "ring", "flat", "bruck", "backend")
    expected, _ = alone("OddSizes", steps=3)
    for rank in launch(by_each_algorithm, algorithms, world_size=3, device=device).returns:
        for key, state in rank.items():
            close(dict(state), dict(expected), msg=str(key))


def kinds_of(stage, algorithm):
    model, before = sharded(stage, "OddSizes", algorithm=algorithm), len(recorded())
    step_sharded(model, 0)
    return sorted(op.kind for op in recorded()[before:] if op.kind != "header")


def test_nccl_has_its_own_collectives_and_gloo_ringzero_s_ring():
    for stage in STAGES:
        own = launch(kinds_of, stage, None, device="strict", trace=True).returns[0]
        assert "reduce_scatter" in own
        assert not {"send", "recv"}.intersection(own)
        assert own == launch(kinds_of, stage, "backend", trace=True).returns[0]
        assert {"send", "recv"}.issubset(launch(kinds_of, stage, None, trace=True).returns[0])


def test_unknown_algorithm_is_named():
    with pytest.raises(RankError, match="algorithm is 'tree'; take one of 'ring', 'flat', 'bruck', 'backend'"):
        launch(kinds_of, 1, "tree")


def whole_step(model, step):
    rank, n = dist.get_rank(), dist.get_world_size()
    tokens, targets = awkward.batch(step)
    awkward.loss_of(model, tokens[rank::n], targets[rank::n]).backward()
    norm = model.clip_grad_norm_(MAX_NORM)
    model.step()
    model.zero_grad()
    return norm


def same_cuts():
    """Every stage with stage 3's units, and 1 and 2 with buckets."""
    results = {}
    for name in ("Tied", "OddSizes", "MixedTypes"):
        for stage in STAGES:
            module = model_of(name, dist.get_rank())
            model = STAGES[stage](module, torch.optim.AdamW, units=list(module.children()), **ADAMW)
            results[name, "units", stage] = model, [whole_step(model, step) for step in range(STEPS)]
            if stage < 3:
                model = sharded(stage, name, bucket_cap_mb=2e-4)
                results[name, "buckets", stage] = model, [whole_step(model, step) for step in range(STEPS)]
    return {key: (model.state_dict(), norms) for key, (model, norms) in results.items()}


def test_stages_agree_bit_for_bit_where_the_cuts_are_the_same():
    """The ring adds chunk c in an order that depends on c alone, so with the same vectors cut alike the sums are the
    same bits. But stage 1 adds micro-batches up on each rank and then over ranks, 2 and 3 the other way round: so one
    backward pass a step.
    """
    results = launch(same_cuts, world_size=3).returns[0]
    for (name, cuts, _), (state, norms) in results.items():
        two_state, two_norms = results[name, cuts, 2]
        assert norms == two_norms, (name, cuts)
        assert all(torch.equal(state[key], two_state[key]) for key in state), (name, cuts)


def storages(tensors):
    """Bytes of floating-point tensors, each memory once."""
    held = {t.untyped_storage().data_ptr(): t.untyped_storage().size() for t in tensors if t.is_floating_point()}
    return sum(held.values())


def bytes_held(stage, mixed_precision, make=mlp):
    """Of ``(parameters, gradients, optimizer)`` between a backward pass and its step, and of all tensors there are."""
    gc.freeze()  # what was there before does not count
    module = make(dist.get_rank())
    if mixed_precision == "plain":
        zero = PLAIN[stage](module, **ADAMW)
        model, optimizer, step, zero_grad = module, zero.optimizer, zero.step, zero.optimizer.zero_grad
    elif stage == 0:
        model, optimizer = DistributedDataParallel(module), torch.optim.AdamW(module.parameters(), **ADAMW)
        step, zero_grad = optimizer.step, optimizer.zero_grad
    else:
        model = STAGES[stage](module, torch.optim.AdamW, mixed_precision=mixed_precision, **ADAMW)
        optimizer, step, zero_grad = model.optimizer, model.step, model.zero_grad
    for _ in range(2):
        zero_grad()
        model(torch.ones(2, 8)).sum().backward()
        step() if _ == 0 else None
    vectors = model.vectors() if hasattr(model, "vectors") else []
    parameters = [*module.parameters(), *(v.whole for v in vectors), *(v.shard for v in vectors)]
    gradients = [p.grad for p in module.parameters()] + [g for v in vectors for g in (v.gradient, v.reduced)]
    if mixed_precision == "plain":
        stepped = optimizer.param_groups[0]["params"]
        parameters, gradients = [*parameters, *stepped], [*gradients, *(p.grad for p in stepped)]
    states = [each for state in optimizer.state.values() for each in state.values()]
    states += [v.master.detach() for v in vectors if v.master.dtype != v.shard.dtype]
    parts = [storages(parameters), storages([g for g in gradients if g is not None]), storages(states)]
    for _ in range(100):  # a thread of gloo may still hold what it has sent
        gc.collect()
        together = storages(each for each in gc.get_objects() if issubclass(type(each), torch.Tensor))
        if together <= sum(parts):
            break
        time.sleep(0.05)
    return parts, together


def every_stage_held(make=mlp):
    return {
        (stage, mixed): bytes_held(stage, torch.bfloat16 if mixed is True else mixed or None, make)
        for stage in range(4)
        for mixed in ((False, True, "plain") if stage else (False, "plain"))
    }


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_bytes_held_equal_the_formula_to_the_byte(world_size):
    """Every layer has 72 numbers, which all these world sizes divide. Adam's 4-byte step count comes once a vector."""
    size = 4 * 72
    for rank in launch(every_stage_held, world_size=world_size).returns:
        for (stage, mixed), (parts, together) in rank.items():
            each = memory.bytes_per_param("adamw", mixed_precision=mixed is True)
            expected = list(memory.model_state_parts(size, stage, world_size, each))
            one_vector = stage in (1, 2) and mixed != "plain"  # of all layers, and otherwise one a layer
            expected[2] += 4 * (8 if stage == 0 else 1 if one_vector else 4)
            assert parts == expected, (stage, mixed)
            assert together == sum(expected), (stage, mixed)  # and nothing else is held


def mlp_odd(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))


def test_uneven_shards_together_are_the_formula_and_differ_by_an_element_a_vector():
    size, ranks = 45 + 42 + 24, launch(every_stage_held, mlp_odd, world_size=4).returns
    for stage, kept in ((1, 2), (2, 1), (3, 0)):
        for kind in range(kept, 3):
            held = [rank[stage, False][0][kind] - (4 * (3 if stage == 3 else 1) if kind == 2 else 0) for rank in ranks]
            assert sum(held) == (8 if kind == 2 else 4) * size
            assert max(held) - min(held) <= (3 if stage == 3 else 1) * (8 if kind == 2 else 4)


def sent_in_a_step(stage, micro_batches):
    """Bytes that this rank sent, without the first step, in which orders are learnt."""
    module = mlp(dist.get_rank())
    model = STAGES[stage](module, torch.optim.AdamW, bucket_cap_mb=4e-4, **ADAMW)
    for _ in range(2):
        before = len(recorded())
        with model.no_sync():
            for _micro_batch in range(micro_batches - 1):
                model(torch.ones(2, 8)).sum().backward()
        model(torch.ones(2, 8)).sum().backward()
        model.clip_grad_norm_(1.0)
        model.step()
        model.zero_grad()
    operations = recorded()[before:]
    assert {op.kind for op in operations} <= {"send", "recv", "header", "all_reduce"}
    assert [op.bytes for op in operations if op.kind == "all_reduce"] == [8]  # the norm
    return bytes_sent(operations)


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_elements_sent_equal_the_formula(world_size):
    def work():
        return {(stage, parts): sent_in_a_step(stage, parts) for stage in STAGES for parts in (1, 3)}

    for sent in launch(work, world_size=world_size).returns:
        for (stage, parts), size in sent.items():
            assert size == 4 * memory.communication_elements(4 * 72, stage, world_size, parts), (stage, parts)


ARGUMENTS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Rprop": {"lr": 0.01},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "RMSprop": {"lr": 0.01, "momentum": 0.9, "centered": True},
}
OPTIMIZERS = ("ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")


def with_each_optimizer():
    """Three steps sharded; then both whole states into a plain module and optimizer, and back into another stage."""
    results = {}
    for name in OPTIMIZERS:
        optimizer, arguments = getattr(torch.optim, name), ARGUMENTS.get(name, {"lr": 0.01})
        model = sharded(3, "OddSizes", optimizer, arguments)
        for step in range(3):
            step_sharded(model, step)
        plain = model_of("OddSizes", 5)
        plain.load_state_dict(model.state_dict())
        theirs = optimizer(plain.parameters(), **arguments)
        theirs.load_state_dict(model.optimizer_state_dict())
        step_alone(plain, theirs, 3)
        again = sharded(2, "OddSizes", optimizer, arguments)
        again.load_state_dict(plain.state_dict())
        again.load_optimizer_state_dict(theirs.state_dict())
        step_sharded(again, 4)
        results[name] = dict(again.state_dict())
    return results


def test_every_elementwise_optimizer_to_one_process_and_back_to_another_stage():
    for name, state in launch(with_each_optimizer, world_size=3).returns[1].items():
        arguments = ARGUMENTS.get(name, {"lr": 0.01})
        expected, _ = alone("OddSizes", getattr(torch.optim, name), 5, **arguments)
        tolerance = 1e-2 if name == "Rprop" else 1e-4  # it goes by the sign of a gradient, however small
        close(state, dict(expected), rtol=tolerance, atol=tolerance / 10, msg=name)


def in_mixed_precision(stage, dtype):
    """Of three steps: the parameters as stepped, those computed with, and the type of the optimizer's states."""
    rank, n = dist.get_rank(), dist.get_world_size()
    model = STAGES[stage](mlp(rank), torch.optim.AdamW, mixed_precision=dtype, bucket_cap_mb=1e-4, **ADAMW)
    scaler = GradScaler("cpu", init_scale=SCALE, enabled=dtype == torch.float16)
    for step in range(3):
        whole = torch.randn(24, 8, generator=torch.Generator().manual_seed(step))
        loss = model(whole[rank::n]).float().square().mean()
        scaler.scale(loss).backward()
        if scaler.is_enabled():
            scaler.step(model)
        else:
            model.step()
        scaler.update()
        model.zero_grad()
    with torch.no_grad():
        output = model(torch.ones(1, 8))
    states = {value.dtype for state in model.optimizer.state.values() for value in state.values()}
    return dict(model.state_dict()), output, states == {torch.float32}


SCALE = 1024.0  # a power of two, so that to scale is exact


@pytest.mark.parametrize(("dtype", "scale"), [(torch.bfloat16, 1.0), (torch.float16, SCALE)])
def test_mixed_precision_keeps_fp32_masters(dtype, scale):
    """On one rank bit for bit what a module of the type and AdamW on an fp32 copy of it do; on three close to it."""
    master, module = mlp(0), mlp(0).to(dtype)
    optimizer = torch.optim.AdamW(master.parameters(), **ADAMW)
    for step in range(3):
        whole = torch.randn(24, 8, generator=torch.Generator().manual_seed(step))
        (scale * module(whole.to(dtype)).float().square().mean()).backward()
        for original, low in zip(master.parameters(), module.parameters(), strict=True):
            original.grad, low.grad = low.grad.float() / scale, None
        optimizer.step()
        for original, low in zip(master.parameters(), module.parameters(), strict=True):
            low.data.copy_(original.data)
    expected = module(torch.ones(1, 8, dtype=dtype)).detach()
    for world_size in (1, 3):
        ranks = launch(lambda: [in_mixed_precision(stage, dtype) for stage in STAGES], world_size=world_size)
        for state, output, in_fp32 in ranks.returns[0]:
            assert in_fp32
            if world_size == 1:
                assert all(torch.equal(value, state[key]) for key, value in master.state_dict().items())
                assert torch.equal(output, expected)
            close(state, dict(master.state_dict()), rtol=0.1, atol=0.03)


def with_groups_and_a_scheduler(stage):
    module = model_of("OddSizes", dist.get_rank())
    weights, biases = module.first, [module.scalar, module.bias, *module.last.parameters()]
    groups = [{"params": weights.parameters(), "lr": 0.05}, {"params": biases, "weight_decay": 0.0}]
    model = STAGES[stage](module, torch.optim.AdamW, groups=groups, **ADAMW)
    scheduler = torch.optim.lr_scheduler.StepLR(model.optimizer, 2, gamma=0.1)
    for step in range(5):
        step_sharded(model, step)
        scheduler.step()
    return dict(model.state_dict()), model.optimizer_state_dict()["param_groups"]


def test_parameter_groups_and_schedulers():
    module = model_of("OddSizes")
    weights, biases = module.first, [module.scalar, module.bias, *module.last.parameters()]
    groups = [{"params": weights.parameters(), "lr": 0.05}, {"params": biases, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, **ADAMW)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.1)
    for step in range(5):
        step_alone(module, optimizer, step)
        scheduler.step()
    for state, groups in launch(lambda: [with_groups_and_a_scheduler(s) for s in STAGES]).returns[0]:
        close(state, dict(module.state_dict()))
        assert groups == optimizer.state_dict()["param_groups"]


class Awkward(torch.nn.Module):
    """A unit computed again in the backward pass, one used twice, one that only some ranks use, one shared by two."""

    def __init__(self):
        super().__init__()
        self.again, self.twice, self.sometimes = (torch.nn.Linear(6, 6) for _ in range(3))
        self.shared = torch.nn.Linear(6, 6)
        self.one, self.two = torch.nn.Sequential(self.shared), torch.nn.Sequential(self.shared, torch.nn.Linear(6, 3))

    def forward(self, tokens):
        x = tokens.float()
        if (tokens[:, 0] < 3).any():
            x = x + (tokens[:, :1] < 3) * self.sometimes(x)
        x = checkpoint(self.again, x, use_reentrant=False).tanh()
        x = self.twice(self.twice(x).tanh()).tanh()
        return self.two(self.one(x).tanh())


def awkward_batch(rank=None):
    """Only rank 0 has samples that begin with a number below 3."""
    tokens, targets = awkward.batch(0)
    tokens[1:, 0], tokens[0, 0] = 5, 1
    return (
        (tokens, targets)
        if rank is None
        else (tokens[rank :: dist.get_world_size()], targets[rank :: dist.get_world_size()])
    )


def train_awkward(stage, **options):
    torch.manual_seed(dist.get_rank())
    module = Awkward()
    units = [module.sometimes, module.again, module.twice, module.one, module.two]
    model = STAGES[stage](module, torch.optim.SGD, lr=0.1, find_unused=True, units=units, **options)
    tokens, targets = awkward_batch(dist.get_rank())
    for _ in range(3):
        with torch.no_grad():
            model(tokens)
        awkward.loss_of(model, tokens, targets).backward()
        model.step()
        model.zero_grad()
    return dict(model.state_dict())


def test_units_used_twice_or_again_or_by_some_ranks_only():
    torch.manual_seed(0)
    module = Awkward()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        awkward.loss_of(module, *awkward_batch()).backward()
        optimizer.step()
        optimizer.zero_grad()

    def work():
        return [train_awkward(1), train_awkward(2), *(train_awkward(3, prefetch=ahead) for ahead in (0, 1, 2, 9))]

    for states in launch(work, world_size=3).returns:
        for state in states:
            close(state, dict(module.state_dict()))


class LeftOut(torch.nn.Module):
    """Six layers, of which rank 0 alone uses the fourth: the others come past it, and gather and reduce without it."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(5, 5, dtype=torch.float64) for _ in range(6))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x).tanh() if number != 3 or dist.get_rank() == 0 else x
        return x


def train_left_out(stage, reduce_after_all_gathers=True, **options):
    torch.manual_seed(0)
    net = LeftOut()
    if not reduce_after_all_gathers:
        ZeroModel.reduces_after_all_gathers = False
    model = STAGES[stage](net, torch.optim.SGD, units=list(net.layers), lr=0.1, find_unused=True, **options)
    for step in range(2):
        model(torch.full((2, 5), step + 1.0, dtype=torch.float64)).square().mean().backward()
        model.step()
        model.zero_grad()
    return dict(model.state_dict())


def test_ranks_may_use_different_units():
    """On gloo and by NCCL's rules, where they must issue in one order. It would hang if they reduced in between."""

    def work():
        return [train_left_out(1), *(train_left_out(3, prefetch=ahead) for ahead in (0, 1, 2, 9))]

    for device in ("cpu", "strict"):
        for first, *others in launch(work, world_size=3, device=device).returns:
            for other in others:
                close(other, first)
    with pytest.raises(RankTimeout, match="stuck for good"):
        launch(train_left_out, 3, False, world_size=3, device="strict")


class KeepsItsWeight(torch.autograd.Function):
    """As functions of quantised layers do: autograd does not know of what it keeps."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.x, ctx.weight = x, weight
        return x @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.weight, gradient.t() @ ctx.x


class Keeping(torch.nn.Linear):
    def forward(self, x):
        return KeepsItsWeight.apply(x, self.weight)


def train_keeping(stage):
    torch.manual_seed(0)
    module = torch.nn.Sequential(*(Keeping(8, 8, bias=False) for _ in range(3)))
    model = STAGES[stage](module, torch.optim.SGD, lr=0.1, units=list(module))
    for step in range(2):
        model(torch.full((2, 8), step + 1.0)).square().mean().backward()
        model.step()
        model.zero_grad()
    return list(model.state_dict().values())


def test_what_a_function_keeps_of_a_parameter_is_there_in_its_backward_pass():
    def work():
        return train_keeping(1), train_keeping(3)

    for whole, sharded_too in launch(work).returns:
        assert all(map(torch.equal, whole, sharded_too))


def when_gradients_are_kept(stage):
    """At the last gradient of a backward pass: which of the vectors before it have a whole gradient still."""
    model, kept = STAGES[stage](mlp(dist.get_rank()), torch.optim.SGD, lr=0.1, bucket_cap_mb=1e-4), []

    def look(parameter):
        if parameter is model.module[0].weight:
            for wait in model.in_order.waits[:3]:
                wait()
            kept.extend(vector.gradient is not None for vector in model.vectors()[:3])

    model.module[0].weight.register_post_accumulate_grad_hook(look)
    model(torch.ones(2, 8)).sum().backward()
    return kept


def test_gradients_are_reduced_during_the_backward_pass_and_freed_from_stage_2_on():
    def work():
        return [when_gradients_are_kept(stage) for stage in STAGES]

    assert launch(work).returns == [[[True] * 3, [False] * 3, [False] * 3]] * 2


def order_of_gathers(activations=False):
    """Starts of gathers, computations and frees of a forward and a backward pass, by unit; 0 is the root."""
    layers = list(mlp(dist.get_rank()))
    module = [each for layer in layers for each in (layer, torch.nn.Tanh())] if activations else layers
    model = ZeroStage3(torch.nn.Sequential(*module), torch.optim.SGD, lr=0.1)
    model(torch.ones(2, 8)).sum().backward()
    number, events = {unit: i for i, unit in enumerate(model.gatherer.order)}, []
    real_unshard, real_reshard = Unit.unshard, Unit.reshard

    def unshard(unit):
        events.append(f"gather {number[unit]}")
        real_unshard(unit)

    def reshard(unit):
        if unit.whole and unit.vectors:
            events.append(f"free {number[unit]}")
        real_reshard(unit)

    Unit.unshard, Unit.reshard = unshard, reshard
    for i, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda module, args, i=i: events.append(f"compute {i + 1}"))
    loss = model(torch.ones(2, 8)).sum()
    forward = events.copy()
    loss.backward()
    return forward, events[len(forward) :]


def test_stage_3_gathers_a_unit_ahead_and_frees_it_after():
    forward, backward = launch(order_of_gathers).returns[0]
    expected = (
        "gather 0, gather 1, gather 2, compute 1, free 1, gather 3, compute 2, free 2, gather 4, compute 3, free 3"
    )
    assert ", ".join(forward) == expected + ", compute 4, free 4"
    assert ", ".join(backward) == ("gather 0, gather 4, gather 3, free 4, gather 2, free 3, gather 1, free 2, free 1")


def test_what_has_no_parameters_is_not_gathered_ahead_in_their_place():
    plain, with_activations = (launch(order_of_gathers, each).returns for each in (False, True))
    assert with_activations == plain


def two_passes(stage):
    """Two backward passes before a step, without ``no_sync``, after a forward pass that failed."""
    model = STAGES[stage](mlp(dist.get_rank()), torch.optim.SGD, lr=0.1, bucket_cap_mb=1e-4)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        model(torch.ones(2, 9))
    for factor in (1.0, 2.0):
        model(torch.full((1, 8), factor * (dist.get_rank() + 1))).square().sum().backward()
    model.step()
    return dict(model.state_dict())


def test_two_backward_passes_before_a_step_add_up():
    module = mlp()
    for factor in (1.0, 2.0):
        for rank in range(2):
            (module(torch.full((1, 8), factor * (rank + 1))).square().sum() / 2).backward()
    torch.optim.SGD(module.parameters(), lr=0.1).step()
    for states in launch(lambda: [two_passes(stage) for stage in STAGES]).returns:
        for state in states:
            close(state, dict(module.state_dict()))


def two_models(wrap):
    """Trained in one loss, over one process group."""
    models = [wrap(mlp(seed, width=64)) for seed in (1, 2)]
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(3):
        x = torch.randn(8, 64, generator=torch.Generator().manual_seed(step))[rank::n]
        (models[0](x) - models[1](x)).square().mean().backward()
        for model in models:
            model.step()
            model.zero_grad()
    return [dict(model.state_dict()) for model in models]


def test_two_models_in_one_loss():
    """Their vectors leave through one queue: from two, messages of the one would land in the other."""
    modules = [mlp(seed, width=64) for seed in (1, 2)]
    optimizer = torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)
    for step in range(3):
        x = torch.randn(8, 64, generator=torch.Generator().manual_seed(step))
        (modules[0](x) - modules[1](x)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    def work():
        return [two_models(functools.partial(zero, stage, bucket_cap_mb=1e-2)) for stage in STAGES]

    for stages in launch(work).returns:
        for states in stages:
            for state, module in zip(states, modules, strict=True):
                close(state, dict(module.state_dict()), atol=1e-7)


def more_ranks_than_parameters(stage):
    torch.manual_seed(dist.get_rank())
    model = STAGES[stage](torch.nn.Linear(1, 1), torch.optim.AdamW, **ADAMW)
    for _ in range(3):
        model(torch.tensor([[1.0 + dist.get_rank()]])).sum().backward()
        norm = model.clip_grad_norm_(0.5)
        model.step()
        model.zero_grad()
    return dict(model.state_dict()), norm


def test_more_ranks_than_parameters():
    torch.manual_seed(0)
    module = torch.nn.Linear(1, 1)
    optimizer = torch.optim.AdamW(module.parameters(), **ADAMW)
    for _ in range(3):
        (module(torch.tensor([[1.0], [2.0], [3.0]])).sum() / 3).backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
    for results in launch(lambda: [more_ranks_than_parameters(s) for s in STAGES], world_size=3).returns:
        for state, norm in results:
            close(state, dict(module.state_dict()))
            close(norm, torch.tensor(5**0.5, dtype=norm.dtype))


def clamped(stage, how, mixed=None):
    """By way of the optimizer's groups, where a sharded model has its shards; then the loss of the next pass."""
    module = mlp(layers=2)
    if stage is None:
        model, optimizer = module, torch.optim.SGD(module.parameters(), lr=0.1)
    else:
        model = STAGES[stage](module, torch.optim.SGD, lr=0.1, mixed_precision=mixed)
        optimizer = model.optimizer
    outputs = []
    for _ in range(3):
        model(torch.ones(1, 8)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if how == "data":
                    parameter.data.clamp_(-0.05, 0.05)
                else:
                    with torch.no_grad():
                        parameter.clamp_(-0.05, 0.05)
        outputs.append(model(torch.ones(1, 8)).float().detach())
    return outputs


@pytest.mark.parametrize("how", ["data", "no_grad"])
def test_what_is_written_to_the_optimizer_s_parameters_counts(how):
    def work():
        return {(s, low): clamped(s, how, torch.bfloat16 if low else None) for s in STAGES for low in (False, True)}

    expected = clamped(None, how)
    for found in launch(work, world_size=3).returns:
        for (_, low), outputs in found.items():
            close(outputs, expected, **({"rtol": 0.05, "atol": 0.02} if low else {}))


def states_of_rank_0(stage):
    """As who saves on one rank what the optimizer of torch would have said, and loads it on all."""
    torch.manual_seed(0)
    models = [zero(stage, torch.nn.Linear(8, 8, bias=False), momentum=0.9) for _ in range(2)]
    for step in range(4):
        model = models[step // 2]
        if step == 2:
            kept = [models[0].optimizer.state_dict()]
            dist.broadcast_object_list(kept, 0)
            model.load_state_dict(models[0].state_dict())
            model.optimizer.load_state_dict(kept[0])
        model(torch.full((1, 8), 1.0 + step)).square().sum().backward()
        model.optimizer.step()
        model.zero_grad()
    return dict(models[1].state_dict())


@pytest.mark.parametrize("stage", STAGES)
def test_the_optimizer_s_state_is_that_of_all_shards(stage):
    torch.manual_seed(0)
    module = torch.nn.Linear(8, 8, bias=False)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        optimizer.zero_grad()
        module(torch.full((1, 8), 1.0 + step)).square().sum().backward()
        optimizer.step()
    for state in launch(states_of_rank_0, stage, world_size=2).returns:
        close(state, dict(module.state_dict()))


class CountsByItself(torch.optim.Optimizer):
    """Its step count is an int, as of many optimizers that are not torch's."""

    def __init__(self, parameters, lr=0.1):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state = self.state[parameter]
                    state["step"] = state.get("step", 0) + 1
                    state["mean"] = parameter.grad + 0.9 * state.get("mean", torch.zeros_like(parameter))
                    parameter.sub_(state["mean"], alpha=group["lr"] / state["step"])


def counted(stage, folder):
    models = []
    for _ in range(2):
        if models:
            state, of_optimizer = models[0].state_dict(), models[0].optimizer_state_dict()
        models.append(zero(stage, optimizer=CountsByItself, elementwise=True))
        if len(models) == 2:
            models[1].load_state_dict(state)
            models[1].load_optimizer_state_dict(of_optimizer)
            counts = {key: value["step"] for key, value in of_optimizer["state"].items()}
        for _ in range(2):
            models[-1](torch.ones(2, 8)).square().mean().backward()
            models[-1].step()
            models[-1].zero_grad()
    return counts, dict(models[1].state_dict()), awkward.error_of(lambda: save(models[1], folder))


@pytest.mark.parametrize("stage", STAGES)
def test_states_that_are_no_tensors(stage, tmp_path):
    module = mlp()
    optimizer = CountsByItself(module.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        module(torch.ones(2, 8)).square().mean().backward()
        optimizer.step()
    for counts, state, error in launch(counted, stage, tmp_path).returns:
        assert set(counts.values()) == {2}
        close(state, dict(module.state_dict()))
        assert "the state 'step' of CountsByItself is 4, and files hold tensors" in error


def test_values_changed_in_place_between_steps_count():
    def work():
        models = [STAGES[stage](mlp(), torch.optim.SGD, lr=0.1) for stage in (1, 2)]
        for model in models:
            with torch.no_grad():
                model.module[0].weight.mul_(2)
            model(torch.ones(1, 8)).sum().backward()
            model.step()
        return [dict(model.state_dict()) for model in models]

    module = mlp()
    with torch.no_grad():
        module[0].weight.mul_(2)
    module(torch.ones(1, 8)).sum().backward()
    torch.optim.SGD(module.parameters(), lr=0.1).step()
    for state in launch(work).returns[1]:
        close(state, dict(module.state_dict()))


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 40])
def test_pieces_are_every_element_once(ranks):
    layout = Layout((("a", (3, 4)), ("scalar", ()), ("none", (0, 2)), ("b", (5,))), ranks)
    owned = [
        (name, i) for rank in range(ranks) for name, start, stop in layout.pieces(rank) for i in range(start, stop)
    ]
    assert owned == [("a", i) for i in range(12)] + [("scalar", 0)] + [("b", i) for i in range(5)]
    sizes = [layout.shard(rank).stop - layout.shard(rank).start for rank in range(ranks)]
    assert sum(sizes) == layout.numel == 18
    assert max(sizes) - min(sizes) <= 1


def zero(stage=1, module=None, optimizer=torch.optim.SGD, **options):
    return STAGES[stage](module or mlp(), optimizer, **{"lr": 0.1} | options)


def after(change, stage=1, **options):
    """Train a step after something was changed."""
    model = zero(stage, **options)
    change(model.module)
    model(torch.ones(2, 8)).sum().backward()
    model.step()


def write(module):
    with torch.no_grad():
        module[0].weight.add_(1)


def replace(module):
    module[1].weight = torch.nn.Parameter(torch.ones(8, 8))


def unfreeze(module):
    module[0].requires_grad_(True)


def frozen():
    module = mlp()
    module[0].requires_grad_(False)
    return module


def point_elsewhere(module):
    module[2].bias.data = torch.ones(8)


def swap(module):
    """Both stay in the memory of one vector."""
    first, second = module[0].weight, module[1].weight
    first.data, second.data = second.data, first.data


def transpose(module):
    module[1].weight.data = module[1].weight.data.t()


def in_one_memory(kind):
    module = mlp()
    if kind == "parameters":
        module[1].weight.data = module[0].weight.data
    elif kind == "parts":
        module[1].bias.data = module[0].weight.data[:, 3]
    else:
        module.register_buffer("first", module[0].weight.data)
    return module


def beside_each_other():
    """Columns of one tensor, none of which another one has."""
    module, both = mlp(layers=2), torch.ones(8, 16)
    module[0].weight.data, module[1].weight.data = both[:, ::2], both[:, 1::2]
    zero(1, module)


def unused():
    module = awkward.Unused()
    zero(2, module)(awkward.batch(0)[0]).sum().backward()


def load_what_does_not_fit():
    zero(3).load_state_dict(mlp(layers=3).state_dict())


BAD = [
    (
        lambda: zero(optimizer=torch.optim.LBFGS),
        "LBFGS is not known to treat each element on its own.*elementwise=True",
    ),
    (lambda: zero(optimizer=torch.optim.Adafactor), "Adafactor is not known to treat each element"),
    (lambda: zero(optimizer=torch.optim.Muon), "needs whole matrices, and a rank has a shard; take ringzero.zero.Muon"),
    (lambda: zero(optimizer=torch.optim.SGD(mlp().parameters())), "give a class, such as torch.optim.AdamW"),
    (lambda: zero(mixed_precision=torch.float64), "mixed_precision is torch.float64; take torch.bfloat16"),
    (lambda: zero(bucket_cap_mb=0), "bucket_cap_mb is 0; give a positive number"),
    (lambda: zero(3, units=[torch.nn.ReLU()]), "units has a ReLU that is not in the Sequential"),
    (lambda: zero(groups=[{"params": []}]), "groups must hold each trained parameter once; it does not for 0.weight"),
    (lambda: zero(module=mlp(layers=1 + dist.get_rank())), "the ranks' modules differ: rank 0 has nothing more"),
    (lambda: zero(3, module=torch.nn.ReLU()), "ReLU has no parameter that requires a gradient"),
    (unused, "no gradient in this backward pass for sometimes.*never.weight, never.bias|for never.weight, never.bias"),
    (functools.partial(after, replace), "1.weight changed since the model was sharded"),
    (functools.partial(after, point_elsewhere), "2.bias changed since"),
    (functools.partial(after, swap), "1.weight, 0.weight changed since"),
    (functools.partial(after, transpose), "1.weight changed since"),
    (lambda: zero(1, in_one_memory("parameters")), "0.weight and 1.weight lie in the same memory, and a ZeroStage1"),
    (lambda: zero(3, in_one_memory("parts")), "0.weight and 1.bias lie in the same memory.* make them one parameter"),
    (lambda: zero(2, in_one_memory("buffer")), "lie in the same memory"),
    (beside_each_other, "nothing was raised"),
    (functools.partial(after, unfreeze, module=frozen()), "0.weight, 0.bias unfrozen since.*add_param_group"),
    (functools.partial(after, write, mixed_precision=torch.bfloat16), "0.weight changed since"),
    (load_what_does_not_fit, r"does not fit this model: 3.weight is missing, here \(8, 8\)"),
]


def errors():
    """What each bad input raises."""
    return [awkward.error_of(work) for work, _ in BAD]


def test_bad_input_is_named_on_every_rank():
    for raised in launch(errors).returns:
        for (_, message), text in zip(BAD, raised, strict=True):
            assert re.search(message, text), text


def test_an_optimizer_can_be_vouched_for():
    class Mine(torch.optim.SGD):
        pass

    def work():
        return type(zero(optimizer=Mine, elementwise=True).optimizer).__name__

    assert launch(work).returns == ["Mine"] * 2


def outside_of_forward():
    """What a parameter of stage 3 says while it is not gathered."""
    model = ZeroStage3(mlp(), torch.optim.SGD, lr=0.1)
    weight = model.module[0].weight
    said = [
        awkward.error_of(act)
        for act in (
            lambda: weight.norm(),
            lambda: weight.data.fill_(1.0),
            lambda: copy.deepcopy(model.module),
            lambda: model.module.state_dict(),
            lambda: torch._foreach_norm(list(model.module.parameters())),
            lambda: torch.cat([weight, weight]),
            lambda: weight.T,
            lambda: torch.nn.functional.linear(torch.ones(8), weight=weight),
        )
    ]
    with torch.no_grad():
        before = model.module[0](torch.ones(8))  # a unit on its own gathers itself
    return said, [weight.numel(), *weight.shape, weight.ndim, weight.nbytes], repr(weight), before.shape[0]


def test_what_is_not_gathered_cannot_be_used_and_has_its_size():
    for said, sizes, shown, width in launch(outside_of_forward).returns:
        copied = said[2]
        assert "a module in ZeroStage3 cannot be copied or pickled" in copied
        assert all("0.weight is used where it is not gathered" in each for each in said if each is not copied), said
        assert sizes == [64, 8, 8, 2, 256]
        assert shown == "0.weight: (8, 8), not gathered"
        assert width == 8


def wrapped_twice(stage):
    """The second wrapping begins with what the first one trained, in the precision it was trained in."""
    module = mlp(dist.get_rank())
    first = STAGES[stage](module, torch.optim.SGD, lr=0.1, mixed_precision=torch.bfloat16)
    whole_step_of(first)
    trained = first.state_dict()
    second = STAGES[stage](module, torch.optim.AdamW, lr=0.1)
    same = all(torch.equal(value, trained[name]) for name, value in second.state_dict().items())
    return same, awkward.error_of(lambda: first(torch.ones(2, 8))), awkward.error_of(first.step)


def whole_step_of(model):
    model(torch.ones(2, 8) * (1 + dist.get_rank())).square().mean().backward()
    model.step()
    model.zero_grad()


@pytest.mark.parametrize("stage", STAGES)
def test_the_second_wrapper_takes_over_and_the_first_one_says_so(stage):
    for same, forward, step in launch(wrapped_twice, stage).returns:
        assert same
        assert "was wrapped again; use the new wrapper" in forward
        assert forward == step


def steps_with_closure():
    model = sharded(2, "OddSizes", torch.optim.SGD, {"lr": 0.1})
    tokens, targets = awkward.batch(0)

    def closure():
        loss = awkward.loss_of(model, tokens, targets)
        loss.backward()
        return loss

    losses = []
    for _ in range(3):
        losses.append(model.step(closure).item())
        model.zero_grad()
    return losses


def test_a_closure_is_called_and_its_loss_returned():
    for losses in launch(steps_with_closure).returns:
        assert losses == sorted(losses, reverse=True)
        assert losses[0] > losses[-1]


class RecomputedInside(torch.nn.Module):
    """A unit that recomputes what it holds, so that nothing it saved tells that its backward pass begins."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return checkpoint(self.linear, x, use_reentrant=False)


def recomputed_inside(stage):
    torch.manual_seed(dist.get_rank())
    module = torch.nn.Sequential(RecomputedInside(), RecomputedInside())
    model = STAGES[stage](module, torch.optim.SGD, lr=0.1, units=list(module))
    for _ in range(2):
        whole_step_of(model)
    return dict(model.state_dict())


def test_a_unit_may_recompute_what_it_holds():
    """It is gathered when a gradient reaches its output."""
    for two, three in launch(lambda: [recomputed_inside(stage) for stage in (2, 3)]).returns:
        close(three, two)


# ---- hooks, states and modules of the program's own


def averages_of_weights(make):
    """Averages that a hook keeps of the weights after each step, and how often it was called."""
    module = mlp()
    model, kept, times = make(module), [p.detach().clone() for p in module.parameters()], []

    def average(*_):
        times.append(1)
        for mine, p in zip(kept, module.parameters(), strict=True):
            mine.lerp_(p.detach(), 0.1)

    optimizer = model.optimizer
    optimizer.register_step_post_hook(average)
    for step in range(3):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step))
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return kept, len(times)


class InOneProcess:
    def __init__(self, module):
        self.module, self.optimizer = module, torch.optim.AdamW(module.parameters(), lr=0.1)

    def __call__(self, x):
        return self.module(x)


@pytest.mark.parametrize("home", [None, Host])
@pytest.mark.parametrize("stage", [1, 2])
def test_a_hook_after_the_step_finds_all_weights_stepped_and_is_called_once(stage, home):
    def work():
        return averages_of_weights(
            lambda module: STAGES[stage](module, torch.optim.AdamW, lr=0.1, home=home and home(), bucket_cap_mb=1e-4)
        )

    right, times = averages_of_weights(InOneProcess)
    for kept, called in launch(work).returns:
        torch.testing.assert_close(kept, right)
        assert called == times


def test_states_of_a_parameter_are_not_looked_for_among_those_of_shards():
    def work():
        model = STAGES[2](mlp(), torch.optim.AdamW, lr=0.1)
        with pytest.raises(KeyError) as error:
            model.optimizer.state[model.module[0].weight]
        return str(error.value)

    for said in launch(work).returns:
        assert "the optimizer of a ZeroStage2 has no states of 0.weight" in said
        assert "optimizer_state_dict()" in said


class Hamiltonian(torch.nn.Module):
    """Its output is a gradient with respect to its input, times a parameter of its own."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1, bias=False))
        self.scale = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        x = x.detach().requires_grad_()
        return self.scale * torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_gradient_inside_the_forward_pass(stage):
    def steps(make):
        torch.manual_seed(0)
        module = Hamiltonian().double()
        model = make(module)
        for step in range(3):
            x = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
            model(x).square().mean().backward()
            model.optimizer.step()
            model.optimizer.zero_grad()
        return model

    def work():
        return steps(lambda module: STAGES[stage](module, torch.optim.AdamW, lr=0.1)).state_dict()

    right = dict(steps(InOneProcess).module.state_dict())
    for found in launch(work).returns:
        torch.testing.assert_close(found, right)


class SavesTransposed(torch.nn.Linear):
    def _load_from_state_dict(self, state, prefix, *args):
        super()._load_from_state_dict({**state, prefix + "weight": state[prefix + "weight"].T}, prefix, *args)


@pytest.mark.parametrize("stage", [1, 3])
def test_a_state_that_the_module_changes_on_its_way_is_refused_and_the_way_out_is_right(stage):
    def work():
        torch.manual_seed(0)
        module = torch.nn.Sequential(SavesTransposed(4, 4))
        before = module[0].weight.detach().clone()
        module[0].register_state_dict_post_hook(
            lambda _, state, prefix, *__: state.update({prefix + "weight": state[prefix + "weight"].T.clone()})
        )
        model = STAGES[stage](module, torch.optim.SGD, lr=0.1)
        said = [awkward.error_of(model.state_dict), awkward.error_of(lambda: model.load_state_dict({}))]
        with model.whole_parameters():
            saved = {key: value.clone() for key, value in model.module.state_dict().items()}
        assert torch.equal(saved["0.weight"], before.T)
        with model.whole_parameters(write=True):
            model.module.load_state_dict(saved)
        with model.whole_parameters():
            assert torch.equal(module[0].weight.detach(), before)
        return said

    for saves, loads in launch(work).returns:
        assert "0, a SavesTransposed, saves its state by <lambda>" in saves
        assert "0, a SavesTransposed, loads its state by _load_from_state_dict" in loads
