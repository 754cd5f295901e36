"""Compressed gradients: results, errors that are kept, bytes; as our DDP's compressor, and as hooks of both DDPs."""

import itertools
import json
import math
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

from ringzero import launch
from ringzero.costs import compression as costs
from ringzero.data_parallel import DistributedDataParallel
from ringzero.record import recorded
from ringzero.record.operation import bytes_sent
from ringzero.unsynced.compression import QSGD, OneBitAdam, PowerSGD, RandomK, SignMajority, TopK, compressed, qsgd
from ringzero.unsynced.compression.random_k import one_in_each_cell
from tests import awkward
from tests.awkward import error_of, mlp

METHODS = {
    "top-k": lambda **options: TopK(0.07, **options),
    "top-k, no errors kept": lambda **options: TopK(0.07, error_feedback=False, **options),
    "random-k": lambda **options: RandomK(0.07, **options),
    "random-k, no errors kept": lambda **options: RandomK(0.07, error_feedback=False, **options),
    "QSGD": lambda **options: QSGD(4, block=64, **options),
    "signs": lambda **options: SignMajority(**options),
    "weighted signs": lambda **options: SignMajority(error_feedback=True, **options),
    "PowerSGD": lambda **options: PowerSGD(2, **options),
    "PowerSGD, cold": lambda **options: PowerSGD(2, error_feedback=False, warm_start=False, **options),
}
KEEPING = ("top-k", "random-k", "weighted signs", "PowerSGD")


# ---- numbers on the wire


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_qsgd_is_unbiased_and_off_by_less_than_a_level(bits):
    """The mean of many draws is within 5 of its standard deviations, which are at most half a level a draw."""
    random, draws = torch.Generator().manual_seed(1), 2000
    values = torch.randn(53, generator=random) * torch.logspace(-3, 3, 53)
    total = torch.zeros(53)
    norms = torch.stack([part.abs().max() for part in values.split(16)]).repeat_interleave(16)[:53]
    level = norms / (2 ** (bits - 1) - 1)
    for _ in range(draws):
        wire = qsgd.encode(values, bits, 16, random)
        assert wire.numel() == costs.qsgd_message_bytes(53, bits, 16)
        got = qsgd.decode(wire, 53, bits, 16)
        assert ((got - values).abs() < level * 1.0001).all()
        total += got
    assert ((total / draws - values).abs() <= 5 * level / 2 / math.sqrt(draws)).all()
    assert qsgd.decode(qsgd.encode(torch.zeros(5), bits, 16, random), 5, bits, 16).tolist() == [0] * 5


def test_random_indices_all_differ_and_are_equally_likely():
    random, draws, counts = torch.Generator().manual_seed(0), 4000, torch.zeros(11)
    for _ in range(draws):
        indices, widths = one_in_each_cell(11, 4, random)
        assert sorted(set(indices.tolist())) == indices.tolist()
        counts[indices] += widths
    assert ((counts / draws - 1).abs() < 0.1).all()  # 5 standard deviations of a cell of 3


# ---- one step: results, errors and bytes


class Given(nn.Module):
    """A module whose gradients are ``given`` tensors. They come in another order than parameters are registered in."""

    def __init__(self, given):
        super().__init__()
        self.own = nn.ParameterList(torch.zeros(each.shape, dtype=each.dtype) for each in given)

    def forward(self, given):
        products = [(p * g).sum() for p, g in zip([*self.own][::-1], given[::-1], strict=True)]
        return sum(products)


SHAPES = {1: [(1,)], 37: [(5, 7), (2,)], 1001: [(1001,)], 1003: [(30, 11), (7, 3, 3, 10), (), (42,)]}


def gradients(shapes, rank, step=0, seed=0):
    random = torch.Generator().manual_seed(1000 * seed + 10 * step + rank)
    return [torch.randn(shape, generator=random) for shape in shapes]


def end_to_end(tensors):
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def one_step_of_each():
    """By method and size: the result, what is kept, and this rank's bytes."""
    results = {}
    for name, make in METHODS.items():
        for numel, shapes in SHAPES.items():
            given, compressor = gradients(shapes, dist.get_rank()), make()
            module = Given(given)
            model, before = DistributedDataParallel(module, compressor=compressor), len(recorded())
            (bucket,) = model.buckets()
            order = [int(parameter.split(".")[1]) for parameter in bucket.parameters]  # in which they lie there
            model(given).backward()
            sent = bytes_sent(recorded()[before:])
            errors = compressor.state_dict(model)["errors"]
            kept = end_to_end([errors[f"own.{place}"] for place in order]) if errors else None
            results[name, numel] = end_to_end([module.own[place].grad for place in order]), kept, sent, order
    return results


