"""Data parallel training against one process on the whole batch, and against torch's own."""

import functools
import itertools
import os
import re
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.data_parallel import DistributedDataParallel, FlatDataParallel, NaiveDataParallel
from ringzero.data_parallel.buckets import assign
from ringzero.data_parallel.executor import queue_of
from ringzero.data_parallel.in_order import InOrder
from ringzero.data_parallel.plain import OverlappedDataParallel
from ringzero.data_parallel.vector import Vector
from ringzero.record import recorded
from tests import awkward
from tests.awkward import mlp, model_of

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
    "plain": functools.partial(OverlappedDataParallel, bucket_cap_mb=1e-4),
}
STEPS = 5


@functools.cache
def alone(name, optimizer, steps=STEPS):
    """One process, the whole batch: the trained state."""
    model = model_of(name, 0)
    optimizer = OPTIMIZERS[optimizer](p for p in model.parameters() if p.requires_grad)
    for step in range(steps):
        awkward.loss_of(model, *awkward.batch(step)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.state_dict()


def state_of(model):
    """Of the module: the library's wrappers have no names of their own."""
    return (model.module if isinstance(model, OverlappedDataParallel) else model).state_dict()


def every_combination():
    """On a rank: train every model with every kind and optimizer; the states and the first step's gradients."""
    rank, n = dist.get_rank(), dist.get_world_size()
    results = {}
    for name in awkward.MODELS:
        for kind, wrap in KINDS.items():
            for optimizer_name, make in OPTIMIZERS.items():
                if kind in ("naive", "flat", "plain") and (name == "Unused" or optimizer_name != "momentum"):
                    continue  # they have no answer to a gradient that only some ranks have
                module = model_of(name, rank)  # another on every rank: a missing broadcast shows
                options = {"find_unused": True} if name == "Unused" else {}
                optimizer = make(p for p in module.parameters() if p.requires_grad)
                if kind == "ddp, overlapped steps":
                    options["optimizer"] = optimizer
                model, gradients = wrap(module, **options), None
                for step in range(STEPS):
                    tokens, targets = awkward.batch(step)
                    awkward.loss_of(model, tokens[rank::n], targets[rank::n]).backward()
                    if step == 0:
                        gradients = {key: p.grad.clone() for key, p in module.named_parameters() if p.grad is not None}
                    optimizer.step()
                    optimizer.zero_grad()
                results[name, kind, optimizer_name] = (dict(state_of(model)), gradients)
    return results


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_n_ranks_train_as_one_process_on_the_whole_batch(world_size):
    """Within rounding: sums over ranks are taken in another order than sums over a batch. Across ranks bit for bit."""
    ranks = launch(every_combination, world_size=world_size).returns
    for combination, (state, gradients) in ranks[0].items():
        name, _, optimizer = combination
        torch.testing.assert_close(state, alone(name, optimizer), rtol=1e-4, atol=1e-5, msg=str(combination))
        for other in ranks[1:]:
            theirs, their_gradients = other[combination]
            assert all(torch.equal(theirs[key], state[key]) for key in state), combination
            assert their_gradients.keys() == gradients.keys(), combination
            assert all(torch.equal(their_gradients[key], gradients[key]) for key in gradients), combination


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


SYNCING = [kind for kind in KINDS if kind != "ddp, overlapped steps"]  # leaves no gradients to add to or to clip


def trained_with_accumulation():
    """Four backward passes a step, the first three without a word to others; then clipped; the states after 3 steps."""
    rank, n = dist.get_rank(), dist.get_world_size()
    states = {}
    for kind in SYNCING:
        module = mlp(rank)
        model, optimizer = KINDS[kind](module), torch.optim.AdamW(module.parameters(), lr=0.01)
        for step in range(3):
            parts = torch.randn(24, 8, generator=torch.Generator().manual_seed(step))[rank::n].chunk(4)
            with model.no_sync():
                for part in parts[:-1]:
                    (model(part).square().mean() / 4).backward()
            (model(parts[-1]).square().mean() / 4).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            optimizer.zero_grad()
        states[kind] = dict(state_of(model))
    return states


def test_accumulation_and_clipping_equal_one_process():
    module = mlp(0)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    for step in range(3):
        whole = torch.randn(24, 8, generator=torch.Generator().manual_seed(step))
        module(whole).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
    for states in launch(trained_with_accumulation, world_size=2).returns:
        for kind, state in states.items():
            torch.testing.assert_close(state, module.state_dict(), rtol=1e-4, atol=1e-5, msg=kind)


def order_of_events(wrap, cap):
    """The all-reduces of one backward pass, and where in it they started and were waited for."""
    model = wrap(mlp(layers=6), bucket_cap_mb=cap)
    ready, before = [], len(recorded())
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: ready.append(len(recorded()) - before))
    model(torch.ones(2, 8)).sum().backward()
    reduced = [op for op in recorded()[before:] if op.kind == "all_reduce"]
    return ready, [op.bytes for op in reduced], [op.wait - reduced[-1].start for op in reduced]


