"""Gossip on real ranks against one process with N models; mixing graphs against closed forms."""

import os
import random
import re
import signal
import threading
from math import inf

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

from ringzero import launch
from ringzero.costs import gossip as costs
from ringzero.record import recorded
from ringzero.record.operation import bytes_sent
from ringzero.unsynced import graphs
from ringzero.unsynced.gossip import Gossip
from ringzero.unsynced.push_sum import PushSum
from tests import awkward
from tests.awkward import error_of, mlp, model_of
from tests.small_transformers import Gpt

STEPS = 3


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """For the oracles: two threads for each tiny operation wait for each other when other tests use the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ---- graphs

GRAPHS = {  # by the names in costs.gossip
    "ring": graphs.ring,
    "static_exponential": graphs.exponential,
    "one_peer_exponential": graphs.one_peer_exponential,
    "complete": graphs.complete,
}


def test_graphs_and_their_gaps_are_those_of_the_closed_forms():
    """Weights as in ``costs.gossip``, elementwise to 1e-15; gaps to 1e-9: there by waves, here by eigenvalues."""
    for n in (*range(1, 10), 16, 17):
        for name, make in GRAPHS.items():
            graph = make(n)
            assert (graph.world_size, graph.period) == (n, costs.period(name, n))
            for round in range(graph.period):
                matrix = costs.mixing_matrix(name, n, round=round)
                np.testing.assert_allclose(graph.weights(round), matrix, atol=1e-15, err_msg=f"{name} {n}")
                to = [graph.receivers(rank, round) for rank in range(n)]
                assert to == costs.neighbours(name, n, round=round), (name, n)
            assert graph.spectral_gap() == pytest.approx(costs.spectral_gap(name, n), abs=1e-9), (name, n)
    for shape in ((1, 5), (2, 2), (2, 3), (3, 3), (4, 5)):
        graph, n = graphs.torus(*shape), shape[0] * shape[1]
        np.testing.assert_allclose(graph.weights(0), costs.mixing_matrix("torus", n, shape=shape), atol=1e-15)
        assert graph.spectral_gap() == pytest.approx(costs.spectral_gap("torus", n, shape=shape), abs=1e-9)
    for name in ("chain", "star"):
        graph = graphs.from_neighbours(dict(enumerate(costs.neighbours(name, 7))))
        np.testing.assert_allclose(graph.weights(0), costs.mixing_matrix(name, 7, "metropolis"), atol=1e-15)
        gap = costs.spectral_gap(name, 7, "metropolis")
        assert graph.spectral_gap() == pytest.approx(gap, abs=1e-9)


def test_published_gaps():
    """Rows gossip_ring_16 and gossip_static_exponential_16 of the published numbers."""
    assert graphs.ring(16).spectral_gap() == pytest.approx(0.05074697832580888, abs=1e-9)
    assert graphs.exponential(16).spectral_gap() == pytest.approx(0.4, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: graphs.from_matrix([[0.5, 0.5], [0.5, 0.4]]), "row 1 of round 0 sums to 0.9;"),
        (lambda: graphs.from_matrix([np.eye(2), [[0.5, 0.6], [0.5, 0.5]]]), "row 0 of round 1 sums to 1.1;"),
        (lambda: graphs.from_matrix(np.eye(3)), "not connected: no model of the ranks 0 ever reaches the ranks 1, 2;"),
        (lambda: graphs.from_matrix([[1, 0], [0.5, 0.5]]), "no model of the ranks 1 ever reaches the ranks 0;"),
        (
            lambda: graphs.from_neighbours({0: [1], 1: [0], 2: [3], 3: [2]}),
            "no model of the ranks 0, 1 ever reaches the ranks 2, 3;",
        ),
        (lambda: graphs.from_matrix([[0, 1], [1, 0]]), "W[0, 0] of round 0 is 0: give each rank a weight of its own"),
        (lambda: graphs.from_matrix([[1.5, -0.5], [0, 1]]), "W[0, 1] of round 0 is -0.5;"),
        (lambda: graphs.from_matrix([[np.nan, 1], [0, 1]]), "W[0, 0] of round 0 is nan;"),
        (lambda: graphs.from_matrix([[0.5, 0.5]]), "weights have shape (1, 1, 2); give (N, N)"),
        (lambda: graphs.from_neighbours({0: [1], 1: []}), "rank 0 has neighbour 1, but rank 1 does not have 0;"),
        (lambda: graphs.from_neighbours({0: [2], 1: [0]}), "rank 0 has neighbour 2; give other ranks, of 0 to 1"),
        (lambda: graphs.from_out_neighbours({1: [0]}), "neighbours has the ranks [1];"),
        (lambda: graphs.ring(0), "world_size is 0;"),
        (lambda: graphs.torus(0, 2), "world_size is 0;"),
        (
            lambda: graphs.from_matrix([[0.9, 0.1], [0.2, 0.8]]).check_doubly_stochastic(),
            "column 0 of round 0 sums to 1.1;",
        ),
        (
            lambda: graphs.from_out_neighbours({0: [1], 1: [2], 2: [0, 1]}).check_doubly_stochastic(),
            "row 0 of round 0 sums to 0.833333333333; the weights with which a rank averages must sum to 1; PushSum",
        ),
    ],
)
def test_graphs_that_will_not_do(make, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        make()


def test_a_graph_of_an_odd_ring_mixes_without_own_weights():
    """Of three ranks that pass halves on, |lambda_2| is 1/2: own weights are asked for only where they are needed."""
    assert graphs.from_matrix((1 - np.eye(3)) / 2).spectral_gap() == pytest.approx(0.5)


# ---- training


def lopsided(n):
    """A directed graph for push-sum whose rows do not sum to 1: a cycle, and everyone sends to rank 0 as well."""
    return graphs.from_out_neighbours({rank: sorted({(rank + 1) % n, 0} - {rank}) for rank in range(n)})


METHODS = {
    "overlap, ring": (lambda n: graphs.ring(n), True),
    "after the step, one peer": (lambda n: graphs.one_peer_exponential(n), False),
    "overlap, exponential": (lambda n: graphs.exponential(n), True),
    "push-sum, one peer": (lambda n: graphs.one_peer_exponential(n), None),
    "push-sum, lopsided": (lopsided, None),
}
MODELS = [*awkward.MODELS, "Transformer"]
TRAINED = [  # each model by two methods, each method on two models or more
    (name, method)
    for number, name in enumerate(MODELS)
    for method in (list(METHODS)[number % 5], list(METHODS)[(number + 2) % 5])
]


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
    """Weight decay looks at the parameters that are stepped: so it shows whether these are averaged ones already."""
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)


def trainer_of(method, module, optimizer, n):
    graph, overlap = METHODS[method]
    if overlap is None:
        return PushSum(module, optimizer, graph(n))
    return Gossip(module, optimizer, graph(n), overlap=overlap)


def trained():
    """On a rank: every model by every method. The states, the mean model, the distance and the log."""
    rank, n = dist.get_rank(), dist.get_world_size()
    results = {}
    for name, method in TRAINED:
        module = made(name, rank)  # another one on every rank: a missing broadcast shows
        with trainer_of(method, module, optimizer_of(module), n) as trainer:
            for step in range(STEPS):
                tokens, targets = awkward.batch(step)
                awkward.loss_of(module, tokens[rank::n], targets[rank::n]).backward()
                trainer.step()
                trainer.zero_grad()
        state, distance = dict(module.state_dict()), trainer.consensus_distance()
        results[name, method] = state, trainer.average(), distance, trainer.log
    return results


class Oracle:
    """N models in one process, mixed by a matrix; ``weight[i]`` is w of push-sum, otherwise 1."""

    def __init__(self, name, n):
        self.n, self.modules = n, [made(name, 0) for _ in range(n)]
        self.optimizers = [optimizer_of(module) for module in self.modules]
        self.weight = np.ones(n)

    def step(self, step, matrix, overlap, step_z=()):
        """Ranks that ``step_z`` step the model that computes, in push-sum, too."""
        for rank, module in enumerate(self.modules):
            tokens, targets = awkward.batch(step)
            awkward.loss_of(module, tokens[rank :: self.n], targets[rank :: self.n]).backward()
        if overlap:
            self.mix(matrix)
        for rank, (module, optimizer) in enumerate(zip(self.modules, self.optimizers, strict=True)):
            self.scale(module, 1 if rank in step_z else self.weight[rank])
            optimizer.step()
            self.scale(module, self.weight[rank] if rank in step_z else 1)
            optimizer.zero_grad()
        if not overlap:
            self.mix(matrix)
            if overlap is None:
                self.weight = matrix @ self.weight
        for module, weight in zip(self.modules, self.weight, strict=True):
            self.scale(module, 1 / weight)

    @torch.no_grad()
    def scale(self, module, factor):
        for p in module.parameters():
            if p.requires_grad:
                p.mul_(factor)

    @torch.no_grad()
    def mix(self, matrix):
        for copies in zip(*(module.parameters() for module in self.modules), strict=True):
            if copies[0].requires_grad:
                together = torch.stack([p.detach().double() for p in copies])
                for p, mean in zip(copies, torch.tensordot(torch.tensor(matrix), together, 1), strict=True):
                    p.copy_(mean)

    def mean(self):
        """The mean of all states, and the root of the mean squared distance of the trained parameters to theirs."""
        states = [{k: v.double() for k, v in module.state_dict().items()} for module in self.modules]
        share = self.weight / self.weight.sum()
        mean = {k: sum(w * s[k] for w, s in zip(share, states, strict=True)) for k in states[0]}
        names = [name for name, p in self.modules[0].named_parameters() if p.requires_grad]
        squares = [sum((s[k] - mean[k]).square().sum().item() for k in names) for s in states]
        return mean, np.sqrt(np.mean(squares))


def assert_equal_states(ours, theirs, msg, within=1):
    ours, theirs = ({k: v.double() for k, v in state.items()} for state in (ours, theirs))
    torch.testing.assert_close(ours, theirs, rtol=2e-4 * within, atol=2e-5 * within, msg=lambda m: f"{msg}: {m}")


@pytest.mark.parametrize(("world_size", "device"), [(5, "cpu"), (4, "strict"), (3, "cpu"), (2, "cpu"), (1, "cpu")])
def test_ranks_train_as_n_models_in_one_process(world_size, device):
    """Within rounding: sums are taken in fp32 here and in fp64 there. The mean model has the same bits on all ranks."""
    ranks = launch(trained, world_size=world_size, device=device).returns
    for name, method in TRAINED:
        make, overlap = METHODS[method]
        graph, oracle = make(world_size), Oracle(name, world_size)
        for step in range(STEPS):
            oracle.step(step, graph.weights(step), overlap)
        mean, distance = oracle.mean()
        for rank, results in enumerate(ranks):
            state, average, consensus, log = results[name, method]
            assert_equal_states(state, oracle.modules[rank].state_dict(), (name, method, rank))
            assert_equal_states(average, mean, (name, method))
            assert all(torch.equal(average[k], v) for k, v in ranks[0][name, method][1].items())
            assert consensus == pytest.approx(distance, rel=1e-3, abs=1e-5)
            assert log == [graph.row(rank, step) for step in range(STEPS)]


# ---- how fast models come together, and what travels


def mixed(graph, kind, starts, rounds):
    """On a rank: rounds without gradients from ``starts[rank]``. The model before and after each; the distances that
    the ranks find before the first one and after the last; the weight of push-sum."""
    module = nn.Linear(*starts.shape[1:], bias=False, dtype=torch.float64)
    trainer = kind(module, torch.optim.SGD(module.parameters(), lr=0.0), graph)
    with torch.no_grad():
        module.weight.copy_(starts[dist.get_rank()].T)
    distances, models = [trainer.consensus_distance()], [module.weight.detach().clone()]
    for _ in range(rounds):
        trainer.step()
        models.append(module.weight.detach().clone())
    distances.append(trainer.consensus_distance())
    return models, distances, float(getattr(trainer, "weight", 1.0))


def consensus_distance(models):
    """Root of the mean squared distance between each rank's model and the mean model; ``models`` is (N, numel)."""
    return (models - models.mean(0)).square().sum(1).mean().sqrt().item()