def expected(name, numel, vectors, shapes):
    """``(result, [each rank's errors])`` of a first step, written down without a thought for speed; None for chance."""
    n, k = len(vectors), costs.kept(numel, 0.07)
    if name.startswith("top-k"):
        sent = []
        for vector in vectors:
            largest = sorted(range(numel), key=lambda place, vector=vector: -abs(vector[place].item()))[:k]
            sent.append(torch.zeros(numel).index_copy(0, torch.tensor(largest), vector[largest]))
        return sum(sent) / n, [vector - each for vector, each in zip(vectors, sent, strict=True)]
    if name == "signs":
        votes = sum(torch.where(vector >= 0, 1, -1) for vector in vectors)
        return torch.where(votes >= 0, 1.0, -1.0), None
    if name == "weighted signs":
        width = 8 * math.ceil(numel / (8 * n))
        result, errors = torch.empty(numel), [vector.clone() for vector in vectors]
        for owner, start in enumerate(range(0, numel, width)):
            chunk, mean = slice(start, start + width), 0
            for error in errors:
                said = error[chunk].abs().mean() * torch.where(error[chunk] >= 0, 1, -1)
                mean, error[chunk] = mean + said / n, error[chunk] - said
            result[chunk] = mean.abs().mean() * torch.where(mean >= 0, 1, -1)
            errors[owner][chunk] += n * (mean - result[chunk])
        return result, errors
    return None


def bytes_of(name, numel, shapes, n):
    return {
        "top-k": lambda: costs.top_k_bytes(numel, n, 0.07),
        "random-k": lambda: costs.random_k_bytes(numel, n, 0.07),
        "QSGD": lambda: costs.qsgd_bytes(numel, n, 4, 64),
        "signs": lambda: costs.sign_bytes(numel, n),
        "weighted signs": lambda: costs.sign_bytes(numel, n),
        "PowerSGD": lambda: costs.powersgd_bytes(shapes, n, 2),
    }[name.split(", ")[0]]()


@pytest.mark.parametrize("n", [5, 4, 3, 2, 1])
def test_one_step_results_errors_and_bytes(n):
    """Bytes as the formula has them. Results of all ranks are equal bit for bit; within rounding they are the oracle's.

    What is kept, averaged over the ranks, is what the result lacks of the mean.
    """
    ranks = launch(one_step_of_each, world_size=n).returns
    for (name, numel), (result, _, _, order) in ranks[0].items():
        each = [rank[name, numel] for rank in ranks]
        vectors = [end_to_end([gradients(SHAPES[numel], rank)[place] for place in order]) for rank in range(n)]
        assert [sent for _, _, sent, _ in each] == bytes_of(name, numel, SHAPES[numel], n), (name, numel)
        assert all(torch.equal(result, other) for other, _, _, _ in each), (name, numel)
        mean = sum(vectors) / n
        if name in KEEPING:
            torch.testing.assert_close(result + sum(kept for _, kept, _, _ in each) / n, mean, msg=f"{name} {numel}")
        if (oracle := expected(name, numel, vectors, SHAPES[numel])) is not None:
            torch.testing.assert_close(result, oracle[0], msg=f"{name} {numel}")
            if each[0][1] is not None:
                torch.testing.assert_close([kept for _, kept, _, _ in each], oracle[1], msg=f"{name} {numel}")
        if name.startswith("random-k"):
            chosen, k = result != 0, costs.kept(numel, 0.07)
            scale = 1 if name in KEEPING else numel / k  # about: cells differ by one
            assert chosen.sum() == k
            torch.testing.assert_close(result[chosen] / mean[chosen], torch.full((k,), float(scale)), rtol=0.1, atol=0)
        if name == "QSGD":
            level = max(vector.abs().max() for vector in vectors) / 7
            assert (result - mean).abs().max() <= level
        if name.startswith("PowerSGD") and numel == 1003:  # vectors are exact, and matrices are of rank 2
            sizes = [math.prod(SHAPES[numel][place]) for place in order]
            for place, part, exact in zip(order, result.split(sizes), mean.split(sizes), strict=True):
                shape = SHAPES[numel][place]
                if len(shape) < 2:
                    torch.testing.assert_close(part, exact)
                else:
                    assert torch.linalg.matrix_rank(part.view(shape[0], -1), rtol=1e-4) == min(2, *shape)


# ---- three ways in


WAYS = ("compressor", "hook", "torch's")


def wrapped(way, module, compressor, **options):
    """``module`` in torch's DDP, or in ours by a hook or as its compressor."""
    if way == "compressor":
        return DistributedDataParallel(module, compressor=compressor, **options)
    kind = DistributedDataParallel if way == "hook" else nn.parallel.DistributedDataParallel
    model = kind(module, **options)
    model.register_comm_hook(compressor, compressed)
    return model


