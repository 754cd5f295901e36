"""Data parallel training against one process on the whole batch, and against torch's own."""

import functools
import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, launch
from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel
from ringzero.data_parallel.buckets import assign
from tests import awkward

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
}
KINDS = {
    "naive": NaiveDataParallel,
    "flat": FlatDataParallel,
    "ddp": functools.partial(DistributedDataParallel, bucket_cap_mb=1e-4),
    "ddp, ring": functools.partial(DistributedDataParallel, bucket_cap_mb=1e-4, algorithm="ring"),
    "ddp, overlapped steps": functools.partial(DistributedDataParallel, bucket_cap_mb=1e-4),
}
STEPS = 5


def model_of(name, seed):
    torch.manual_seed(seed)
    return awkward.MODELS[name]()


def alone(name, optimizer, steps=STEPS):
    """One process, the whole batch: the trained state."""
    model = model_of(name, 0)
    optimizer = OPTIMIZERS[optimizer](p for p in model.parameters() if p.requires_grad)
    for step in range(steps):
        awkward.loss_of(model, *awkward.batch(step)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.state_dict()


def every_combination():
    """On a rank: train every model with every kind and optimizer; the states and the first step's gradients."""
    rank, n = dist.get_rank(), dist.get_world_size()
    results = {}
    for name in awkward.MODELS:
        for kind, wrap in KINDS.items():
            for optimizer_name, make in OPTIMIZERS.items():
                if kind in ("naive", "flat") and (name == "Unused" or optimizer_name != "momentum"):
                    continue  # they have no answer to a gradient that only some ranks have
                module = model_of(name, rank)  # another on every rank: a missing broadcast shows
                options = {"find_unused": True} if name == "Unused" else {}
                optimizer = make(p for p in module.parameters() if p.requires_grad)
                if kind == "ddp, overlapped steps":
                    options["step"] = optimizer
                model, gradients = wrap(module, **options), None
                for step in range(STEPS):
                    tokens, targets = awkward.batch(step)
                    awkward.loss_of(model, tokens[rank::n], targets[rank::n]).backward()
                    if step == 0:
                        gradients = {key: p.grad.clone() for key, p in module.named_parameters() if p.grad is not None}
                    optimizer.step()
                    optimizer.zero_grad()
                results[name, kind, optimizer_name] = (dict(model.state_dict()), gradients)
    return results


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_n_ranks_train_as_one_process_on_the_whole_batch(world_size):
    """Within rounding: sums over ranks are taken in another order than sums over a batch. Across ranks bit for bit."""
    ranks = launch(every_combination, world_size=world_size, timeout=120).returns
    for combination, (state, gradients) in ranks[0].items():
        name, _, optimizer = combination
        torch.testing.assert_close(state, alone(name, optimizer), rtol=1e-4, atol=1e-5, msg=str(combination))
        for other in ranks[1:]:
            theirs, their_gradients = other[combination]
            assert all(torch.equal(theirs[key], state[key]) for key in state), combination
            assert their_gradients.keys() == gradients.keys(), combination
            assert all(torch.equal(their_gradients[key], gradients[key]) for key in gradients), combination


def mlp(seed=0, width=9, layers=4):
    torch.manual_seed(seed)
    return torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))


def test_buckets_are_torchs_own():
    """The same assignment, whatever the sizes and types."""
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.empty(n)) for n in torch.randint(1, 500_000, (40,)).tolist()]
    parameters += [torch.nn.Parameter(torch.empty(300_000, dtype=torch.float64)) for _ in range(4)]
    parameters = [parameters[i] for i in torch.randperm(len(parameters)).tolist()]
    number = {parameter: i for i, parameter in enumerate(parameters)}
    for cap in (1e-6, 0.5, 2, 25, 1000):
        ours = [[number[parameter] for parameter in bucket] for bucket in assign(parameters, cap)]
        theirs, _ = dist._compute_bucket_assignment_by_size(
            parameters, [int(min(1, cap) * 2**20) or 1, int(cap * 2**20) or 1], [False] * len(parameters)
        )
        assert ours == theirs, cap


def trained_with_accumulation(kind):
    """Four backward passes a step, the first three without a word to others; then clipped; the state after 3 steps."""
    rank, n = dist.get_rank(), dist.get_world_size()
    module = mlp(rank)
    model, optimizer = KINDS[kind](module), torch.optim.AdamW(module.parameters(), lr=0.01)
    for step in range(3):
        parts = torch.randn(24, 9, generator=torch.Generator().manual_seed(step))[rank::n].chunk(4)
        with model.no_sync():
            for part in parts[:-1]:
                (model(part).square().mean() / 4).backward()
        (model(parts[-1]).square().mean() / 4).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
    return dict(model.state_dict())


@pytest.mark.parametrize("kind", ["naive", "flat", "ddp", "ddp, ring"])
def test_accumulation_and_clipping_equal_one_process(kind):
    module = mlp(0)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    for step in range(3):
        whole = torch.randn(24, 9, generator=torch.Generator().manual_seed(step))
        module(whole).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
    for state in launch(trained_with_accumulation, kind, world_size=2, timeout=60).returns:
        torch.testing.assert_close(state, module.state_dict(), rtol=1e-4, atol=1e-5)