def test_a_bucket_leaves_while_gradients_are_still_to_come():
    """From the order of events, not from times: after each layer its bucket is on its way; all waits come last."""
    layer = (8 * 8 + 8) * 4  # bytes
    for wrap, seen in ((DistributedDataParallel, 1), (OverlappedDataParallel, 0)):
        for ready, sizes, waits in launch(order_of_events, wrap, 1e-4, world_size=2).returns:
            assert sizes == [layer] * 6
            # Two gradients a layer, then its all-reduce; the library's once the program's hooks have seen the second.
            assert ready == [(number - seen) // 2 for number in range(1, 13)]
            assert min(waits) >= 0
        for ready, sizes, _ in launch(order_of_events, wrap, 25, world_size=2).returns:
            assert (sizes, set(ready[:-1])) == ([6 * layer], {0})


def uneven(batches_of_rank):
    rank = dist.get_rank()
    module = mlp(rank)
    model, optimizer = DistributedDataParallel(module, bucket_cap_mb=1e-4), torch.optim.SGD(module.parameters(), lr=0.1)
    with model.join():
        for batch in range(batches_of_rank[rank]):
            model(torch.full((2, 8), float(rank + batch))).square().mean().backward()
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
            model(torch.full((2, 8), float(rank + batch))).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return dict(model.module.state_dict())


@pytest.mark.parametrize("batches", [(1, 3, 2), (0, 2, 2), (2, 2, 2)])
def test_uneven_numbers_of_batches_equal_torchs_join(batches):
    ours = launch(uneven, batches, world_size=3).returns
    theirs = launch(uneven_in_torch, batches, world_size=3).returns
    for state in ours:
        torch.testing.assert_close(state, theirs[0])


def test_an_exception_inside_no_sync_leaves_syncing_on():
    def work():
        models = [KINDS[kind](mlp(dist.get_rank())) for kind in SYNCING]
        for model in models:
            with pytest.raises(KeyError), model.no_sync():
                raise KeyError
            model(torch.full((1, 8), float(dist.get_rank()))).sum().backward()
        return [[p.grad for p in model.parameters()] for model in models]

    for first, second in zip(*launch(work, world_size=2).returns, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_two_backward_passes_before_a_step_add_up():
    def work():
        models = [KINDS[kind](mlp()) for kind in SYNCING]
        for model in models:
            for factor in (1.0, 2.0):
                model(torch.full((1, 8), factor * (dist.get_rank() + 1))).square().sum().backward()
        return [[p.grad for p in model.parameters()] for model in models]

    module = mlp()
    for factor in (1.0, 2.0):
        for rank in range(2):
            (module(torch.full((1, 8), factor * (rank + 1))).square().sum() / 2).backward()
    for models in launch(work, world_size=2).returns:
        for kind, gradients in zip(SYNCING, models, strict=True):
            torch.testing.assert_close(gradients, [p.grad for p in module.parameters()], msg=kind)


def with_unused(wrap):
    awkward.loss_of(wrap(awkward.Unused()), *awkward.batch(0)).backward()


def of_every_kind(make, message):
    """A case for each class of the library that wraps a module."""
    return [(functools.partial(make, wrap), message) for kind, wrap in KINDS.items() if kind != "plain"]


BAD = [
    (
        functools.partial(with_unused, DistributedDataParallel),
        r"no gradient in this backward pass for never.weight, never.bias; if that is meant, use find_unused=True, or "
        r"unused=\['never.weight', 'never.bias'\]",
    ),
    *of_every_kind(
        lambda wrap: wrap(mlp(width=9 if dist.get_rank() == 0 else 8)),
        r"the ranks' modules differ: rank 0 has 0.weight: \(9, 9\) .*, rank 1 has 0.weight: \(8, 8",
    ),
    *of_every_kind(
        lambda wrap: wrap(mlp(layers=2 + dist.get_rank())),
        "the ranks' modules differ: rank 0 has nothing more, rank 1 has 2.weight",
    ),
    *of_every_kind(lambda wrap: wrap(torch.nn.ReLU()), "ReLU has no parameter that requires a gradient"),
    *of_every_kind(lambda wrap: wrap(mlp(), unused=("9.bias",)), "unused has .'9.bias'.; the module's parameters are"),
    *of_every_kind(
        lambda wrap: wrap(torch.nn.LazyLinear(3)), "weight has no shape before the first forward pass; make one with a"
    ),
    *of_every_kind(
        lambda wrap: wrap(torch.nn.Linear(3, 3, device="meta")),
        r"weight is on the meta device .* call to_empty\(device=",
    ),
    (lambda: DistributedDataParallel(mlp(), bucket_cap_mb=0), "bucket_cap_mb is 0; give a positive number of MiB"),
]


def errors():
    """What each bad input raises."""
    return [awkward.error_of(work) for work, _ in BAD]


def test_bad_input_is_named_on_every_rank():
    for raised in launch(errors, world_size=2).returns:
        for (_, message), text in zip(BAD, raised, strict=True):
            assert re.search(message, text), text


class Filling:
    """``InOrder`` over vectors of one parameter each, without ranks: what started, and what was waited for."""

    def __init__(self, vectors, **options):
        self.parameters = [torch.nn.Parameter(torch.ones(1)) for _ in range(vectors)]
        trained = {str(i): parameter for i, parameter in enumerate(self.parameters)}
        self.events = []
        self.in_order = InOrder(
            trained, [Vector({name: p}, 1) for name, p in trained.items()], self.start, lambda came: [], **options
        )

    def start(self, vector):
        (name,) = vector.parameters
        self.events.append(f"start {name}")
        return lambda: self.events.append(f"wait {name}")

    def fill(self, *numbers):
        for number in numbers:
            self.in_order.ready(self.parameters[number])


def test_full_vectors_leave_in_one_order_whatever_order_they_fill_in():
    for order in itertools.permutations(range(4)):
        filling = Filling(4)
        filling.in_order.begin()
        for count, number in enumerate(order, 1):
            filling.fill(number)
            full = [i for i in range(4) if set(range(i + 1)) <= set(order[:count])]
            assert filling.events == [f"start {i}" for i in full], order
    filling = Filling(3, in_flight=1)
    filling.in_order.begin()
    filling.fill(1, 0, 2)
    assert filling.events == ["start 0", "start 1", "wait 0", "start 2", "wait 1"]
    filling = Filling(3)
    filling.in_order.begin(hold=True)
    filling.fill(2, 1, 0)
    assert filling.events == []
    assert list(filling.in_order.arrivals()) == []


def test_what_is_missing_is_named_or_counts_as_zeros():
    filling = Filling(3)
    filling.in_order.begin()
    filling.fill(0)
    with pytest.raises(RuntimeError, match="no gradient in this backward pass for 1, 2; if that is meant, use find_un"):
        filling.in_order.complete()
    filling = Filling(3, find_unused=True)
    filling.parameters[0].grad = torch.full((1,), 5.0)
    filling.in_order.begin()
    filling.fill(0)
    filling.in_order.complete()
    assert [vector.gradient.item() for vector in filling.in_order.arrivals()] == [5, 0, 0]


def test_jobs_of_a_group_run_in_the_order_of_submission_and_those_of_another_beside_them():
    class Group:
        groups_messages = False

    one, another = (queue_of(Group(), torch.device("cpu")) for _ in range(2))
    go_on, done = threading.Event(), []

    def job(number):
        done.append((number, go_on.is_set()))

    jobs = [one.submit(go_on.wait), *(one.submit(functools.partial(job, number)) for number in range(5))]
    another.submit(go_on.set).result()  # which would wait forever in the queue of the first
    for each in jobs:
        each.result()
    assert done == [(number, True) for number in range(5)]


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