def trained(way, make):
    """Three steps in small buckets, after one that shows in which order gradients come."""
    module, compressor = awkward.model_of("OddSizes"), make()
    model = wrapped(way, module, compressor, bucket_cap_mb=2e-4)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for step in range(4):
        tokens, targets = awkward.batch(step)
        awkward.loss_of(model, tokens[dist.get_rank() :: 3], targets[dist.get_rank() :: 3]).backward()
        if step == 0:
            compressor.reset()
        else:
            optimizer.step()
        optimizer.zero_grad()
    return end_to_end(module.parameters())


def in_ways(ways, names):
    return {(name, way): trained(way, METHODS[name]) for name in names for way in ways}


def test_hooks_of_ours_and_of_torchs_ddp_and_compressors_are_equal():
    """Bit for bit, on all ranks, and by NCCL's rules too: the same messages, added in the same order."""
    ranks = launch(in_ways, WAYS, list(METHODS), world_size=3).returns
    strict = launch(in_ways, ["compressor"], list(METHODS), world_size=3, device="strict").returns
    strict += launch(in_ways, ["hook"], ["PowerSGD"], world_size=3, device="strict").returns
    start = end_to_end(awkward.model_of("OddSizes").parameters())
    for name in METHODS:
        expected = ranks[0][name, "compressor"]
        assert (expected != start).any()
        for results in [*ranks, *strict]:
            for case, result in results.items():
                assert case[0] != name or torch.equal(result, expected), case


def nothing_is_lost():
    """By way and method: all gradients applied, this rank's errors, its true gradients; and if buckets changed."""
    results, shapes, steps = {}, SHAPES[1003], 4
    for way, name in itertools.product(WAYS, KEEPING):
        given, compressor, groups = gradients(shapes, 0), METHODS[name](), []
        start = compressor._begin
        compressor._begin = lambda bucket, *rest, start=start, groups=groups: (
            groups.append(tuple(p.numel() for p in bucket.parameters())),
            start(bucket, *rest),
        )[1]
        module = Given(given)
        model, applied = wrapped(way, module, compressor, bucket_cap_mb=5e-4), 0
        for step in range(steps):
            model(gradients(shapes, dist.get_rank(), step)).backward()
            applied = applied + end_to_end(p.grad for p in module.parameters())
            module.zero_grad()
        errors = compressor.state_dict(model)["errors"]
        true = sum(end_to_end(gradients(shapes, dist.get_rank(), step)) for step in range(steps))
        buckets = len(groups) // steps
        results[way, name] = applied, end_to_end(errors.values()), true, groups[:buckets] != groups[-buckets:]
        assert list(errors) == [name for name, _ in module.named_parameters()]
    return results


def test_what_is_not_sent_is_sent_later_whatever_becomes_of_the_buckets():
    """Applied gradients and what is left of them, averaged, are the true ones: errors follow their parameters."""
    ranks = launch(nothing_is_lost, world_size=2).returns
    for case, (applied, _, _, changed) in ranks[0].items():
        left, true = (sum(rank[case][part] for rank in ranks) / 2 for part in (1, 2))
        torch.testing.assert_close(applied + left, true, rtol=1e-4, atol=1e-5, msg=str(case))
        assert left.abs().max() > 0.1
        assert changed, case  # so that this was a test


def order_of_events():
    """What happened in a backward pass of two layers: gradients complete, buckets taken, and means made elsewhere."""
    events, threads = [], set()

    class Noting(TopK):
        def start(self, bucket, *rest):
            events.append(f"bucket {bucket.index()}")
            return super().start(bucket, *rest)

        def mean(self, values, exchange):
            threads.add(threading.get_ident())
            return super().mean(values, exchange)

    model = DistributedDataParallel(mlp(layers=2), bucket_cap_mb=1e-4, compressor=Noting(0.5))
    for name, parameter in model.trained.items():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: events.append(name))
    model(torch.ones(2, 8)).sum().backward()
    return events, len(threads - {threading.get_ident()})


def test_a_bucket_leaves_while_gradients_are_still_to_come():
    for events, threads in launch(order_of_events, world_size=2).returns:
        assert events.index("bucket 0") < min(events.index("0.weight"), events.index("0.bias"))
        assert threads == 1


# ---- against torch's PowerSGD


