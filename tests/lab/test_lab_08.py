"""Lab 08: what it shows, and what its claims compare with."""

import functools
import re
from unittest import mock

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.collectives import ALGORITHMS
from ringzero.costs.gossip import mixing_matrix, neighbours
from ringzero_course.lab.harness import training
from ringzero_course.lab.payloads import payloads
from ringzero_course.lab.runs import Case, Run
from ringzero_course.lab.subjects import compressed, unsynced
from ringzero_course.lab.unaided import unaided
from tests.live_notebook import text_of

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
        assert sent == compressed.sent_in_a_step(method.split(",")[0], 4, ROWS, COLUMNS, **options)
    above = {method: last for method, (*_, last) in rows.items()}
    assert above["top-k"] > 10 * above["top-k, memory"]
    assert above["PowerSGD, memory"] < 1.5 * above["DDP"]
    assert above["DDP"] < above["gossip"] < above["local SGD"]


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
    from ringzero.costs.page.overlap import data_parallel_ratio as imported_before

    with unaided("ringzero.costs"):
        with pytest.raises(RuntimeError, match="write it yourself"):
            imported_before()
        with pytest.raises(ImportError, match="write it yourself"):
            import ringzero.costs.page.memory
    import ringzero.costs.page.memory  # noqa: F401

    with pytest.raises(TypeError):
        imported_before()


# What the claims compare with.


def run_of(ranks, **options):
    return Run(Case(ranks, None, torch.float32, (), options))


def last_of(oracle, group, ranks, **options):
    """What the oracle has last in this group, on rank 0."""
    return [*oracle(run_of(ranks, **options), 0)[group].values()][-1]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_outer_optimizer_is_torchs(momentum):
    case = {"seed": 5, "lr": 0.4, "momentum": momentum, "quiet": ("", "all")}
    p = torch.nn.Parameter(unsynced.numbers((24,), 5))
    optimizer = torch.optim.SGD([p], lr=0.4, momentum=momentum, nesterov=momentum > 0)
    for turn in range(4):
        p.grad = -sum(unsynced.gradient((24,), 5, rank, turn, case["quiet"]) for rank in range(3)) / 3
        assert bool(p.grad.any()) == (turn != 1)
        optimizer.step()
        expected = last_of(unsynced.nesterov, "states", 3, rounds=turn + 1, **case)
        torch.testing.assert_close(p.detach(), expected)


def test_with_h_1_it_is_data_parallel_training():
    module, optimizer, batches = unsynced.start_of(1, 4, {})
    for batch in batches:
        optimizer.zero_grad()
        for rank in range(3):
            (training.loss_of(module, batch, rank, 3) / 3).backward()
        optimizer.step()
    vector = unsynced.end_to_end(module.parameters())
    for h, alike in ((1, True), (2, False)):
        averaged = last_of(unsynced.trained, "states", 3, seed=1, steps=4, h=h)
        assert torch.allclose(averaged, vector, atol=1e-5) is alike


@pytest.mark.parametrize("kind", ["ring", "chain", "star"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_weights_of_a_graph_are_the_librarys(kind, n):
    expected = torch.tensor(mixing_matrix(kind, n, "metropolis"), dtype=torch.float32)
    torch.testing.assert_close(torch.tensor(unsynced.weights_of(neighbours(kind, n))), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_mixed_weights_are_not_symmetric(n):
    weights = torch.tensor(unsynced.weights("mixed", n))
    torch.testing.assert_close(weights.sum(1), torch.ones(n))
    assert ((weights != 0) != (weights.T != 0)).any() or n == 1  # whom a rank sends to, and whom it hears


def test_zeros_have_both_signs_and_none_is_below_0():
    zeros = unsynced.gradient((11,), seed=1, rank=0, quiet=("all",))
    assert not zeros.any()
    assert set(torch.signbit(zeros).tolist()) == {True, False}
    assert compressed.packed_of(zeros).tolist() == [255, 7]


def test_power_iteration_comes_to_the_singular_values():
    """Of the same matrix in each step; and where there is room for all of it, after zeros at once."""
    same = functools.partial(unsynced.gradient, seed=3, step=0)
    with mock.patch.object(compressed, "gradient", lambda shape, seed, rank, step, quiet: same(shape, rank=rank)):
        found = last_of(compressed.approximated, "means", 3, shape=(10, 8), r=2, seed=3, steps=60)
    u, sizes, v = torch.linalg.svd(sum(same((10, 8), rank=rank).double() for rank in range(3)) / 3)
    torch.testing.assert_close(found, (u[:, :2] * sizes[:2]) @ v[:2], atol=1e-4, rtol=0)
    exact = last_of(compressed.approximated, "means", 1, shape=(4, 6), r=4, seed=3, steps=2, quiet=("all",))
    torch.testing.assert_close(exact, unsynced.gradient((4, 6), 3, 0, 1).double())


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_bytes_are_those_of_the_rings(n):
    """Of a ring all-reduce and a ring all-gather, summed over ranks: shares need not be equal."""
    bytes_of = compressed.sent_in_a_step
    numel = 7 * 9
    reduced = sum(ALGORITHMS["all_reduce"]["ring"](n).bytes_sent(numel, 4).tolist())
    assert n * bytes_of("DDP", n, 7, 9) == pytest.approx(reduced)
    assert n * bytes_of("local SGD", n, 7, 9, h=5) == pytest.approx(reduced / 5)
    gathered = sum(ALGORITHMS["all_gather"]["ring"](n).bytes_sent(n * 2 * 6, 4).tolist())  # 6 indices, 6 numbers each
    assert n * bytes_of("top-k", n, 7, 9, k=6) == gathered
    assert bytes_of("signs", n, 7, 9) == (n - 1) * 8