def distances_of(ranks):
    """From the models that each rank had, round by round."""
    together = zip(*(models for models, _, _ in ranks), strict=True)
    return [consensus_distance(torch.stack(models).flatten(1)) for models in together]


@pytest.mark.parametrize("make", [graphs.ring, graphs.exponential, lambda n: graphs.torus(2, n // 2)])
def test_the_consensus_distance_follows_the_spectral_gap(make):
    """No round shrinks it less than |lambda_2|: that holds for these graphs, whose matrices are normal. After 20
    rounds, when other patterns are gone, five rounds shrink it by |lambda_2|^5 within a factor of 1.05."""
    graph, starts = make(6), torch.randn(6, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ranks = launch(mixed, graph, Gossip, starts, 25, world_size=6).returns
    distances, second = distances_of(ranks), 1 - costs.spectral_gap(graph.name, 6)
    assert all(after <= second * before * (1 + 1e-6) for before, after in zip(distances, distances[1:], strict=False))
    assert 1 / 1.05 <= distances[25] / distances[20] / second**5 <= 1.05
    assert 0 < distances[25] <= distances[0] * second**25 * (1 + 1e-6)
    for _, found, _ in ranks:
        assert found == pytest.approx([distances[0], distances[25]], rel=1e-6)
        assert found == ranks[0][1]


@pytest.mark.parametrize("kind", [Gossip, PushSum])
@pytest.mark.parametrize(("world_size", "device"), [(4, "cpu"), (4, "strict"), (2, "cpu")])
def test_one_peer_exponential_graphs_agree_after_log2_rounds(kind, world_size, device):
    """Bit for bit from whole numbers, whose halves and sums are exact: after k rounds on 2^k ranks, and not before."""
    graph, rounds = graphs.one_peer_exponential(world_size), world_size.bit_length() - 1
    starts = torch.randint(-99, 99, (world_size, 3, 4), generator=torch.Generator().manual_seed(1)).double()
    ranks = launch(mixed, graph, kind, starts, rounds, world_size=world_size, device=device).returns
    for models, found, weight in ranks:
        assert torch.equal(models[-1], starts.mean(0).T)
        assert (found[-1], weight) == (0.0, 1.0)
    assert min(distances_of(ranks)[:-1]) > 0


def test_push_sum_agrees_on_the_mean_where_rows_do_not_sum_to_1():
    """Without the weights, all would come to another model: the lopsided graph gives rank 0 twice its share."""
    n = 5
    graph, starts = lopsided(n), torch.randn(n, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ranks = launch(mixed, graph, PushSum, starts, 60, world_size=n).returns
    for models, (before, after), _ in ranks:
        torch.testing.assert_close(models[-1], starts.mean(0).T, rtol=1e-9, atol=1e-9)
        assert after < 1e-9 * before
    weights = [weight for _, _, weight in ranks]
    assert sum(weights) == pytest.approx(n)
    assert max(weights) > 1.3 * min(weights)


SHAPES = ((7, 5), (5, 3))  # of two layers with biases, one of fp64


def two_rounds():
    """On a rank: two rounds of each graph. The bytes of the trained parameters, and what was sent."""
    n, results = dist.get_world_size(), {}
    for name, make in GRAPHS.items():
        for kind in (Gossip, PushSum):
            module = nn.Sequential(nn.Linear(*SHAPES[0]), nn.Linear(*SHAPES[1], dtype=torch.float64))
            trainer = kind(module, torch.optim.SGD(module.parameters(), lr=0.0), make(n))
            before = len(recorded())
            for _ in range(2):
                trainer.step()
            sent = [op for op in recorded()[before:] if op.kind == "send"]
            size = sum(p.nbytes for p in module.parameters())
            results[name, kind.__name__] = size, [(op.peer, op.bytes) for op in sent], bytes_sent(sent)
    return results


@pytest.mark.parametrize("world_size", [5, 4])
def test_bytes_are_the_formulas(world_size):
    """A model is one message to each neighbour, whatever its types; push-sum's has the 8 bytes of its weight more."""
    for rank, results in enumerate(launch(two_rounds, world_size=world_size, trace=True).returns):
        for (name, kind), (size, messages, sent) in results.items():
            graph, size = GRAPHS[name](world_size), size + 8 * (kind == "PushSum")
            peers = [peer for round in range(2) for peer in graph.receivers(rank, round)]
            assert messages == [(peer, size) for peer in peers]
            assert sent == 2 * costs.gossip_bytes(name, world_size, size)[rank]


class Watched(nn.Module):
    """Notes what was recorded when its forward pass is over, and when its backward pass begins."""

    def __init__(self):
        super().__init__()
        self.layers, self.started, self.noted = mlp(), 0, {}

    def forward(self, x):
        output = self.layers(x)
        self.noted["forward"] = self.messages()
        if output.requires_grad:
            output.register_hook(self.in_backward)
        return output

    def in_backward(self, _gradient):
        self.noted["backward"] = self.messages()

    def messages(self):
        """How many messages of training have begun, and how many were waited for."""
        all_of_them = [op for op in recorded()[self.started :] if op.is_message]
        return len(all_of_them), sum(op.wait is not None for op in all_of_them)


def overlapping(overlap):
    module = Watched()
    trainer = Gossip(module, torch.optim.SGD(module.parameters(), lr=0.1), graphs.ring(4), overlap=overlap)
    module.eval()
    module.started = len(recorded())
    module(torch.ones(2, 8).requires_grad_())
    with torch.no_grad():
        module.train()(torch.ones(2, 8))
    evaluated = module.messages()
    module(torch.ones(2, 8)).sum().backward()
    trainer.step()
    return evaluated, module.noted, module.messages(), trainer.round


def test_models_travel_during_the_forward_and_the_backward_pass():
    """From the order of events. A forward pass that does not train sends nothing."""
    for evaluated, noted, after, rounds in launch(overlapping, True, world_size=4, trace=True).returns:
        assert evaluated == (0, 0)
        assert noted == {"forward": (4, 0), "backward": (4, 0)}
        assert (after, rounds) == ((4, 4), 1)
    for _, noted, after, _ in launch(overlapping, False, world_size=4, trace=True).returns:
        assert noted == {"forward": (0, 0), "backward": (0, 0)}
        assert after == (4, 4)


# ---- lost ranks


def survived(method, when, steps=6, victim=1):
    """On a rank: training in which ``victim`` dies in step 2, ``when`` says at which moment of it; or after a time."""
    rank, n = dist.get_rank(), dist.get_world_size()
    module = made("Tied", rank)
    trainer = trainer_of(method, module, optimizer_of(module), n)
    if rank == victim and isinstance(when, float):
        threading.Timer(when, os.kill, (os.getpid(), signal.SIGKILL)).start()

    def moment(now, step):
        if (rank, now, step) == (victim, when, 2):
            os.kill(os.getpid(), signal.SIGKILL)

    stepped_z = []
    for step in range(steps):
        moment("before the forward pass", step)
        tokens, targets = awkward.batch(step)
        loss = awkward.loss_of(module, tokens[rank::n], targets[rank::n])
        moment("after the forward pass", step)
        loss.backward()
        stepped_z.append(isinstance(trainer, PushSum) and trainer.steps_z)
        trainer.step()
        trainer.zero_grad()
        moment("after the step", step)
    state, lost = dict(module.state_dict()), sorted(trainer.lost)
    return state, trainer.log, lost, trainer.average(), trainer.consensus_distance(), stepped_z


MOMENTS = ("before the forward pass", "after the forward pass", "after the step")


@pytest.mark.parametrize(
    ("method", "when"),
    [*(("overlap, ring", when) for when in MOMENTS), *((method, MOMENTS[1]) for method in list(METHODS)[1:])],
)
def test_training_goes_on_without_a_lost_rank(method, when):
    """One process that takes the weights from the survivors' logs ends where they end. What a dead rank's model had as
    weight goes to a rank's own: rows still sum to 1, and push-sum loses no share of a survivor."""
    ranks = launch(survived, method, when, world_size=4, may_lose=True)
    assert ranks.lost == [1]
    check_that_survivors_end_as_their_logs_say(ranks, method, steps=6, gone_from=4)


def test_training_goes_on_when_a_rank_is_killed_at_any_moment(request):
    """``--seeds K``: K kills."""
    for seed in range(2 * request.config.getoption("seeds")):
        draw = random.Random(seed)
        method, when, victim = draw.choice(list(METHODS)), draw.uniform(0, 0.4), draw.randrange(4)
        ranks = launch(survived, method, when, 40, victim, world_size=4, may_lose=True)
        check_that_survivors_end_as_their_logs_say(ranks, method, steps=40)


def check_that_survivors_end_as_their_logs_say(ranks, method, steps, gone_from=inf):
    """After ``gone_from`` steps no survivor hears from who is lost any more. Rounding grows with ``steps``."""
    within = max(1, steps / 4)
    n = ranks.world_size
    make, overlap = METHODS[method]
    graph, oracle = make(n), Oracle("Tied", n)
    survivors = [rank for rank in range(n) if rank not in ranks.lost]
    for step in range(steps):
        matrix = graph.weights(step).copy()
        for rank in survivors:
            matrix[rank] = [ranks.returns[rank][1][step].get(peer, 0) for peer in range(n)]
        if overlap is not None:
            np.testing.assert_allclose(matrix.sum(1), 1)
        if step >= gone_from:
            assert not matrix[np.ix_(survivors, ranks.lost)].any()
            if overlap is None and (method != "push-sum, one peer" or step > gone_from):  # a send may not know yet
                np.testing.assert_allclose(matrix[survivors].sum(0)[survivors], 1)
        oracle.step(step, matrix, overlap, {rank for rank in survivors if ranks.returns[rank][5][step]})
    for rank in survivors:
        state, _, lost, *_ = ranks.returns[rank]
        assert all(value.isfinite().all() for value in state.values())
        assert_equal_states(state, oracle.modules[rank].state_dict(), rank, within)
        assert lost in ([], ranks.lost)
    if any(gone in ranks.returns[rank][1][-1] for rank in survivors for gone in ranks.lost):
        return  # it took part in all rounds, and died while the mean was made, which may contain it
    oracle.modules = [oracle.modules[rank] for rank in survivors]
    oracle.weight = oracle.weight[survivors]
    mean, distance = oracle.mean()
    for rank in survivors:
        _, _, _, average, consensus, _ = ranks.returns[rank]
        assert_equal_states(average, mean, rank, within)
        assert consensus == pytest.approx(distance, rel=1e-3 * within)


# ---- what will not do


def refused():
    rank, ring = dist.get_rank(), graphs.ring(2)

    def of(module, graph=ring, kind=Gossip, parameters=None, **options):
        return kind(module, torch.optim.SGD(parameters or module.parameters(), lr=0.1), graph, **options)

    def complex_numbers():
        module = mlp()
        module.register_parameter("wave", nn.Parameter(torch.zeros(2, dtype=torch.complex64)))
        of(module)

    def unfrozen_later():
        module = model_of("Frozen")
        trainer = of(module)
        module.frozen.requires_grad_(True)
        trainer.step()

    works = {
        "ranks": lambda: of(mlp(), graphs.ring(3)),
        "no graph": lambda: of(mlp(), "ring"),
        "columns": lambda: of(mlp(), graphs.from_matrix([[0.9, 0.1], [0.2, 0.8]])),
        "rows": lambda: of(mlp(), graphs.from_matrix([[0.9, 0.2], [0.1, 0.8]])),
        "push": lambda: of(mlp(), graphs.from_matrix([[0.9, 0.1], [0.2, 0.8]]), PushSum),
        "graphs": lambda: of(mlp(), [graphs.ring(2), graphs.from_matrix([[0.75, 0.25], [0.25, 0.75]])][rank]),
        "overlap": lambda: of(mlp(), overlap=rank == 0),
        "modules": lambda: of(mlp(width=8 + rank)),
        "complex": complex_numbers,
        "unfrozen": unfrozen_later,
        "optimizer": lambda: of(mlp(), parameters=[*mlp().parameters()]),
        "frozen": lambda: of(mlp().requires_grad_(False)),
    }
    return {name: error_of(work) for name, work in works.items()}


def test_bad_input_is_named():
    first, second = launch(refused, world_size=2).returns
    says = {
        "ranks": "<ring: 3 ranks> is for 3 ranks, the group has 2",
        "no graph": "graph is 'ring'; give a Graph, such as graphs.ring(2)",
        "columns": "column 0 of round 0 sums to 1.1",
        "rows": "row 0 of round 0 sums to 1.1; the weights with which a rank averages must sum to 1; PushSum needs",
        "push": "column 0 of round 0 sums to 1.1",
        "graphs": "graph is <ring: 2 ranks> with weights",
        "overlap": "overlap is True on rank 0 and False on rank 1",
        "modules": "the ranks' modules differ: rank 0 has 0.weight: (8, 8)",
        "complex": "wave is torch.complex64",
        "unfrozen": "frozen.bias, frozen.weight: frozen, unfrozen or replaced since the Gossip was made",
        "optimizer": "steps a parameter of shape (8, 8) that the Sequential does not have",
        "frozen": "Sequential has no parameter that requires a gradient",
    }
    assert first.keys() == says.keys()
    for name, text in says.items():
        assert text in first[name], name
        assert text in second[name], name


def with_batch_norm():
    rank = dist.get_rank()
    torch.manual_seed(rank)
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    trainer = Gossip(module, torch.optim.SGD(module.parameters(), lr=0.0), graphs.ring(3))
    module(torch.randn(8, 3, generator=torch.Generator().manual_seed(rank))).sum().backward()
    trainer.step()
    return dict(module.state_dict()), trainer.average()


def test_running_statistics_are_each_ranks_own_until_they_are_averaged():
    ranks = launch(with_batch_norm, world_size=3).returns
    states, average = [state for state, _ in ranks], ranks[0][1]
    statistics = torch.stack([state["1.running_mean"] for state in states])
    assert not torch.equal(statistics[0], statistics[1])
    torch.testing.assert_close(average["1.running_mean"], statistics.mean(0))
    assert average["1.num_batches_tracked"] == 1