def power_sgd_of_torch(rank):
    """Ours and torch's from the same first factors, over five steps, of which the first two are not compressed."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as torchs

    def model_of():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(2, 6, 3), nn.Flatten(), nn.Linear(24, 5), nn.Tanh(), nn.Linear(5, 7))

    def steps(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            random = torch.Generator().manual_seed(10 * step + dist.get_rank())
            model(torch.randn(3, 2, 4, 4, generator=random)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return end_to_end(model.parameters())

    module, order = model_of(), []
    names = {parameter: name for name, parameter in module.named_parameters()}

    def noting(state, bucket):
        order[:] = [names[parameter] for parameter in bucket.parameters()]
        return torchs.powerSGD_hook(state, bucket)

    theirs = nn.parallel.DistributedDataParallel(module)
    state = torchs.PowerSGDState(None, rank, start_powerSGD_iter=2, min_compression_rate=0)
    theirs.register_comm_hook(state, noting)
    expected = steps(theirs)

    module, factors = model_of(), {}
    torch.manual_seed(np.random.RandomState(0).randint(1_000_000_000))  # as torch draws its first factors
    for name in order:
        matrix = module.get_parameter(name).flatten(1) if "weight" in name else module.get_parameter(name)[:, None]
        factor = torch.randn(1, matrix.shape[1], min(rank, *matrix.shape))[0]
        if "weight" in name:  # torch makes a vector a matrix of one column, which rank 1 gives exactly
            factors[name] = factor
    compressor = PowerSGD(rank, start_step=2)
    compressor.load_state_dict({"steps": 0, "errors": {}, "factors": factors}, module)
    return expected, steps(DistributedDataParallel(module, compressor=compressor))


def power_sgd_of_ranks(ranks):
    return [power_sgd_of_torch(rank) for rank in ranks]


def test_power_sgd_is_torchs():
    """Within rounding: torch orthogonalises by Gram-Schmidt up to rank 2, and its sums are in another order."""
    for results in launch(power_sgd_of_ranks, [1, 2, 4], world_size=3).returns:
        for expected, got in results:
            torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)


# ---- PowerSGD of ResNet-18


class OfShapes(nn.Module):
    """Parameters of ``shapes``, with gradients of 1."""

    def __init__(self, shapes):
        super().__init__()
        self.own = nn.ParameterList(torch.zeros(shape) for shape in shapes)

    def forward(self):
        return sum(parameter.sum() for parameter in self.own)


def bytes_of_a_step(**options):
    model = DistributedDataParallel(OfShapes(costs.resnet18_cifar10_shapes()), **options)
    before = len(recorded())
    model().backward()
    return bytes_sent(recorded()[before:])


def counted(ranks):
    return [bytes_of_a_step(compressor=None if rank is None else PowerSGD(rank), algorithm=None if rank else "ring")
            for rank in ranks]  # fmt: skip


def test_power_sgd_sends_the_published_ratio_of_resnet_18():
    """Bytes counted, all ranks together, of the ring all-reduce of 11,173,962 gradients over those of PowerSGD."""
    rows = json.loads((Path(__file__).parents[1] / "published" / "published.json").read_text())
    rows = [row for row in rows if row["quantity"] == "powersgd_compression_ratio"]
    assert len(rows) >= 2
    shapes = costs.resnet18_cifar10_shapes()
    assert sum(math.prod(shape) for shape in shapes) == 11_173_962
    each = launch(counted, [None, *(row["inputs"]["rank"] for row in rows)], world_size=2).returns
    dense, *compressed_ = (sum(sent) for sent in zip(*each, strict=True))
    assert dense == 2 * 4 * 11_173_962
    for row, sent in zip(rows, compressed_, strict=True):
        assert dense / sent == costs.powersgd_compression_ratio(shapes, row["inputs"]["rank"])
        assert abs(dense / sent - row["expected"]) <= row["tolerance"]


# ---- the rest of a training program: with nothing lost, a compressor is an all-reduce

WHOLE = {
    "none": lambda: None,
    "top-k": lambda: TopK(1.0, error_feedback=False),
    "random-k": lambda: RandomK(1.0, error_feedback=False),
    "PowerSGD": lambda: PowerSGD(99, error_feedback=False),
}


def models_of(travel):
    for name in awkward.MODELS:
        options = {"find_unused": True} if name == "Unused" else {}
        module = awkward.model_of(name, dist.get_rank())
        trained = [p for p in module.parameters() if p.requires_grad]
        model = DistributedDataParallel(module, bucket_cap_mb=1e-4, compressor=travel(), **options)
        optimizer = torch.optim.AdamW(trained, lr=0.01)
        for step in range(2):
            tokens, targets = (part[dist.get_rank() :: 3] for part in awkward.batch(step))
            with model.no_sync():
                awkward.loss_of(model, tokens[:4], targets[:4]).backward()
            awkward.loss_of(model, tokens[4:], targets[4:]).backward()
            optimizer.step()
            optimizer.zero_grad()
        yield name, end_to_end(module.parameters())


def joined(travel, mean_over_all):
    """Steps inside backward; one batch on rank 0, two on rank 1, three on rank 2."""
    module = mlp()
    step = torch.optim.SGD(module.parameters(), lr=0.1)
    model = DistributedDataParallel(module, bucket_cap_mb=1e-4, compressor=travel(), optimizer=step)
    with model.join(divide_by_initial_world_size=mean_over_all):
        for batch in range(dist.get_rank() + 1):
            model(torch.full((2, 8), 1.0 + dist.get_rank() + batch)).square().mean().backward()
    return end_to_end(module.parameters())


def programs(travel):
    return dict(models_of(travel)) | {f"join, {over_all}": joined(travel, over_all) for over_all in (True, False)}


def with_nothing_lost():
    return {name: programs(travel) for name, travel in WHOLE.items()}


def test_with_nothing_lost_a_compressor_is_an_all_reduce():
    """Within rounding: accumulated, unused and frozen gradients, mixed types, uneven data, steps inside backward."""
    for rank in launch(with_nothing_lost, world_size=3).returns:
        for name in WHOLE:
            torch.testing.assert_close(rank[name], rank["none"], rtol=1e-3, atol=1e-4, msg=name)


def signs_with_one_rank_left():
    """Only rank 1 has data: all its gradients are negative, and its errors none."""
    results = []
    for keeps in (False, True):
        given = [torch.full((11,), -2.0)]
        module = Given(given)
        model = DistributedDataParallel(module, compressor=SignMajority(keeps))
        with model.join():
            if dist.get_rank() == 1:
                model(given).backward()
                results.append(module.own[0].grad.tolist())
    return results


def test_who_is_out_of_data_does_not_vote():
    _, (voted, weighted), _ = launch(signs_with_one_rank_left, world_size=3).returns
    assert voted == [-1.0] * 11
    torch.testing.assert_close(weighted, [-2 / 3] * 11)


def votes(steps):
    """Of 2 ranks that always disagree, and of gradients that are 0 except the last."""
    results = []
    for given in ([torch.tensor([1.0, -1.0]) * (-1) ** dist.get_rank()], [torch.tensor([0.0, 0.0, 3.0])]):
        module = Given(given)
        model, each = DistributedDataParallel(module, compressor=SignMajority()), []
        for _ in range(steps):
            model(given).backward()
            each.append(module.own[0].grad.tolist())
            module.zero_grad()
        results.append(each)
    return results


def test_ties_and_zeros_take_turns():
    for ties, zeros in launch(votes, 4, world_size=2).returns:
        assert ties == [[1, 1], [-1, -1]] * 2
        assert zeros == [[1, 1, 1], [-1, -1, 1]] * 2


def overflown():
    """By method and what overflows on rank 1: if the result is finite before, then, and after; if errors stayed."""
    results, shapes = {}, SHAPES[1003]
    for (name, make), value in itertools.product(METHODS.items(), (math.nan, -math.inf)):
        module, compressor = Given(gradients(shapes, 0)), make()
        model, finite, errors = DistributedDataParallel(module, compressor=compressor), [], []
        for step in range(3):
            given = gradients(shapes, dist.get_rank(), step)
            if step == 1 and dist.get_rank() == 1:
                given[1].view(-1)[77] = value
            model(given).backward()
            finite.append(bool(end_to_end(p.grad for p in module.parameters()).isfinite().all()))
            errors.append([value.clone() for value in compressor.state_dict(model)["errors"].values()])
            module.zero_grad()
        results[name, value] = finite, all(map(torch.equal, errors[0], errors[1])), bool(errors[0])
    return results


def test_an_overflow_on_one_rank_is_seen_by_all_and_leaves_no_trace():
    for rank in launch(overflown, world_size=2).returns:
        for case, (finite, same, kept) in rank.items():
            assert finite == [True, False, True], case
            assert same, case
            assert kept == (case[0] in KEEPING), case


def in_type(dtype):
    """Two steps: what is compressed in another type than the gradients', and in theirs."""
    results = {}
    for name, make in METHODS.items():
        each = []
        for of in (dtype, torch.float32):
            shapes = SHAPES[1003]
            module = Given([gradient.to(of) for gradient in gradients(shapes, 0)])
            model = DistributedDataParallel(module, compressor=make())
            for step in range(2):
                module.zero_grad()
                model([gradient.to(dtype).to(of) for gradient in gradients(shapes, dist.get_rank(), step)]).backward()
            each.append([p.grad for p in module.parameters()])
        results[name] = each
    return results


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_compressed_as_fp32(dtype):
    """Bit for bit: the result is that of the same numbers in fp32, rounded."""
    for rank in launch(in_type, dtype, world_size=2).returns:
        for name, (got, whole) in rank.items():
            assert all(g.dtype == dtype and torch.equal(g, w.to(dtype)) for g, w in zip(got, whole, strict=True)), name


