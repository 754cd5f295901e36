"""Lab 08: what it shows, other right solutions, five ranks, and what its claims compare with."""

import math
import re

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.collectives import ALGORITHMS
from ringzero.lab import Check, claims, harness
from ringzero.lab.claims import compressed, local_steps, mixing
from ringzero.lab.payloads import payloads
from ringzero.lab.runs import Case, Run
from ringzero.lab.unaided import unaided
from tests.live_notebook import assert_full_marks, text_of

LAB = "08_unsynced"
ROWS, COLUMNS, KEPT, THIN, H = 24, 20, 24, 2, 8  # of the lab's problem


def table(cell):
    """``{first words: the numbers behind}`` of the lines of a table that a cell printed."""
    found = {}
    for line in text_of(cell).splitlines():
        if match := re.match(r" *(\S.*?) {2,}([-\d.,e ]+)$", line.replace("  start", "start")):
            found[match[1]] = [float(word.replace(",", "")) for word in match[2].split()]
    return found


# What the notebook shows.


def test_alone_for_longer_ends_higher(reference):
    rows = table(reference.cell_with("def less_often("))
    local = [rows[h][0] for h in ("1", "4", "16", "64")]
    assert local == sorted(local)
    assert local[-1] < 0.05 * rows["start"][0]
    assert all(rows[h][1] < rows[h][0] for h in ("1", "4", "16"))  # the outer momentum, where there are many rounds


def test_ranks_come_closer_as_predicted(reference):
    shown = text_of(reference.cell_with("def draw_distances("))
    ends = [float(number) for number in re.findall(r" to ([\d.e-]+) at 8", shown)]
    ring, ring_predicted, path, path_predicted = ends
    assert ring == pytest.approx(ring_predicted, rel=0.01)
    assert 0.4 * path_predicted < path <= path_predicted


def test_all_methods_on_one_problem(reference):
    """Bytes are exact; only what forgets stands still."""
    rows = table(reference.cell_with("def race("))
    whole = 4 * ROWS * COLUMNS
    given = {
        "DDP": whole,
        "local SGD": whole / H,
        "gossip": 2 * whole,
        "top-k": 8 * KEPT,
        "top-k, memory": 8 * KEPT,
        "signs": ROWS * COLUMNS / 8,
        "PowerSGD, memory": 4 * THIN * (ROWS + COLUMNS),
    }
    assert {method: bytes for method, (bytes, _, _) in rows.items()} == given
    options = {"h": H, "degree": 2, "k": KEPT, "r": THIN}
    for method, (_, sent, _) in rows.items():
        assert sent == claims.methods.bytes_a_step(method.split(",")[0], 4, ROWS, COLUMNS, **options)
    above = {method: last for method, (*_, last) in rows.items()}
    assert above["top-k"] > 10 * above["top-k, memory"]
    assert above["PowerSGD, memory"] < 1.5 * above["DDP"]
    assert above["DDP"] < above["gossip"] < above["local SGD"]


# Other solutions that are right get every point, too.

