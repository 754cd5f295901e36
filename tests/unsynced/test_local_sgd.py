"""Local SGD and DiLoCo on real ranks against one process with N models, and their bytes against the formulas."""

import contextlib
from functools import partial
from itertools import pairwise

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ringzero import launch
from ringzero.collectives.schedule import chunk_bounds
from ringzero.costs import local as costs
from ringzero.data_parallel import DistributedDataParallel
from ringzero.record import recorded
from ringzero.record.operation import bytes_sent
from ringzero.unsynced.local import FORMATS, DiLoCo, LocalSGD, cut, layers_of, mean_in
from tests import awkward
from tests.awkward import error_of, mlp, model_of
from tests.small_transformers import Gpt

STEPS = 7


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """For the oracles: two threads for each tiny operation wait for each other when other tests use the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Transformer(Gpt):
    """A GPT, whose output layer is its embedding, for the batches of ``awkward``."""

    def __init__(self):
        super().__init__(layers=2, hidden=8, vocab=10, positions=6, heads=2)

    def forward(self, tokens):
        return super().forward(tokens)[:, -1, :3]


def made(name, seed):
    torch.manual_seed(seed)
    return Transformer() if name == "Transformer" else model_of(name, seed)


def optimizer_of(module):
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


PLAIN = {"every": 3, "fragments": 1, "delay": 0, "mixing": 1.0}
STREAMING = {"every": 4, "fragments": 2, "delay": 2, "mixing": 0.5}
TRAINED = [  # (model, options of DiLoCo, or H of local SGD)
    *(("Tied", 2), ("OddSizes", 3), ("MixedTypes", 1), ("Unused", 4), ("Transformer", 3)),
    *(("Tied", STREAMING), ("Frozen", PLAIN), ("OddSizes", PLAIN | {"mixing": 0.25}), ("MixedTypes", STREAMING)),
    *(("Unused", STREAMING | {"fragments": 3, "delay": 0, "mixing": 1.0}), ("Transformer", STREAMING)),
]


def trained():
    """On a rank: the states, the mean models, and what is shared, for all that is trained."""
    rank, n = dist.get_rank(), dist.get_world_size()
    results = []
    for name, options in TRAINED:
        module = made(name, rank)  # another one on every rank: a missing broadcast shows
        kind = partial(LocalSGD, every=options) if isinstance(options, int) else partial(DiLoCo, **options)
        with kind(module, optimizer_of(module)) as trainer:
            for step in range(STEPS):
                tokens, targets = awkward.batch(step)
                awkward.loss_of(module, tokens[rank::n], targets[rank::n]).backward()
                trainer.step()
                trainer.zero_grad()
        shared = [fragment.shared for fragment in getattr(trainer, "fragments", [])]
        results.append((dict(module.state_dict()), trainer.average(), trainer.consensus_distance(), shared))
    return results


class Oracle:
    """N models in one process; what they share, and its optimizers, one for each fragment."""

    def __init__(self, name, n, fragments=1):
        self.n, self.modules = n, [made(name, 0) for _ in range(n)]
        self.optimizers = [optimizer_of(module) for module in self.modules]
        shared = made(name, 0)
        places = {p: place for place, p in enumerate(shared.parameters())}
        parts = cut(layers_of(shared), fragments)
        self.places = [[places[p] for layer in part for p in layer] for part in parts]
        self.shared = list(shared.parameters())
        self.outer = [
            torch.optim.SGD([self.shared[place] for place in part], lr=0.7, momentum=0.9, nesterov=True)
            for part in self.places
        ]

    def local_step(self, step):
        for rank, (module, optimizer) in enumerate(zip(self.modules, self.optimizers, strict=True)):
            tokens, targets = awkward.batch(step)
            awkward.loss_of(module, tokens[rank :: self.n], targets[rank :: self.n]).backward()
            optimizer.step()
            optimizer.zero_grad()

    def copies(self, place):
        return [list(module.parameters())[place].detach() for module in self.modules]

    def average(self):
        for place, p in enumerate(self.shared):
            if p.requires_grad:
                mean = torch.stack(self.copies(place)).double().mean(0)
                for copy in self.copies(place):
                    copy.copy_(mean)

    def outer_gradient(self, fragment):
        return [
            self.shared[place].detach().double() - torch.stack(self.copies(place)).double().mean(0)
            for place in self.places[fragment]
        ]

    def merge(self, fragment, gradient, mixing):
        for place, part in zip(self.places[fragment], gradient, strict=True):
            self.shared[place].grad = part.to(self.shared[place].dtype)
        self.outer[fragment].step()
        for place in self.places[fragment]:
            for copy in self.copies(place):
                copy.copy_((1 - mixing) * copy + mixing * self.shared[place].detach())


def locally(name, n, every):
    oracle = Oracle(name, n)
    for step in range(STEPS):
        oracle.local_step(step)
        if (step + 1) % every == 0 or step + 1 == STEPS:
            oracle.average()
    return oracle


def with_outer_steps(name, n, every, fragments, delay, mixing):
    """Fragment p leaves after the steps t with (t - p H/P) mod H = 0, and is merged ``delay`` steps later."""
    oracle, on_the_way = Oracle(name, n, fragments), {}
    for step in range(1, STEPS + 1):
        oracle.local_step(step - 1)
        for fragment in range(fragments):
            if (step - fragment * every // fragments) % every == 0:
                on_the_way[step + delay, fragment] = oracle.outer_gradient(fragment)
        for when, fragment in sorted(on_the_way):
            if when <= step or step == STEPS:
                oracle.merge(fragment, on_the_way.pop((when, fragment)), mixing)
    return oracle


@pytest.mark.parametrize(("world_size", "device"), [(5, "cpu"), (4, "strict"), (3, "cpu"), (2, "cpu"), (1, "cpu")])
def test_ranks_train_as_n_models_in_one_process(world_size, device):
    """Within rounding: means are taken in fp32 here and in fp64 there. What ranks share has the same bits on all."""
    ranks = launch(trained, world_size=world_size, device=device).returns
    for number, (name, options) in enumerate(TRAINED):
        locals_only = isinstance(options, int)
        oracle = locally(name, world_size, options) if locals_only else with_outer_steps(name, world_size, **options)
        states = [module.state_dict() for module in oracle.modules]
        for rank, results in enumerate(ranks):
            state, average, distance, shared = results[number]
            assert_close(state, states[rank], (name, options, rank))
            mean = {key: torch.stack([each[key].double() for each in states]).mean(0) for key in state}
            assert_close(average, mean, (name, options))
            assert all(torch.equal(ours, first) for ours, first in zip(shared, ranks[0][number][3], strict=True))
            if locals_only:
                assert all(torch.equal(state[key], value) for key, value in ranks[0][number][0].items())
                assert distance == 0
            elif world_size > 1 and options["mixing"] < 1:
                assert distance > 0


def assert_close(ours, theirs, what):
    ours, theirs = ({key: value.double() for key, value in state.items()} for state in (ours, theirs))
    torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-5, msg=lambda message: f"{what}: {message}")


# ---- the methods beside each other


def beside_each_other():
    rank, n = dist.get_rank(), dist.get_world_size()

    def train(make):
        module = mlp(rank)
        optimizer = optimizer_of(module)
        trainer = make(module, optimizer)
        for step in range(6):
            x = torch.randn(12, 8, generator=torch.Generator().manual_seed(step))[rank::n]
            module(x).square().mean().backward()
            trainer.step()
            trainer.zero_grad()
        return dict(module.state_dict())

    plain = partial(torch.optim.SGD, lr=1.0)
    return {
        "data parallel": train(data_parallel),
        "every step": train(partial(LocalSGD, every=1)),
        "every third": train(partial(LocalSGD, every=3)),
        "outer steps of lr 1": train(partial(DiLoCo, every=3, outer=plain)),
    }


def data_parallel(module, optimizer):
    """As a trainer: averages gradients in the backward pass, then steps."""

    class Trainer:
        model = DistributedDataParallel(module)
        step, zero_grad = staticmethod(optimizer.step), staticmethod(optimizer.zero_grad)

    return Trainer()


def test_special_cases_are_the_simpler_methods():
    """Local SGD with H = 1 is data parallelism, DiLoCo with a plain outer step of 1 is local SGD. Not bit for bit: the
    mean of parameters, their differences and gradients is rounded at another place."""
    for states in launch(beside_each_other, world_size=3).returns:
        torch.testing.assert_close(states["every step"], states["data parallel"], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(states["outer steps of lr 1"], states["every third"], rtol=1e-5, atol=1e-6)
        with pytest.raises(AssertionError):
            torch.testing.assert_close(states["every third"], states["every step"], rtol=1e-5, atol=1e-6)


def own_states():
    rank = dist.get_rank()
    module = mlp()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    trainer = LocalSGD(module, optimizer, every=1)
    module(torch.full((2, 8), rank + 1.0)).square().mean().backward()
    trainer.step()
    return module[0].weight, optimizer.state[module[0].weight]["exp_avg"]


def test_the_optimizers_state_stays_each_ranks_own():
    (first, moment), (second, other_moment) = launch(own_states, world_size=2).returns
    assert torch.equal(first, second)
    assert not torch.allclose(moment, other_moment)


# ---- fewer bits


def means(numel):
    rank, group = dist.get_rank(), dist.group.WORLD
    results = {}
    for bits, format in FORMATS.items():
        if format is not None:
            vector = vector_of(rank, numel)
            before = len(recorded())
            mean_in(format, vector, group)
            results[bits] = vector, bytes_sent(recorded()[before:])
    return results


def vector_of(rank, numel):
    return torch.randn(numel, generator=torch.Generator().manual_seed(rank))


@pytest.mark.parametrize(("world_size", "device"), [(5, "cpu"), (4, "strict"), (3, "cpu"), (2, "cpu")])
@pytest.mark.parametrize("numel", [1537, 2])
def test_means_in_fewer_bits(world_size, device, numel):
    """Bit for bit what one process makes with the same format, the same on all ranks; bytes are the formula's."""
    ranks = launch(means, numel, world_size=world_size, device=device, trace=True).returns
    bounds = list(pairwise(chunk_bounds(numel, world_size).tolist()))
    for bits, format in FORMATS.items():
        if format is None:
            continue
        expected = torch.empty(numel)
        for owner, (start, stop) in enumerate(bounds):
            parts = [vector_of(rank, numel)[start:stop] for rank in range(world_size)]
            total = parts[owner].clone()
            for rank, part in enumerate(parts):
                if rank != owner:
                    total += format.decode(format.encode(part), len(part))
            expected[start:stop] = format.decode(format.encode(total / world_size), len(total))
        longest = -(-numel // world_size)
        sent = 2 * (world_size - 1) * (-(-longest * bits // 8) + (4 * -(-longest // 256) if bits < 16 else 0))
        for results in ranks:
            assert torch.equal(results[bits][0], expected)
            assert results[bits][1] == sent
        exact = torch.stack([vector_of(rank, numel) for rank in range(world_size)]).mean(0)
        step = 4 * 2**-7 if bits == 16 else 4 / (2 ** (bits - 1) - 1)  # no number is larger than about 4
        assert (expected - exact).abs().max() <= step


# ---- bytes


def counted(make, steps, dtype=torch.float32, width=64):
    """On a rank: the bytes that it sends in so many steps of training two layers."""
    torch.manual_seed(0)
    module = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(2))).to(dtype)
    trainer = make(module, torch.optim.SGD(module.parameters(), lr=0.01))
    before, x = len(recorded()), torch.ones(1, width, dtype=dtype)
    for _ in range(steps):
        module(x).sum().backward()
        trainer.step()
        trainer.zero_grad()
    getattr(trainer, "finish", list)()
    return bytes_sent(recorded()[before:])


RING = {"algorithm": "ring"}


def data_parallel_by_ring(module, optimizer):
    model = DistributedDataParallel(module, algorithm="ring")
    optimizer.model = model  # which must live as long
    return optimizer


@pytest.mark.parametrize("world_size", [4, 3])
def test_bytes_are_the_formulas(world_size):
    """With H = 5. On average over the ranks: where N does not divide the chunks, they differ. Of two fragments one has
    its turn after the steps 5 and 10, and the other one after 2, 7 and 12."""
    params, streaming = 2 * 64 * 64, partial(DiLoCo, every=5, fragments=2, delay=1, **RING)
    for make, steps, fragments, turns in ((partial(LocalSGD, every=5, **RING), 10, 1, 2), (streaming, 13, 2, 5)):
        sent = launch(counted, make, steps, world_size=world_size, trace=True).returns
        average, peak = costs.streaming_bytes(params, world_size, 5, fragments)
        assert sum(sent) / world_size == pytest.approx(turns / fragments * 5 * average, rel=1e-12)
        assert average == costs.local_sgd_bytes(params, world_size, 5)
        assert peak == pytest.approx(5 * average / fragments)


def test_dilocos_published_reduction_in_bytes():
    """Data parallelism sends 500 times the bytes of DiLoCo with H = 500, exactly. Of the 400 of the streaming form, H =
    100 and 4 bits against 16, an fp32 scale for 256 numbers costs 1/32: 387.9. Bytes of real messages, all steps."""
    n = 2
    fp32, bf16 = (
        launch(counted, data_parallel_by_ring, 1, dtype, world_size=n, trace=True).returns[0]
        for dtype in (torch.float32, torch.bfloat16)
    )
    diloco = partial(DiLoCo, every=500, **RING)
    streaming = partial(DiLoCo, every=100, fragments=2, delay=5, mixing=0.5, bits=4)
    sent, streamed = (
        launch(counted, make, every, world_size=n, trace=True).returns[0]
        for make, every in ((diloco, 500), (streaming, 105))
    )
    assert 500 * fp32 / sent == costs.low_communication_reduction(500) == 500
    published = costs.low_communication_reduction(100, bits_from=16, bits_to=4)
    assert published == 400
    assert 100 * bf16 / streamed == pytest.approx(published / (1 + 4 / (256 / 2)), rel=1e-12)
    assert 100 * bf16 / streamed == pytest.approx(387.9, abs=0.05)


def turns():
    """On a rank: after which steps messages of which size left, with three fragments and H = 6."""
    module = nn.Sequential(*(nn.Linear(size, 1, bias=False) for size in (8, 8, 8)))
    trainer = DiLoCo(module, torch.optim.SGD(module.parameters(), lr=0.0), every=6, fragments=3)
    left = {}
    for step in range(1, 15):
        before = len(recorded())
        trainer.step()
        if sent := [op.bytes for op in recorded()[before:]]:
            left[step] = sent
    return left


def test_each_fragment_has_its_own_turn():
    for left in launch(turns, world_size=2, trace=True).returns:
        assert left == {2: [32], 4: [32], 6: [32], 8: [32], 10: [32], 12: [32], 14: [32]}


def late_neighbour(bits):
    """Rank 1 comes to its third step only when rank 0, whose outer gradient is on its way, says that it went on."""
    rank, module = dist.get_rank(), mlp()
    trainer = DiLoCo(module, torch.optim.SGD(module.parameters(), lr=0.1), every=3, delay=2, bits=bits)
    token, on_the_way = torch.zeros(1), []
    for step in range(1, 6):
        if (rank, step) == (1, 3):
            dist.recv(token, src=0)
        module(torch.full((2, 8), rank + 1.0)).square().mean().backward()
        trainer.step()
        trainer.zero_grad()
        on_the_way.append([fragment.started for fragment in trainer.fragments])
        if (rank, step) == (0, 4):
            dist.send(token, dst=1)
    return on_the_way, trainer.consensus_distance()


@pytest.mark.parametrize("bits", [32, 4])
def test_outer_gradients_travel_while_training_goes_on(bits):
    """If the third step waited for the other rank, both would wait for ever."""
    for on_the_way, distance in launch(late_neighbour, bits, world_size=2, timeout=200).returns:
        assert on_the_way == [[None], [None], [3], [3], [None]]
        assert distance == 0  # merged, with a mixing of 1


# ---- fragments


@pytest.mark.parametrize("sizes", [(5, 1, 1, 1, 5, 1), (1,) * 7, (9, 1, 1), (1, 1, 9), (3,)])
def test_fragments_are_consecutive_and_about_equal(sizes):
    layers = [[nn.Parameter(torch.empty(size))] for size in sizes]
    for fragments in range(1, len(sizes) + 1):
        parts = cut(layers, fragments)
        assert len(parts) == fragments
        assert all(parts)
        assert [layer for part in parts for layer in part] == layers
        filled = [sum(p.numel() for layer in part for p in layer) for part in parts]
        assert max(filled) <= sum(sizes) / fragments + max(sizes)


def test_a_layer_is_what_has_parameters_of_its_own():
    module = made("Transformer", 0)
    names = {p: name for name, p in module.named_parameters()}
    layers = [[names[p] for p in layer] for layer in layers_of(module)]
    assert layers[:3] == [
        ["tokens.weight"],
        ["positions.weight"],
        ["blocks.0.first_norm.weight", "blocks.0.first_norm.bias"],
    ]
    assert sorted(name for layer in layers for name in layer) == sorted(names.values())  # the tied one once
    assert [len(layer) for layer in layers_of(model_of("Frozen"))] == [2, 2]


# ---- the end, and bad input


def ended():
    rank = dist.get_rank()
    distances = []
    for kind in (partial(LocalSGD, every=5), partial(DiLoCo, every=3, delay=2)):
        module = mlp()
        with kind(module, torch.optim.SGD(module.parameters(), lr=0.1)) as trainer:
            for _ in range(4):
                module(torch.full((2, 8), rank + 1.0)).square().mean().backward()
                trainer.step()
                trainer.zero_grad()
            distances.append(trainer.consensus_distance())
        distances.append(trainer.consensus_distance())
    module = mlp()
    trainer = LocalSGD(module, torch.optim.SGD(module.parameters(), lr=0.1), every=5)
    with contextlib.suppress(KeyError), trainer:
        module(torch.full((2, 8), rank + 1.0)).square().mean().backward()
        trainer.step()
        raise KeyError  # on one rank only, perhaps: nothing may wait for the others now
    return [*distances, trainer.consensus_distance()]


def test_the_end_merges_what_is_on_its_way():
    for before, after, streamed, merged, failed in launch(ended, world_size=2).returns:
        assert min(before, streamed, failed) > 0
        assert (after, merged) == (0, 0)


def refused():
    rank = dist.get_rank()

    def of(kind=DiLoCo, module=None, **options):
        module = module or mlp()
        return kind(module, torch.optim.SGD(module.parameters(), lr=0.1), **options)

    works = {
        "H": lambda: of(LocalSGD, every=0),
        "H of DiLoCo": lambda: of(every=0),
        "half a step": lambda: of(LocalSGD, every=2.5),
        "delay": lambda: of(every=3, delay=3),
        "delay below 0": lambda: of(every=3, delay=-1),
        "fragments": lambda: of(every=3, fragments=5),
        "no fragments": lambda: of(every=3, fragments=0),
        "mixing": lambda: of(every=3, mixing=0.0),
        "mixing above 1": lambda: of(every=3, mixing=1.5),
        "bits": lambda: of(every=3, bits=2),
        "algorithm": lambda: of(LocalSGD, every=3, algorithm="rign"),
        "another H": lambda: of(LocalSGD, every=3 + rank),
        "another delay": lambda: of(every=3, delay=rank),
        "modules": lambda: of(LocalSGD, mlp(layers=4 + rank), every=1),
        "another head": lambda: steps_after(lambda trainer: replace_head(trainer.module)),
        "assigned": lambda: steps_after(
            lambda trainer: trainer.module.load_state_dict(mlp(1).state_dict(), assign=True)
        ),
        "a loss function's": lambda: steps_after(
            lambda trainer: trainer.optimizer.add_param_group({"params": torch.nn.Linear(3, 2).parameters()})
        ),
    }
    return {name: error_of(work) for name, work in works.items()}


def steps_after(change):
    module = mlp()
    trainer = LocalSGD(module, torch.optim.SGD(module.parameters(), lr=0.1), every=2)
    change(trainer)
    module(torch.ones(1, 8)).sum().backward()
    trainer.step()


def replace_head(module):
    module[3] = torch.nn.Linear(8, 8)


def test_bad_input_is_named():
    first, second = launch(refused, world_size=2).returns
    says = {
        "H": "every is 0; give a whole number of steps H between averages, from 1",
        "H of DiLoCo": "every is 0;",
        "half a step": "every is 2.5;",
        "delay": "delay is 3; give 0 to 2 steps",
        "delay below 0": "delay is -1;",
        "fragments": "fragments is 5; the 4 layers that are trained make 1 to that many",
        "no fragments": "fragments is 0;",
        "mixing": "mixing is 0.0;",
        "mixing above 1": "mixing is 1.5;",
        "bits": "bits is 2; take one of 32, 16, 8, 4",
        "algorithm": "algorithm is 'rign'; take one of",
        "another H": "every is 3 on rank 0 and 4 on rank 1",
        "another delay": "delay is 0 on rank 0 and 1 on rank 1",
        "modules": "the ranks' modules differ",
        "another head": "3.bias, 3.weight: frozen, unfrozen or replaced since the LocalSGD was made; make a new one",
        "assigned": "0.bias, 0.weight, 1.bias, ",
        "a loss function's": "the optimizer steps a parameter of shape (2, 3) that the Sequential does not have",
    }
    assert first.keys() == says.keys()
    for name, text in says.items():
        assert text in first[name], name
        assert text in second[name], name