def in_double():
    given = [gradient.double() for gradient in gradients([(5, 7), (2,)], dist.get_rank())]
    results = []
    for make in (lambda: TopK(0.07), lambda: TopK(1.0), lambda: RandomK(1.0), lambda: PowerSGD(5)):
        module = Given(given)
        DistributedDataParallel(module, compressor=make())(given).backward()
        results.append(end_to_end(p.grad for p in module.parameters()))
    return results


@pytest.mark.parametrize("n", [3, 1])
def test_float64_stays_float64(n):
    mean = sum(end_to_end(gradients([(5, 7), (2,)], rank)).double() for rank in range(n)) / n
    for results in launch(in_double, world_size=n).returns:
        assert results[0].count_nonzero() >= 3
        for got in results[1:]:
            torch.testing.assert_close(got, mean, rtol=1e-12, atol=1e-12)


def saved_and_loaded(folder):
    """By method: parameters after 5 steps, and after 3, a new compressor with the state of the first, and 2 more."""
    results, shapes = {}, SHAPES[1003]
    for name, make in METHODS.items():
        ends = []
        for stop in (None, 3):
            module, holder = Given(gradients(shapes, 0)), [make()]
            model = DistributedDataParallel(module)
            model.register_comm_hook(holder, lambda holder, bucket: compressed(holder[0], bucket))
            for step in range(5):
                if step == stop:
                    file = f"{folder}/{dist.get_rank()}"
                    torch.save(holder[0].state_dict(model), file)
                    holder[0] = make()
                    holder[0].load_state_dict(torch.load(file), module)
                model(gradients(shapes, dist.get_rank(), step)).backward()
                if step < 4:
                    module.zero_grad()
            ends.append(end_to_end(p.grad for p in module.parameters()))
        results[name] = ends
    return results