def order_of_events(cap):
    """The all-reduces of one backward pass, and where in it they started and were waited for."""
    from ringzero.launch.trace import recorded

    model = DistributedDataParallel(mlp(layers=6), bucket_cap_mb=cap)
    ready, before = [], len(recorded())
    for parameter in model.trained.values():
        parameter.register_post_accumulate_grad_hook(lambda p: ready.append(len(recorded()) - before))
    model(torch.ones(2, 9)).sum().backward()
    reduced = [op for op in recorded()[before:] if op["kind"] == "all_reduce"]
    return ready, [op["bytes"] for op in reduced], [op["wait"] - reduced[-1]["start"] for op in reduced]


def test_a_bucket_leaves_while_gradients_are_still_to_come():
    """From the order of events, not from times: after each layer its bucket is on its way; all waits come last."""
    layer = (9 * 9 + 9) * 4  # bytes
    for ready, sizes, waits in launch(order_of_events, 1e-4, world_size=2).returns:
        assert sizes == [layer] * 6
        assert ready == [number // 2 for number in range(1, 13)]  # two gradients a layer; then its all-reduce
        assert min(waits) >= 0
    for ready, sizes, _ in launch(order_of_events, 25, world_size=2).returns:
        assert (sizes, set(ready[:-1])) == ([6 * layer], {0})


def uneven(batches_of_rank):
    rank = dist.get_rank()
    module = mlp(rank)
    model, optimizer = DistributedDataParallel(module, bucket_cap_mb=1e-4), torch.optim.SGD(module.parameters(), lr=0.1)
    with model.join():
        for batch in range(batches_of_rank[rank]):
            model(torch.full((2, 9), float(rank + batch))).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return dict(model.state_dict())


def uneven_in_torch(batches_of_rank):
    from torch.distributed.algorithms.join import Join

    rank = dist.get_rank()
    dist.barrier()
    group = dist.new_group(backend="gloo")
    model = torch.nn.parallel.DistributedDataParallel(mlp(rank), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for batch in range(batches_of_rank[rank]):
            model(torch.full((2, 9), float(rank + batch))).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return dict(model.module.state_dict())


@pytest.mark.parametrize("batches", [(1, 3, 2), (0, 2, 2), (2, 2, 2)])
def test_uneven_numbers_of_batches_equal_torchs_join(batches):
    ours = launch(uneven, batches, world_size=3, timeout=60).returns
    theirs = launch(uneven_in_torch, batches, world_size=3, timeout=60).returns
    for state in ours:
        torch.testing.assert_close(state, theirs[0])


def test_an_exception_inside_no_sync_leaves_syncing_on():
    def work():
        model = DistributedDataParallel(mlp(dist.get_rank()))
        try:
            with model.no_sync():
                raise KeyError
        except KeyError:
            pass
        model(torch.full((1, 9), float(dist.get_rank()))).sum().backward()
        return [p.grad for p in model.parameters()]

    first, second = launch(work, world_size=2).returns
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_two_backward_passes_before_a_step_add_up():
    def work():
        model = DistributedDataParallel(mlp())
        for factor in (1.0, 2.0):
            model(torch.full((1, 9), factor * (dist.get_rank() + 1))).square().sum().backward()
        return [p.grad for p in model.parameters()]

    module = mlp()
    for factor in (1.0, 2.0):
        for rank in range(2):
            (module(torch.full((1, 9), factor * (rank + 1))).square().sum() / 2).backward()
    for gradients in launch(work, world_size=2).returns:
        torch.testing.assert_close(gradients, [p.grad for p in module.parameters()])


def with_unused():
    model = DistributedDataParallel(awkward.Unused())
    tokens, targets = awkward.batch(0)
    awkward.loss_of(model, tokens, targets).backward()


def different_modules():
    DistributedDataParallel(mlp(width=9 if dist.get_rank() == 0 else 8))


def one_layer_more():
    DistributedDataParallel(mlp(layers=2 + dist.get_rank()))


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (
            with_unused,
            "no gradient in this backward pass for never.weight, never.bias; if that is meant, use find_unus",
        ),
        (
            different_modules,
            r"the ranks' modules differ: rank 0 has 0.weight: \(9, 9\) .*, rank 1 has 0.weight: \(8, 8",
        ),
        (one_layer_more, "the ranks' modules differ: rank 0 has nothing more, rank 1 has 2.weight"),
        (lambda: DistributedDataParallel(torch.nn.ReLU()), "ReLU has no parameter that requires a gradient"),
        (lambda: DistributedDataParallel(mlp(), unused=("9.bias",)), "unused has .'9.bias'.; the module's parameters"),
        (lambda: DistributedDataParallel(mlp(), bucket_cap_mb=0), "bucket_cap_mb is 0; give a positive number of MiB"),
    ],
)
def test_bad_input_is_named_on_every_rank(work, message):
    with pytest.raises(RankError, match=message):
        launch(work, world_size=2, timeout=20)


def policies_of_event_threads(local_world_size):
    """Before and after a model is wrapped."""
    os.environ["LOCAL_WORLD_SIZE"] = str(local_world_size)

    def policies():
        tasks = [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text() == "gloo_tcp_loop\n"]
        return sorted({os.sched_getscheduler(int(task.name)) for task in tasks})

    before = policies()
    DistributedDataParallel(mlp())
    return [before, policies()]


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="only Linux has batch threads")
@pytest.mark.parametrize(("local_world_size", "after"), [(2, "SCHED_BATCH"), (1, "SCHED_OTHER")])
def test_event_threads_are_calmed_on_one_machine_only(local_world_size, after):
    expected = [[os.SCHED_OTHER], [getattr(os, after)]]
    assert launch(policies_of_event_threads, local_world_size, world_size=2).returns == [expected] * 2