OTHERS = {
    "local_sgd": """
def local_sgd(model, optimizer, loss_of, batches, h):
    trained = [p for p in model.parameters() if p.requires_grad]
    for start in range(0, len(batches), h):
        for batch in batches[start : start + h]:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
        vector = torch.nn.utils.parameters_to_vector(trained).detach() / dist.get_world_size()
        dist.all_reduce(vector, async_op=True).wait()
        torch.nn.utils.vector_to_parameters(vector, trained)
""",
    "OuterStep": """
class OuterStep:
    def __init__(self, parameters, lr, momentum):
        self.parameters, self.lr, self.momentum = parameters, lr, momentum
        self.start, self.velocity = self.vector(), None

    def vector(self):
        return torch.nn.utils.parameters_to_vector(self.parameters).detach().clone()

    def step(self):
        mean = self.vector()
        dist.all_reduce(mean)
        change = self.start - mean / dist.get_world_size()
        self.velocity = change if self.velocity is None else self.momentum * self.velocity + change
        self.start = self.start - self.lr * change - self.lr * self.momentum * self.velocity
        torch.nn.utils.vector_to_parameters(self.start.clone(), self.parameters)
""",
    "metropolis": """
def metropolis(neighbours):
    degrees, n = [len(near) for near in neighbours], len(neighbours)
    w = torch.zeros(n, n, dtype=torch.float64)
    for r, near in enumerate(neighbours):
        for s in near:
            w[r, s] = 1 / (1 + max(degrees[r], degrees[s]))
    return tuple(tuple(row) for row in (w + torch.diag(1 - w.sum(1))).tolist())


def gap(weights):
    w = torch.tensor(weights, dtype=torch.float64)
    return 1 - torch.linalg.svdvals(w - 1 / len(w))[0]
""",
    "gossip": """
def gossip(x, weights):
    r, n = dist.get_rank(), dist.get_world_size()
    mixed = x * weights[r][r]
    for step in range(1, n):
        right, left = (r + step) % n, (r - step) % n
        together, theirs = [], torch.zeros_like(x)
        if weights[right][r]:
            together.append(dist.P2POp(dist.isend, x.clone(), right))
        if weights[r][left]:
            together.append(dist.P2POp(dist.irecv, theirs, left))
        if together:
            for work in dist.batch_isend_irecv(together):
                work.wait()
        mixed = mixed + weights[r][left] * theirs
    return mixed
""",
    "top_k_mean": """
def top_k_mean(vector, k):
    n, k = dist.get_world_size(), min(k, vector.numel())
    _, places = torch.sort(vector.square(), descending=True, stable=True)
    places = places[:k]
    both = torch.cat([places.to(torch.int32), vector[places].view(torch.int32)])
    gathered = torch.empty(n * 2 * k, dtype=torch.int32)
    dist.all_gather_into_tensor(gathered, both)
    mean = torch.zeros_like(vector)
    for row in gathered.view(n, 2 * k):
        mean.index_add_(0, row[:k].long(), row[k:].clone().view(torch.float32))
    return mean / n, torch.zeros_like(vector).scatter(0, places, vector[places])
""",
    "ErrorFeedback": """
class ErrorFeedback:
    def __init__(self, compress):
        self.compress, self.left = compress, None

    def mean(self, gradient):
        if self.left is None:
            self.left = torch.zeros_like(gradient)
        self.left.add_(gradient)
        mean, mine = self.compress(self.left.clone())
        self.left -= mine
        return mean
""",
    "majority": """
def pack_signs(x):
    import numpy as np

    return torch.from_numpy(np.packbits((x >= 0).cpu().numpy(), bitorder="little"))


def unpack_signs(packed, numel):
    bits = torch.stack([packed & 2**i for i in range(8)], 1).flatten()[:numel]
    return torch.where(bits > 0, torch.ones(numel), -torch.ones(numel))


def majority(x):
    packed, n = pack_signs(x), dist.get_world_size()
    everyones = torch.empty(n * len(packed), dtype=torch.uint8)
    dist.all_gather_into_tensor(everyones, packed)
    above = sum(unpack_signs(each, len(x)) > 0 for each in everyones.view(n, -1))
    return (2 * (2 * above >= n) - 1).float()
""",
    "PowerSGD": """
class PowerSGD:
    def __init__(self, q):
        self.q = q.clone()

    def mean(self, matrix):
        n = dist.get_world_size()
        p = matrix @ self.q / n
        dist.all_reduce(p)
        columns = []
        for column in p.T:
            for other in 2 * columns:
                column = column - (other @ column) * other
            columns.append(column / column.norm().clamp(min=1e-30))
        p = torch.stack(columns, 1)
        q = (matrix / n).T @ p
        dist.all_reduce(q)
        self.q = q if q.any() else self.q  # zeros would stay zeros
        return p @ q.T
""",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_right_solutions(reference, name):
    assert_full_marks(reference, name, OTHERS[name])


def test_on_five_ranks():
    """The claims of every section, on more ranks than the notebook's checks start."""
    written = solutions()
    p2p = ("send", "recv")
    todo = [
        ("local_sgd", harness.local_steps.train, "all_reduce", {"steps": 4, "h": 3}, local_steps.sends_its_own),
        (
            "OuterStep",
            harness.local_steps.outer_rounds,
            "all_reduce",
            {"lr": 0.6, "momentum": 0.7},
            local_steps.stays_alike,
        ),
        ("gossip", harness.mixing.rounds, p2p, {"kind": "kite", "rounds": 2}, mixing.sends_what_it_has),
        ("top_k_mean", harness.compressed.top_k, "all_gather", {"size": 103, "k": 7}, compressed.sends_what_it_kept),
        (
            "ErrorFeedback",
            harness.compressed.feed_back,
            "all_reduce",
            {"size": 41, "k": 3},
            compressed.returns_the_mean,
        ),
        ("majority", harness.compressed.vote, "all_gather", {"size": 77}, compressed.sends_a_bit_a_number),
        (
            "PowerSGD",
            harness.compressed.power,
            "all_reduce",
            {"shape": (9, 13), "r": 2},
            compressed.sends_its_own_product,
        ),
    ]
    for name, play, built_from, options, claim in todo:
        uses = (written["pack_signs"], written["unpack_signs"]) if name == "majority" else ()
        built_from = (built_from,) if isinstance(built_from, str) else built_from
        check = Check(written[name], 1, 5, "cpu", built_from, harness=play, uses=uses)
        check.that(name, check.run(seed=7, **options), claim)
        assert check.score() == 1, check.verdicts


def solutions():
    """What the reference's solution cells define."""
    from ringzero.grading import submission

    names = {"torch": torch, "dist": dist, "__name__": "__main__"}
    for grade_id, source in submission.reference_cells(LAB).items():
        if grade_id != "which_method":
            exec(source, names)
    return names


# No other way between ranks is open, and none of what there is already.


def ways_out():
    """What is refused meanwhile, and what works again afterwards."""
    found = {}

    def tried(way, call):
        try:
            call()
            return "open"
        except RuntimeError as error:
            return str(error)

    ways = {
        "group": lambda: dist.new_group(backend="gloo"),
        "store": lambda: dist.distributed_c10d._get_default_store().set("a", "b"),
        "own store": lambda: dist.HashStore(),
    }
    with payloads() as sent:
        found["inside"] = {way: tried(way, call) for way, call in ways.items()}
        x = torch.full((3,), float(dist.get_rank()))
        dist.all_reduce(x)
    found["after"] = {way: tried(way, call) for way, call in ways.items()}
    dist.all_reduce(x)
    return found, sent


@pytest.mark.parametrize("device", ["cpu", "strict"])
def test_ranks_talk_through_the_default_group_alone(device):
    for rank, (found, sent) in enumerate(launch(ways_out, world_size=2, device=device, trace=True).returns):
        assert all("default" in said for said in found["inside"].values()), found
        assert set(found["after"].values()) == {"open"}
        assert [x.tolist() for x in sent] == [[rank] * 3]


def test_what_is_there_already_is_refused_by_whatever_name():
    from ringzero.costs.overlap import data_parallel_ratio as imported_before

    with unaided("ringzero.costs"):
        with pytest.raises(RuntimeError, match="write it yourself"):
            imported_before()
        with pytest.raises(ImportError, match="write it yourself"):
            import ringzero.costs.memory
    import ringzero.costs.memory  # noqa: F401

    with pytest.raises(TypeError):
        imported_before()


# What the claims compare with.


def run_of(ranks, **options):
    return Run(Case(ranks, None, torch.float32, (), options))


def test_outer_steps_are_torchs_nesterov():
    run = run_of(3, seed=5, lr=0.4, momentum=0.9, rounds=4)
    start, *states = local_steps.outer_steps(run)
    p = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.SGD([p], lr=0.4, momentum=0.9, nesterov=True)
    for changes, expected in zip(local_steps._changes(run), states, strict=True):
        p.grad = -sum(changes) / 3
        optimizer.step()
        torch.testing.assert_close(p.detach(), expected)


def test_alone_with_h_1_and_plain_descent_is_data_parallel_training():
    """Only there: with an optimizer that is not linear, averaged parameters and averaged gradients differ."""
    case = {"ranks": 3, "seed": 1, "steps": 4, "h": 1}
    for optimizer, alike in (("momentum", True), ("signs", False)):
        _, averaged = harness.local_steps.alone(**case, optimizer=optimizer)
        _, gradients = harness.local_steps.alone(**case, optimizer=optimizer, averaged="gradients")
        assert torch.allclose(averaged[-1][0], gradients[-1][0], atol=1e-5) is alike


def test_the_labs_momentum_is_torchs():
    p, q = (torch.nn.Parameter(torch.tensor([1.0, -2.0])) for _ in range(2))
    ours, theirs = harness.local_steps.Momentum([p]), torch.optim.SGD([q], lr=0.2, momentum=0.9)
    for _ in range(3):
        for x, optimizer in ((p, ours), (q, theirs)):
            optimizer.zero_grad()
            x.pow(3).sum().backward()
            optimizer.step()
    assert torch.equal(p, q)


@pytest.mark.parametrize("kind", ["ring", "path", "star", "complete", "kite", "wheels", "alone"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_weights_of_a_graph(kind, n):
    """Symmetric, rows of sum 1, nothing below 0; the gap from eigenvalues, and on a ring from its formula."""
    weights = torch.tensor(harness.mixing.weights(kind, n), dtype=torch.float64)
    torch.testing.assert_close(weights, weights.T)
    torch.testing.assert_close(weights.sum(1), torch.ones(n, dtype=torch.float64))
    assert (weights >= -1e-12).all()
    near = harness.mixing.graph(kind, n)
    assert [[s for s in range(n) if s != r and weights[r][s] > 0] for r in range(n)] == near
    magnitudes = torch.linalg.eigvalsh(weights).abs().sort().values
    gap = mixing.spectral_gap(weights.tolist())
    assert gap == pytest.approx(1 - magnitudes[-2].item() if n > 1 else 1.0, abs=1e-9)
    if kind == "ring" and n > 2:
        assert gap == pytest.approx(1 - (1 + 2 * math.cos(2 * math.pi / n)) / 3)


def test_other_weights_are_what_they_say():
    for n in (1, 2, 3, 4):
        for kind in ("half left", "swap", "skip", "away", "other for each"):
            assert [sum(row) for row in harness.mixing.weights(kind, n)] == pytest.approx([1.0] * n)
    assert harness.mixing.weights("half left", 3) == [[0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]]
    assert harness.mixing.weights("swap", 2) == [[0, 1], [1, 0]]
    assert harness.mixing.weights("away", 2) == [[1.5, -0.5], [-0.5, 1.5]]
    other = torch.tensor(harness.mixing.weights("other for each", 4))
    assert not torch.allclose(other, other.T)


@pytest.mark.parametrize("size", [0, 1, 8, 13, 64])
def test_packed_signs_are_numpys(size):
    import numpy as np

    vector = harness.compressed.vector_of("normal", size, seed=1, rank=0)
    expected = np.packbits((vector >= 0).numpy(), bitorder="little")
    assert harness.compressed.packed_of(vector).tolist() == expected.tolist()


def test_zeros_have_both_signs_and_none_is_below_0():
    zeros = harness.compressed.vector_of("zeros", 11, seed=1, rank=0)
    assert not zeros.any()
    assert set(torch.signbit(zeros).tolist()) == {True, False}
    assert harness.compressed.packed_of(zeros).tolist() == [255, 7]


@pytest.mark.parametrize("kind", local_steps.INSTEAD)
def test_what_was_averaged_instead_is_named(kind):
    """Of a simulated training with each mistake the sentence is the one of that mistake, or of one that looks alike."""
    options = {"seed": 3, "steps": 5, "h": 3}
    run = run_of(3, **options)
    before, after = harness.local_steps.alone(3, **options, averaged=kind)
    run.returned = [
        {
            "began": [step[rank] for step in before],
            "end": after[-1][rank],
            "stepped": 5,
            "kept": True,
            "batches_changed": False,
        }
        for rank in range(3)
    ]
    assert local_steps.as_simulated(run).endswith(local_steps.INSTEAD[kind])


def test_the_optimizers_steps_are_counted():
    before, after = harness.local_steps.alone(2, seed=1, steps=4, h=2)
    run = run_of(2, seed=1, steps=4, h=2)
    run.returned = [
        {
            "began": [step[rank] for step in before],
            "end": after[-1][rank],
            "stepped": 4,
            "kept": True,
            "batches_changed": False,
        }
        for rank in (0, 1)
    ]
    assert local_steps.as_simulated(run) is None
    run.reports[1].stepped = 3
    assert local_steps.as_simulated(run) == "rank 1 called optimizer.step() 3 times for 4 batches"


@pytest.mark.parametrize("seed", range(12))
def test_only_with_a_memory_descent_gets_there(seed):
    """Over seeds and numbers of ranks, in one process, with the margin that the claim needs on both sides."""
    lab = harness.compressed
    for ranks, size, k in ((2, 30, 3), (3, 30, 3), (4, 40, 4)):
        targets = [lab.target_of(size, seed, rank, ranks) for rank in range(ranks)]
        best, ends = torch.stack(targets).mean(0), {}
        for remembers in (True, False):
            x, memory, keep = torch.zeros(size), [torch.zeros(size)] * ranks, lab.largest(k)
            for _ in range(60):
                vectors = [x - target + left for target, left in zip(targets, memory, strict=True)]
                kept = [keep(vector) for vector in vectors]
                if remembers:
                    memory = [vector - mine for vector, mine in zip(vectors, kept, strict=True)]
                x = x - lab.RATE * torch.stack(kept).mean(0)
            ends[remembers] = ((x - best).norm() / best.norm()).item()
        assert ends[True] < 0.8 * compressed.NEAR < 1.4 * compressed.NEAR < ends[False], (ranks, ends)


def test_power_iteration_comes_to_the_singular_values():
    run = run_of(3, shape=(10, 8), r=2, seed=3, steps=12, kind="steady")
    parts = [harness.compressed.matrix_of((10, 8), 3, 0, rank, "steady") for rank in range(3)]
    u, sizes, v = torch.linalg.svd(torch.stack(parts).double().mean(0), full_matrices=False)
    best = (u[:, :2] * sizes[:2]) @ v[:2]
    approximate = compressed.approximations(run)
    assert (approximate[-1] - best).abs().max() < 1e-6
    assert (approximate[0] - best).abs().max() > 1e-3  # one step alone does not get there


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_bytes_are_those_of_the_rings(n):
    """Of a ring all-reduce and a ring all-gather, summed over ranks: shares need not be equal."""
    bytes_of = claims.methods.bytes_a_step
    numel = 7 * 9
    reduced = sum(ALGORITHMS["all_reduce"]["ring"](n).bytes_sent(numel, 4).tolist())
    assert n * bytes_of("DDP", n, 7, 9) == pytest.approx(reduced)
    assert n * bytes_of("local SGD", n, 7, 9, h=5) == pytest.approx(reduced / 5)
    gathered = sum(ALGORITHMS["all_gather"]["ring"](n).bytes_sent(n * 2 * 6, 4).tolist())  # 6 indices, 6 numbers each
    assert n * bytes_of("top-k", n, 7, 9, k=6) == gathered
    assert bytes_of("signs", n, 7, 9) == (n - 1) * 8