def test_a_saved_state_goes_on_bit_for_bit(tmp_path):
    for rank in launch(saved_and_loaded, str(tmp_path), world_size=2).returns:
        for name, (whole, continued) in rank.items():
            assert torch.equal(whole, continued), name


# ---- error feedback


def excess(make, lr, seed, steps=80):
    """What a regression with skewed noise has lost to the best one: in two batches of 2, the learning rate to 0."""
    random = torch.Generator().manual_seed(seed)
    target, scales, module = torch.randn(12, 16, generator=random), torch.linspace(0.3, 1.5, 16), nn.Linear(16, 12)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    model = DistributedDataParallel(module, compressor=make())
    optimizer = torch.optim.SGD(module.parameters(), lr=lr)
    random = torch.Generator().manual_seed(1000 * seed + dist.get_rank())
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * (1 - step / steps)
        x = torch.randn(2, 16, generator=random) * scales
        y = x @ target.T + 2 * torch.empty(2, 12).exponential_(generator=random) - 2
        (model(x) - y).square().sum(1).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return ((module.weight - target) * scales).square().sum().item() + module.bias.square().sum().item()


RATE = 0.06
SIGN_RATES = (0.15, 0.2, 0.3)  # the best is among them: below and above it is worse
WITH_AND_WITHOUT = {
    "top-k": (lambda: TopK(0.05), lambda: TopK(0.05, error_feedback=False), (RATE,)),
    "signs": (lambda: SignMajority(error_feedback=True), SignMajority, SIGN_RATES),
    "PowerSGD": (lambda: PowerSGD(1), lambda: PowerSGD(1, error_feedback=False), (RATE,)),
}


def with_and_without(seeds):
    return {
        (name, seed): (excess(keeping, RATE, seed), min(excess(losing, rate, seed) for rate in rates))
        for name, (keeping, losing, rates) in WITH_AND_WITHOUT.items()
        for seed in seeds
    } | {("none", seed): excess(lambda: None, RATE, seed) for seed in seeds}


def test_without_error_feedback_training_is_worse():
    """On every seed: with it the loss is within a third of that without compression; without it, 1.5 times as high."""
    got = launch(with_and_without, [0, 1, 2], world_size=2).returns[0]
    for name, seed in itertools.product(WITH_AND_WITHOUT, [0, 1, 2]):
        keeping, losing = got[name, seed]
        assert keeping < 1.33 * got["none", seed], (name, seed, got)
        assert losing > 1.5 * keeping, (name, seed, got)


# ---- 1-bit Adam


ADAM_SHAPES = [(5, 7), (3,), (1, 2, 4)]


def adam_gradients(rank, step):
    given = gradients(ADAM_SHAPES, rank, step, seed=7)
    given[0][2] = 0  # never has a gradient
    return given


def one_bit_adam(steps, warmup, stop, folder):
    """Parameters after each step, and bytes of each. At ``stop`` a new optimizer goes on with the saved state."""
    module, states, sent = Given(gradients(ADAM_SHAPES, 0)), [], []
    optimizer = OneBitAdam(module.parameters(), 0.1, warmup, betas=(0.8, 0.9), weight_decay=0.01)
    for step in range(steps):
        if step == stop:
            torch.save(optimizer.state_dict(), f"{folder}/{dist.get_rank()}")
            optimizer = OneBitAdam(module.parameters(), 0.1, warmup)
            optimizer.load_state_dict(torch.load(f"{folder}/{dist.get_rank()}"))
        before = len(recorded())
        module(adam_gradients(dist.get_rank(), step)).backward()
        optimizer.step()
        optimizer.zero_grad()
        states.append(end_to_end(module.parameters()))
        sent.append(bytes_sent(recorded()[before:]))
    return states, sent


def one_bit_adam_written_down(n, steps, warmup):
    """Parameters after each step: torch's Adam on mean gradients, then the paper's algorithm, chunk by chunk."""
    module, states = Given(gradients(ADAM_SHAPES, 0)), []
    adam = torch.optim.Adam(module.parameters(), lr=0.1, betas=(0.8, 0.9), weight_decay=0.01)
    for step in range(warmup):
        for place, parameter in enumerate(module.parameters()):
            parameter.grad = sum(adam_gradients(rank, step)[place] for rank in range(n)) / n
        adam.step()
        states.append(end_to_end(module.parameters()))
    x = states[-1].clone()
    momentum, variance = (
        end_to_end(adam.state[p][key] for p in module.parameters()) for key in ("exp_avg", "exp_avg_sq")
    )
    variance, numel = variance / (1 - 0.9**warmup), x.numel()
    width = 8 * math.ceil(numel / (8 * n))
    errors, owed = [torch.zeros(numel) for _ in range(n)], torch.zeros(numel)
    for step in range(warmup, steps):
        gradient = [end_to_end(adam_gradients(rank, step)) + 0.01 * x for rank in range(n)]
        values = [0.8 * momentum + 0.2 * g + e for g, e in zip(gradient, errors, strict=True)]
        for start in range(0, numel, width):
            chunk = slice(start, start + width)
            said = [v[chunk].abs().mean() * torch.where(v[chunk] >= 0, 1, -1) for v in values]
            for error, value, each in zip(errors, values, said, strict=True):
                error[chunk] = value[chunk] - each
            mean = sum(said) / n + owed[chunk]
            momentum[chunk] = mean.abs().mean() * torch.where(mean >= 0, 1, -1)
            owed[chunk] = mean - momentum[chunk]
        momentum[variance == 0] = 0
        x = x - 0.1 / (1 - 0.8 ** (step + 1)) * momentum / (variance.sqrt() + 1e-8)
        states.append(x)
    return states


@pytest.mark.parametrize("n", [4, 3, 2, 1])
def test_one_bit_adam_is_adam_and_then_the_papers_algorithm(n, tmp_path):
    """The warm-up bit for bit for up to 2 ranks, within rounding for more, whose sums have another order; bytes exact.

    All ranks have the same parameters, bit for bit.
    """
    steps, warmup, numel = 8, 4, 46
    ranks = launch(one_bit_adam, steps, warmup, 6, str(tmp_path), world_size=n).returns
    expected = one_bit_adam_written_down(n, steps, warmup)
    for step, state in enumerate(ranks[0][0]):
        torch.testing.assert_close(state, expected[step], rtol=1e-3, atol=1e-4)
        assert n > 2 or step >= warmup or torch.equal(state, expected[step])
        assert all(torch.equal(state, states[step]) for states, _ in ranks)
        is_warmup = step < warmup
        assert [sent[step] for _, sent in ranks] == costs.one_bit_adam_bytes(numel, n, warmup=is_warmup)


# ---- bad input


def sparse_gradients(way):
    module = nn.Sequential(nn.Embedding(5, 3, sparse=True), nn.Linear(3, 2))
    model = wrapped(way, module, TopK(0.5))
    model(torch.tensor([1, 2])).sum().backward()


def complex_gradients():
    module = nn.Linear(3, 2, dtype=torch.complex64)
    DistributedDataParallel(module, compressor=PowerSGD(1))(
        torch.ones(1, 3, dtype=torch.complex64)
    ).abs().sum().backward()


def two_models():
    compressor = TopK(0.5)
    for _ in range(2):
        DistributedDataParallel(mlp(), compressor=compressor)(torch.ones(1, 8)).sum().backward()


def other_shape():
    compressor, module = TopK(0.5), nn.Linear(3, 2)
    compressor.load_state_dict({"steps": 0, "errors": {"bias": torch.zeros(2)}}, module)
    module.bias.data = torch.zeros(1, 2)
    DistributedDataParallel(module, compressor=compressor)(torch.ones(1, 3)).sum().backward()


def hook_and_compressor():
    DistributedDataParallel(mlp(), compressor=TopK(0.5)).register_comm_hook(TopK(0.5), compressed)


def no_compressor():
    model = DistributedDataParallel(mlp())
    model.register_comm_hook(None, compressed)
    model(torch.ones(1, 8)).sum().backward()


def other_state(change):
    compressor, module = PowerSGD(2), mlp()
    DistributedDataParallel(module, compressor=compressor)(torch.ones(1, 8)).sum().backward()
    state = compressor.state_dict(module)
    change(state)
    PowerSGD(2).load_state_dict(state, module)


def step_of_adam(change, **options):
    module = mlp(layers=1)
    optimizer = OneBitAdam(module.parameters(), warmup_steps=1, **options)
    module(torch.ones(1, 8)).sum().backward()
    change(module, optimizer)
    optimizer.step()


def scaled(module, optimizer):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(torch.ones(()))
    scaler.step(optimizer)


def joined_too_late(module, optimizer):
    optimizer.step()
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]})


REFUSED = [
    *((lambda make=make, ratio=ratio: make(ratio), f"ratio is {ratio}; give the part of the values that is s")
      for make in (TopK, RandomK) for ratio in (0, -0.1, 1.01, math.nan)),
    (lambda: QSGD(3), "bits is 3; take 2, 4 or 8"),
    (lambda: QSGD(block=0), "block is 0; give a whole number"),
    (lambda: PowerSGD(0), "rank is 0; give a whole number, at least 1"),
    (lambda: PowerSGD(1, start_step=-1), "start_step is -1; give a whole number of steps"),
    (lambda: DistributedDataParallel(mlp(), compressor="top-k"), "compressor is 'top-k'; give one of ringzero"),
    (lambda: DistributedDataParallel(mlp(), compressor=TopK(0.5), algorithm="ring"),
     r"algorithm is 'ring', and compressor=TopK\(ratio=0.5, error_feedback=True\) has its own messages; give one"),
    (lambda: DistributedDataParallel(mlp(), compressor=TopK(0.5), find_unused=True), "errors.*take error_feedback"),
    (lambda: sparse_gradients("compressor"), "the gradient of 0.weight is sparse, and TopK compresses dense ones; m"),
    (lambda: sparse_gradients("hook"), "the gradient of 0.weight is sparse, and TopK compresses dense ones"),
    (lambda: sparse_gradients("torch's"), r"the gradient of a parameter of shape \(5, 3\) is sparse, and TopK com"),
    (complex_gradients, "gradients are torch.complex64, and PowerSGD compresses real"),
    (two_models, "this TopK has the errors of another model; make one for each model, or call its reset"),
    (other_shape, r"of a parameter of shape \(2,\), whose shape is \(1, 2\) now; call reset\(\) on every rank"),
    (hook_and_compressor, r"compressor=TopK\(.*\) averages the gradients; leave it out to use a hook"),
    (no_compressor, "the hook compressed got None"),
    (lambda: other_state(lambda state: state["errors"].update(x=torch.ones(1))), "the state has errors of x, and the "),
    (lambda: other_state(lambda state: state["errors"].update({"0.bias": torch.ones(1)})), "errors of 0.bias have the"),
    (lambda: other_state(lambda state: state["factors"].update({"0.weight": torch.ones(8, 3)})), "factor of 0.weight "),
    (lambda: OneBitAdam([nn.Parameter(torch.ones(1))], warmup_steps=0), "warmup_steps is 0; give at least 1"),
    (lambda: OneBitAdam([nn.Parameter(torch.ones(1))], lr=-1), "lr is -1, eps"),
    (lambda: OneBitAdam([nn.Parameter(torch.ones(4).half())]), r"a parameter of shape \(4,\) is torch.float16, too "),
    (lambda: step_of_adam(lambda module, _: module.zero_grad()), r"parameter 0, of shape \(8, 8\), has no gradient"),
    (lambda: step_of_adam(lambda module, _: setattr(module[0].weight, "grad", torch.ones(8, 8).to_sparse())),
     "the gradient of parameter 0, of shape .* is sparse, and OneBitAdam"),
    (lambda: step_of_adam(scaled), "OneBitAdam takes no GradScaler"),
    (lambda: step_of_adam(joined_too_late), "OneBitAdam has begun its warm-up; give it all parameters before"),
]  # fmt: skip


def refusals():
    return [error_of(work) for work, _ in REFUSED]


def test_what_cannot_be_is_refused_by_name():
    for raised in launch(refusals).returns:
        for (_, message), text in zip(REFUSED, raised, strict=True):
            assert re.search(message, text), text
