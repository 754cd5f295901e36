"""Costs of training without full synchronisation: formulas against simulations, eigenvalues and real schedules."""

import inspect
import math
import random
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ringzero.collectives import ALGORITHMS
from ringzero.costs import compression, faults, gossip, local, server, stragglers
from ringzero.unsynced.slices import cut

# ---- ranks fail


def simulated_goodput(interval, checkpoint, mtbf, restart, checkpoints=20_000, seed=0):
    """Time until so many checkpoints are written, failure by failure."""
    dice = random.Random(seed)
    clock, done, fails_at = 0.0, 0, dice.expovariate(1 / mtbf)
    needs = interval + checkpoint  # seconds until the next checkpoint, or until the restart is over
    while done < checkpoints:
        if clock + needs <= fails_at:
            clock += needs
            done += needs == interval + checkpoint
            needs = interval + checkpoint
        else:
            clock, needs = fails_at, restart
            fails_at = clock + dice.expovariate(1 / mtbf)
    return checkpoints * interval / clock


@pytest.mark.parametrize(
    ("interval", "checkpoint", "mtbf", "restart"),
    [(100, 5, 1000, 50), (1000, 100, 1000, 10), (50, 50, 400, 200), (10, 1, 1e5, 0.5)],
)
def test_goodput_is_that_of_a_simulation(interval, checkpoint, mtbf, restart):
    got = faults.goodput(interval, checkpoint, mtbf, restart)
    assert got == pytest.approx(simulated_goodput(interval, checkpoint, mtbf, restart), rel=0.01)


@given(st.floats(1e-5, 1e-2), st.floats(1e-6, 1e-3), st.floats(0, 1e-3))
def test_to_first_order_it_is_the_checkpoint_and_half_an_interval(part, interval, restart):
    times = {"interval_seconds": interval, "checkpoint_seconds": part * interval, "restart_seconds": restart}
    lost = part + interval / 2 + restart
    assert faults.goodput_first_order(**times, mtbf_seconds=1) == pytest.approx(1 - lost)
    assert faults.goodput(**times, mtbf_seconds=1) == pytest.approx(1 - lost, abs=2 * lost**2)


@given(st.floats(1e-5, 1), st.floats(1, 1e4), st.floats(0.5, 2))
def test_no_interval_is_better_to_first_order_than_young_s(checkpoint, mtbf, factor):
    best = faults.young_daly_interval(checkpoint, mtbf)
    goodput = [faults.goodput_first_order(interval, checkpoint, mtbf) for interval in (best, factor * best)]
    assert goodput[0] >= goodput[1]


@given(st.floats(1e-4, 0.9), st.floats(1, 1e5))
def test_daly_s_interval_is_near_the_best_of_all(part, mtbf):
    """Found by ternary search: ``goodput`` rises to one maximum."""
    checkpoint, low, high = part * mtbf, 0.0, 3 * mtbf
    for _ in range(100):
        one, other = (2 * low + high) / 3, (low + 2 * high) / 3
        if faults.goodput(one, checkpoint, mtbf) < faults.goodput(other, checkpoint, mtbf):
            low = one
        else:
            high = other
    got = faults.daly_interval(checkpoint, mtbf)
    assert got == pytest.approx(low, rel=0.02)
    young = faults.young_daly_interval(checkpoint, mtbf)
    assert abs(got - low) < abs(young - low)  # what the higher order is for


def test_a_checkpoint_that_takes_longer_than_a_failure_to_come():
    assert faults.daly_interval(20, 10) == 10
    assert faults.goodput(1, 1e6, 10) == 0
    assert faults.goodput_first_order(1, 2, 10) == 0


def test_many_gpus_fail_often():
    """6.5 failures in 1000 node-days: a node fails every 1000/6.5 days, 128 nodes so many times more often."""
    assert faults.job_mttf(8, 8, 6.5) == pytest.approx(24 * 1000 / 6.5)
    assert faults.job_mttf(1024, 8, 6.5) == pytest.approx(24 * 1000 / 6.5 / 128)


def simulated_quorum(ranks, mtbf, step, reconfigure, replacement, pauses, failures=20_000, seed=0):
    """Rank by rank. ``pauses``: whether failures and replacements stand still while all wait."""
    dice = random.Random(seed)
    events = [(dice.expovariate(1 / (ranks * mtbf)), False) for _ in range(ranks)]  # (when, whether it joins)
    clock = useful = waited = 0.0
    there, failed = ranks, 0
    while failed < failures:
        rank = min(range(ranks), key=lambda r: events[r])
        when, joins = events[rank]
        begin = clock if pauses else max(clock, waited)  # what comes while all wait is dealt with in the same wait
        useful += max(0.0, when - begin) * there / ranks
        clock = max(clock, when)
        wait = 0 if joins else step + reconfigure
        if pauses:
            waited += wait
        else:
            waited = max(waited, clock) + wait  # until when all wait
        there += 1 if joins else -1
        failed += not joins
        after = dice.expovariate(1 / (ranks * mtbf)) if joins else replacement
        events[rank] = (clock + after, not joins)
    return useful / (clock + waited if pauses else clock)


@pytest.mark.parametrize("pauses", [True, False], ids=["exact", "first order"])
@pytest.mark.parametrize(
    ("ranks", "step", "reconfigure", "replacement"), [(4, 2, 5, 300), (8, 10, 0, 0), (3, 1, 1, 2000)]
)
def test_goodput_of_a_quorum_is_that_of_a_simulation(ranks, step, reconfigure, replacement, pauses):
    mtbf = 1000
    got = faults.goodput_with_quorum(ranks, mtbf, step, reconfigure, replacement)
    simulated = simulated_quorum(ranks, mtbf, step, reconfigure, replacement, pauses)
    assert got == pytest.approx(simulated, rel=0.006)


def test_a_quorum_beats_a_restart():
    """16384 GPUs, 6.5 failures in 1000 node-days, checkpoints of a minute, restarts of five."""
    mtbf = 3600 * faults.job_mttf(16384, 8, 6.5)
    with_restarts = faults.goodput(faults.daly_interval(60, mtbf), 60, mtbf, 300)
    assert with_restarts < 0.85 < 0.99 < faults.goodput_with_quorum(2048, mtbf, 10, 20, 600)


# ---- gossip


def sends(topology, i, j, n, shape):
    """Whether rank i sends to rank j, by the definition of the graph."""
    if i == j:
        return False
    if topology == "hypercube":
        return bin(i ^ j).count("1") == 1
    if topology == "star":
        return 0 in (i, j)
    if topology in ("torus", "grid"):
        at, to = np.unravel_index(i, shape), np.unravel_index(j, shape)
        apart = [abs(a - b) for a, b in zip(at, to, strict=True)]
        if topology == "torus":
            apart = [min(distance, side - distance) for distance, side in zip(apart, shape, strict=True)]
        return sum(apart) == 1
    further, back = (j - i) % n, (i - j) % n
    powers = {2**k for k in range(20)}
    return {
        "ring": 1 in (further, back),
        "chain": abs(i - j) == 1,
        "complete": True,
        "static_exponential": further in powers,
    }[topology]


def defined(topology, n, weights, shape):
    """W of its definition, a numpy array."""
    sent = np.array([[sends(topology, j, i, n, shape) for j in range(n)] for i in range(n)])  # [receiver, sender]
    degree = sent.sum(1)
    if weights == "uniform":
        matrix = sent / (1 + degree[:, None])
    else:
        matrix = sent / (1 + np.maximum(degree[:, None], degree[None]))
    return matrix + np.diag(1 - matrix.sum(1))


STATIC = [name for name, _ in gossip.TOPOLOGIES if name != "one_peer_exponential"]
EVEN = [(1, 1), (1, 2), (1, 3), (2, 2), (1, 5), (2, 4), (3, 4), (3, 5), (4, 4), (6, 6)]
SHAPES = {math.prod(shape): shape for shape in EVEN}
GRAPHS = [(t, n, SHAPES[n]) for t in STATIC for n in SHAPES if t != "hypercube" or n & (n - 1) == 0]
GRAPHS += [(t, 24, shape) for t in ("torus", "grid") for shape in [(24,), (2, 3, 4), (2, 12), (4, 1, 6), (2, 2, 6)]]


@pytest.mark.parametrize(("topology", "n", "shape"), GRAPHS)
def test_weights_and_gap_are_those_of_the_definition(topology, n, shape):
    given = shape if topology in ("torus", "grid") else None
    for weights, _ in gossip.WEIGHTS:
        matrix = defined(topology, n, weights, shape)
        assert gossip.mixing_matrix(topology, n, weights, given) == pytest.approx(matrix, abs=1e-15)
        magnitudes = np.sort(np.abs(np.linalg.eigvals(matrix)))
        gap = 1 - magnitudes[-2] if n > 1 else 1
        assert gossip.spectral_gap(topology, n, weights, given) == pytest.approx(gap, abs=1e-12)
        if np.allclose(matrix, matrix.T):
            assert gossip.matrix_gap(matrix.tolist()) == pytest.approx(gap, abs=1e-12)
        if n in (12, 16):  # the two most even sides are taken
            assert gossip.spectral_gap(topology, n, weights) == gossip.spectral_gap(topology, n, weights, given)
    to = gossip.neighbours(topology, n, given)
    assert to == [[j for j in range(n) if sends(topology, i, j, n, shape)] for i in range(n)]
    assert gossip.gossip_bytes(topology, n, 10, given) == [10 * len(others) for others in to]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 8, 12, 16])
def test_one_peer_a_round(n):
    """W is (1 + shift) / 2. With a power of two all agree after a period, and not before."""
    total = np.eye(n)
    period = gossip.period("one_peer_exponential", n)
    assert period == math.ceil(math.log2(n))
    for round in range(period):
        assert not np.allclose(total, 1 / n)
        matrix = gossip.mixing_matrix("one_peer_exponential", n, round=round + 3 * period)
        shifted = np.roll(np.eye(n), 2**round, axis=0)  # rank i receives from i - 2^round
        assert matrix == pytest.approx((np.eye(n) + shifted) / 2)
        total = matrix @ total
    assert np.allclose(total, 1 / n) == (n & (n - 1) == 0)
    second = np.sort(np.abs(np.linalg.eigvals(total)))[-2]
    gap = gossip.spectral_gap("one_peer_exponential", n)
    assert (1 - gap) ** period == pytest.approx(second, abs=1e-12)
    assert gossip.gossip_bytes("one_peer_exponential", n, 7) == [7] * n


DISTANCES = [(topology, n) for topology, _ in gossip.TOPOLOGIES for n in (2, 5, 8, 12)]
DISTANCES = [(topology, n) for topology, n in DISTANCES if topology != "hypercube" or n in (2, 8)]


@pytest.mark.parametrize(("topology", "n"), DISTANCES)
def test_whole_periods_shrink_the_distance_by_the_gap_or_more_and_in_the_end_by_the_gap(topology, n):
    values = np.random.default_rng(0).standard_normal((n, 3))
    matrices = [gossip.mixing_matrix(topology, n, "metropolis", round=r) for r in range(4)]
    period, left = gossip.period(topology, n), 1 - gossip.spectral_gap(topology, n, "metropolis")
    distances = [np.linalg.norm(values - values.mean(0))]
    for round in range(60):
        values = matrices[round % period] @ values
        distances.append(np.linalg.norm(values - values.mean(0)))
        whole = (round + 1) // period * period
        assert distances[-1] <= distances[0] * left**whole * (1 + 1e-9) + 1e-12
    if distances[-1] > 1e-9:  # of the first rounds' faster patterns nothing is left
        assert (distances[60] / distances[60 - 4 * period]) ** (1 / (4 * period)) == pytest.approx(left, rel=0.03)


def slowest(matrix):
    """The eigenvector of a symmetric W's second largest eigenvalue, of norm 1.

    No other eigenvalue but 1 has a larger magnitude here; the torus of 16 has 0.6 and -0.6, and only 0.6 lets steps of
    one direction add up.
    """
    values, vectors = np.linalg.eigh(matrix)
    assert values[-2] >= np.sort(np.abs(values))[-2] - 1e-9
    return vectors[:, -2]


@pytest.mark.parametrize(("topology", "n"), [("ring", 8), ("torus", 16), ("chain", 5)])
def test_the_worst_updates_reach_the_steady_distance(topology, n):
    matrix = gossip.mixing_matrix(topology, n, "metropolis")
    gap, worst = gossip.spectral_gap(topology, n, "metropolis"), slowest(matrix)
    x = np.zeros(n)
    for _ in range(2000):
        x = matrix @ (x + 0.3 * worst)
    assert np.linalg.norm(x) == pytest.approx(gossip.steady_consensus_distance(gap, 0.3))

    signs = np.random.default_rng(1).choice([-1, 1], 20_000)
    x, squares = np.zeros(n), 0.0
    for sign in signs:
        x = matrix @ (x + 0.3 * sign * worst)
        squares += x @ x
    assert math.sqrt(squares / len(signs)) == pytest.approx(
        gossip.steady_consensus_distance(gap, 0.3, independent=True), rel=0.03
    )


def test_an_own_matrix_in_which_two_groups_never_meet():
    assert gossip.matrix_gap([[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]) == pytest.approx(
        0, abs=1e-9
    )
    assert gossip.matrix_gap([[0, 1], [1, 0]]) == pytest.approx(0, abs=1e-9)  # they swap for ever
    assert gossip.spectral_gap("ring", 1) == gossip.matrix_gap([[1.0]]) == 1


# ---- a parameter server

LAYOUTS = [(n, s, kind) for n in range(1, 6) for s in range(1, n + 1) for kind in (False, True) if s + kind <= n]


@pytest.mark.parametrize(("n", "servers", "dedicated"), LAYOUTS)
def test_bytes_of_a_server_are_those_of_its_messages(n, servers, dedicated):
    sizes = server.slice_sizes(1003, servers, slice_bytes=400)
    workers = range(servers if dedicated else 0, n)
    sent, received = [0] * n, [0] * n

    def message(source, target, size):
        if source != target:
            sent[source] += size
            received[target] += size

    for number, size in enumerate(sizes):
        for worker in workers:
            for _ in range(3):
                message(worker, number % servers, 24 + size)
                message(number % servers, worker, 24 + size)
    assert server.exchanged_bytes(sizes, n, servers, dedicated, steps=3) == list(zip(sent, received, strict=True))


@pytest.mark.parametrize(("n", "servers"), [(n, s) for n in range(1, 9) for s in range(1, n + 1)])
def test_without_headers_it_is_the_schedule_of_a_parameter_server(n, servers):
    numel = 7 * servers
    by_rank = server.exchanged_bytes([28] * servers, n, servers, header_bytes=0)
    schedule = ALGORITHMS["all_reduce"]["parameter_server"](n, servers=servers)
    assert [sent for sent, _ in by_rank] == schedule.bytes_sent(numel, 4).tolist()
    if n == servers:
        assert [sent for sent, _ in by_rank] == compression.dense_bytes(numel, n)


@given(st.integers(1, 5000), st.integers(1, 8), st.floats(1, 1e5), st.sampled_from([2, 4]))
def test_slices_are_those_of_the_server_that_runs(numel, servers, slice_bytes, element_bytes):
    slices = cut(numel, element_bytes, servers, slice_bytes)
    assert [each.server for each in slices] == [i % servers for i in range(len(slices))]
    sizes = server.slice_sizes(numel, servers, slice_bytes, element_bytes)
    assert sizes == [(each.stop - each.start) * element_bytes for each in slices]


@pytest.mark.parametrize(("n", "servers", "dedicated"), [layout for layout in LAYOUTS if layout[0] > 1])
def test_an_exchange_takes_what_the_busiest_link_carries(n, servers, dedicated):
    """Pushes are over before the first answer, so each way through the busiest link is waited for."""
    size = 600 * servers
    pushes, answers = np.zeros(n), np.zeros(n)  # through a rank's link, out and in; answers the other way round
    for worker in range(servers if dedicated else 0, n):
        for serves in range(servers):
            if worker != serves:
                pushes[worker] += 624
                answers[serves] += 624
    assert server.exchange_seconds(size, n, 10, servers, dedicated) == pytest.approx(2 * max([*pushes, *answers]) / 10)


@pytest.mark.parametrize(("n", "servers", "dedicated"), [layout for layout in LAYOUTS if layout[0] > 1])
def test_very_small_slices_take_what_a_link_carries_one_way(n, servers, dedicated):
    size = 600 * servers
    by_rank = server.exchanged_bytes([600] * servers, n, servers, dedicated, header_bytes=0)
    got = server.exchange_seconds(size, n, 10, servers, dedicated, slices=10**6, header_bytes=0)
    assert got == pytest.approx(max(sent for sent, _ in by_rank) / 10, rel=1e-5)


@pytest.mark.parametrize("slices", [1, 2, 5])
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_slices_overlap_on_their_way_in_and_out(workers, slices):
    """One dedicated server, second by second: a message a second in and one out, slices in order."""
    came, answered, waiting, now = [0] * slices, 0, 0, 0
    while answered < workers * slices:
        now += 1
        answered += waiting > 0
        waiting -= waiting > 0
        if min(came) < workers:
            number = next(i for i in range(slices) if came[i] < workers)
            came[number] += 1
            waiting += workers if came[number] == workers else 0
    got = server.exchange_seconds(slices, workers + 1, 1, dedicated=True, slices=slices, header_bytes=0)
    assert got == pytest.approx(now)


@pytest.mark.parametrize("dedicated", [False, True])
def test_more_servers_take_less_time(dedicated):
    one, two, four = (
        server.exchange_seconds(4e6, 8 + s * dedicated, 1e9, s, dedicated, header_bytes=0) for s in (1, 2, 4)
    )
    assert (one / two, one / four) == pytest.approx((2, 4))


def step_by_ticks(forwards, backwards, sizes, slice_bytes, order):
    """Seconds of a step, one at a time; a link carries a byte a second. Numbers are whole."""
    layers = range(len(sizes))
    if slice_bytes is None:
        slices = {layer: [sizes[layer]] if sizes[layer] else [] for layer in layers}
    else:
        slices = {
            layer: [min(slice_bytes, sizes[layer] - start) for start in range(0, sizes[layer], slice_bytes)]
            for layer in layers
        }
    todo = [(layer, "backward", backwards[layer]) for layer in reversed(layers)]
    todo += [(layer, "forward", forwards[layer]) for layer in layers]
    queues, on_link = {"up": [], "down": []}, {"up": None, "down": None}
    back = dict.fromkeys(layers, 0)
    made = now = 0
    left = todo[0][2]

    def settle():
        """All that ends now, and what begins then."""
        nonlocal made, left
        moved = True
        while moved:
            moved = False
            if todo and left == 0 and (todo[0][1] == "backward" or back[todo[0][0]] == len(slices[todo[0][0]])):
                layer, what, _ = todo.pop(0)
                if what == "backward":
                    for size in slices[layer]:
                        queues["up"].append([layer, made, size])
                        made += 1
                left = todo[0][2] if todo else 0
                moved = True
            for way in ("up", "down"):
                if on_link[way] is not None and on_link[way][3] == 0:
                    layer, number, size, _ = on_link[way]
                    on_link[way] = None
                    if way == "up":
                        queues["down"].append([layer, number, size])
                    else:
                        back[layer] += 1
                    moved = True
        for way in ("up", "down"):
            if on_link[way] is None and queues[way]:
                first = min(queues[way]) if order == "priority" else queues[way][0]
                queues[way].remove(first)
                on_link[way] = [*first, first[2]]

    settle()
    while todo:
        now += 1
        runs = todo[0][1] == "backward" or back[todo[0][0]] == len(slices[todo[0][0]])
        left -= runs and left > 0
        for way in ("up", "down"):
            if on_link[way] is not None:
                on_link[way][3] -= 1
        settle()
    return now


LAYERS = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.integers(0, 5), min_size=n, max_size=n)] * 2,
        st.lists(st.integers(0, 9), min_size=n, max_size=n),
    )
)


@settings(deadline=None)
@given(LAYERS, st.sampled_from([None, 1, 2, 4]), st.sampled_from(["backward", "priority"]))
def test_a_scheduled_step_takes_as_long_as_second_by_second(layers, slice_bytes, order):
    got = server.scheduled_step_seconds(*layers, 1, order, slice_bytes, header_bytes=0)
    assert got == step_by_ticks(*layers, slice_bytes, order)


def test_the_first_layer_first():
    """VGG's shape: the last layer has most parameters, and its gradients are ready first."""
    layers = [1.0] * 8, [2.0] * 8, [1e6] * 7 + [20e6]
    in_order, sliced, by_need = (
        server.scheduled_step_seconds(*layers, 1.2e6, order, slice_bytes)
        for order, slice_bytes in [("backward", None), ("backward", 1e5), ("priority", 1e5)]
    )
    assert by_need < sliced < in_order
    assert in_order / by_need > 1.3
    with_large_heads = server.scheduled_step_seconds(*layers, 1.2e6, "priority", 1e5, header_bytes=100_000)
    assert with_large_heads > 1.2 * by_need


# ---- some ranks are slow


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(0, 5))
def test_waiting_for_some_or_for_all(seconds, backups):
    assume(backups < len(seconds))
    ended = [sum(each <= now for each in seconds) for now in range(61)]
    assert stragglers.backup_seconds(seconds, backups) == ended.index(
        next(count for count in ended if count >= len(seconds) - backups)
    )
    assert stragglers.synchronous_seconds(seconds) == max(seconds)
    time = 10 * math.lcm(*seconds)
    gradients = sum(time // each for each in seconds)
    assert stragglers.asynchronous_seconds(seconds) == pytest.approx(time / (gradients / len(seconds)))


RANK_SECONDS = st.tuples(st.integers(1, 4), st.integers(1, 7)).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(1, 5), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)


def staleness_by_ticks(rank_seconds, bound):
    """When each rank has done all its steps, second by second."""
    ranks, steps = range(len(rank_seconds)), len(rank_seconds[0])
    done, left, ends, now = [0] * len(ranks), [0] * len(ranks), [None] * len(ranks), 0
    while None in ends:
        slowest = min(done)
        for rank in ranks:
            if left[rank] == 0 and done[rank] < steps and done[rank] - slowest <= bound:
                left[rank] = rank_seconds[rank][done[rank]]
        now += 1
        for rank in ranks:
            if left[rank]:
                left[rank] -= 1
                if left[rank] == 0:
                    done[rank] += 1
                    if done[rank] == steps:
                        ends[rank] = now
    return ends


@given(RANK_SECONDS, st.sampled_from([0, 1, 2, 1.5, 5, math.inf]))
def test_bounded_staleness_takes_as_long_as_second_by_second(rank_seconds, bound):
    got = stragglers.bounded_staleness_seconds(rank_seconds, bound)
    assert got == staleness_by_ticks(rank_seconds, bound)
    if bound == 0:
        assert max(got) == sum(max(column) for column in zip(*rank_seconds, strict=True))
    if bound == math.inf:
        assert got == [sum(seconds) for seconds in rank_seconds]


def test_a_rank_that_is_always_slow_sets_the_pace():
    ends = stragglers.bounded_staleness_seconds([[1.0] * 1000, [3.0] * 1000], bound=4)
    assert ends == [2986, 3000]  # the fast rank's last step begins when the other has done 995


@given(RANK_SECONDS, st.integers(1, 8))
def test_local_sgd_waits_after_its_steps(rank_seconds, inner_steps):
    now = [0] * len(rank_seconds)
    for step in range(len(rank_seconds[0])):
        now = [end + seconds[step] for end, seconds in zip(now, rank_seconds, strict=True)]
        if (step + 1) % inner_steps == 0:
            now = [max(now)] * len(now)
    got = stragglers.local_sgd_seconds(rank_seconds, inner_steps)
    assert got * len(rank_seconds[0]) == pytest.approx(max(now))


@pytest.mark.parametrize(("n", "backups", "inner_steps"), [(1, 0, 1), (4, 1, 3), (16, 3, 8), (64, 0, 2)])
def test_exponential_tails(n, backups, inner_steps):
    tails = np.random.default_rng(0).exponential(0.5, (20_000, inner_steps, n))
    waited = np.sort(tails[:, 0], axis=1)[:, n - backups - 1]
    expected = stragglers.expected_step_seconds(n, 2, 0.5, backups)
    assert expected == pytest.approx(2 + waited.mean(), abs=4 * waited.std() / 141)
    sums = tails.sum(1).max(1)
    expected = stragglers.expected_local_sgd_seconds(n, 2, 0.5, inner_steps)
    assert expected == pytest.approx(2 + sums.mean() / inner_steps, abs=4 * sums.std() / inner_steps / 141)
    assert stragglers.expected_asynchronous_seconds(2, 0.5) == 2.5


@pytest.mark.parametrize("n", [1, 2, 64, 4096])
def test_one_inner_step_is_a_synchronous_step_and_one_rank_waits_for_none(n):
    one = stragglers.expected_local_sgd_seconds(n, 0, 1, 1)
    assert one == pytest.approx(stragglers.expected_step_seconds(n, 0, 1), rel=1e-6)
    assert stragglers.expected_local_sgd_seconds(1, 0, 1, n) == pytest.approx(1, rel=1e-6)


# ---- local SGD


@pytest.mark.parametrize("bits", [32, 16, 4])
@pytest.mark.parametrize(("inner_steps", "fragments"), [(1, 1), (12, 1), (12, 3), (12, 12), (3, 12), (4, 7)])
def test_bytes_of_local_sgd_are_those_of_its_all_reduces(inner_steps, fragments, bits):
    n, numel = 4, 840
    fragment = ALGORITHMS["all_reduce"]["ring"](n).bytes_sent(numel // fragments, 1)[0] * bits / 8
    in_step = [0.0] * inner_steps
    for number in range(fragments):
        in_step[number % inner_steps] += fragment
    average, peak = local.streaming_bytes(numel, n, inner_steps, fragments, bits)
    assert (average, peak) == pytest.approx((sum(in_step) / inner_steps, max(in_step)))
    assert local.local_sgd_bytes(numel, n, inner_steps, bits) == pytest.approx(average)
    reduction = local.low_communication_reduction(inner_steps, 32, bits)
    assert local.local_sgd_bytes(numel, n, 1) / average == pytest.approx(reduction)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("numel", [1, 256, 1000, 1027])
def test_an_outer_step_sends_parts_and_sums(n, numel):
    """32 bits: a ring. Fewer: N-1 parts to their ranks, and the own sum to N-1 ranks; parts padded to equal length."""
    ring = ALGORITHMS["all_reduce"]["ring"](n).bytes_sent(numel, 4)
    assert local.outer_step_bytes(numel, n) == pytest.approx(ring.mean())
    part = math.ceil(numel / n)
    assert local.outer_step_bytes(numel, n, 16) == 2 * (n - 1) * 2 * part
    scales = 4 * math.ceil(part / 64)
    assert local.outer_step_bytes(numel, n, 8, 64) == 2 * (n - 1) * (part + scales)
    assert local.outer_step_bytes(numel, n, 4, 64) == 2 * (n - 1) * (math.ceil(part / 2) + scales)


def test_the_bandwidth_that_hides_a_fragment():
    bandwidth = local.streaming_bandwidth(1e9, 8, 100, 0.5, fragments=20, bits=4, overlap_steps=5)
    _, peak = local.streaming_bytes(1e9, 8, 100, 20, 4)
    assert peak / bandwidth == pytest.approx(5 * 0.5)


# ---- compression

WORLDS, SIZES = [1, 2, 3, 4, 5], [1, 7, 100, 1001]


def sent(collective, algorithm, n, chunk_bytes):
    """Bytes by rank of a schedule, its chunks being of ``chunk_bytes(number)``."""
    totals = [0] * n
    for round in ALGORITHMS[collective][algorithm](n).rounds:
        for transfer in round:
            totals[transfer.src] += chunk_bytes(transfer.chunk)
    return np.array(totals, dtype=int)


def voted(n, packed):
    """An all-to-all of the packed chunks, of one size and with an fp32 weight each, and an all-gather of verdicts."""
    size = math.ceil(packed / n) + 4
    there = sent("all_to_all", "pairwise", n, lambda _: size)
    return (there + sent("all_gather", "ring", n, lambda _: size)).tolist()


@pytest.mark.parametrize(("n", "numel"), list(product(WORLDS, SIZES)))
def test_bytes_of_each_method_are_those_of_its_collectives(n, numel):
    for ratio in (0.001, 0.07, 0.5, 1):
        k = max(1, math.ceil(round(ratio * numel, 9)))
        assert compression.kept(numel, ratio) == k
        pairs = sent("all_gather", "ring", n, lambda _, k=k: k * (4 + 4)).tolist()
        assert compression.top_k_bytes(numel, n, ratio) == pairs
        values = ALGORITHMS["all_reduce"]["ring"](n).bytes_sent(k, 4).tolist()
        assert compression.random_k_bytes(numel, n, ratio) == values
    for bits, block in [(2, 64), (4, 256), (5, 100), (8, 512)]:
        message = math.ceil(numel * bits / 8) + 4 * math.ceil(numel / block)
        assert compression.qsgd_message_bytes(numel, bits, block) == message
        gathered = sent("all_gather", "ring", n, lambda _, message=message: message).tolist()
        assert compression.qsgd_bytes(numel, n, bits, block) == gathered
    packed = math.ceil(numel / 8)
    assert compression.sign_bytes(numel, n) == compression.one_bit_adam_bytes(numel, n) == voted(n, packed)
    dense = ALGORITHMS["all_reduce"]["ring"](n).bytes_sent(numel, 4).tolist()
    assert compression.dense_bytes(numel, n) == compression.one_bit_adam_bytes(numel, n, warmup=True) == dense


@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize("rank", [1, 2, 9])
def test_bytes_of_powersgd_are_two_all_reduces(n, rank):
    shapes = [(10, 6), (10,), (3, 4, 5), (), (1, 8)]
    ring = ALGORITHMS["all_reduce"]["ring"](n)
    used = [min(rank, 6), min(rank, 3), 1]
    left, right = 10 * used[0] + 3 * used[1] + used[2], 6 * used[0] + 20 * used[1] + 8 * used[2]
    total = sum(ring.bytes_sent(numel, 4) for numel in (left + 10 + 1, right))
    assert compression.powersgd_bytes(shapes, n, rank) == total.tolist()


def test_powersgd_sends_the_published_ratio_of_a_resnet():
    shapes = compression.resnet18_cifar10_shapes()
    dense = compression.dense_bytes(sum(math.prod(shape) for shape in shapes), 4)
    for rank, ratio in [(1, 243), (2, 136), (4, 72)]:
        got = sum(dense) / sum(compression.powersgd_bytes(shapes, 4, rank))
        assert got == pytest.approx(compression.powersgd_compression_ratio(shapes, rank), rel=1e-3)
        assert round(got) == ratio


# ---- what makes no sense


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: faults.young_daly_interval(0, 10), "checkpoint_seconds is 0; give a number above 0"),
        (lambda: faults.goodput(10, -1, 10), "checkpoint_seconds is -1; give 0 or more"),
        (lambda: faults.goodput_with_quorum(0, 10, 1), "world_size is 0; give at least 1 rank"),
        (lambda: faults.goodput_with_quorum(2, 10, 1, -1), "reconfigure_seconds is -1; give 0 or more"),
        (lambda: faults.job_mttf(8, 0, 6.5), "gpus_per_node is 0; give"),
        (lambda: gossip.spectral_gap("circle", 4), "topology is 'circle'; it is one of ring, torus"),
        (lambda: gossip.spectral_gap("ring", 4, "equal"), "weights is 'equal'; it is one of uniform, metropolis"),
        (lambda: gossip.spectral_gap("ring", 0), "world_size is 0; give at least 1 rank"),
        (lambda: gossip.spectral_gap("hypercube", 6), "nodes is 6; a hypercube has a power of two"),
        (lambda: gossip.spectral_gap("torus", 6, shape=(2, 4)), r"shape is \(2, 4\); give sides whose product is"),
        (lambda: gossip.neighbours("grid", 4, shape=(-2, -2)), r"shape is \(-2, -2\); give sides"),
        (lambda: gossip.matrix_gap([[0.5, 0.5], [0.4, 0.5]]), "row 1 sums to 0.9; give weights whose sum is 1"),
        (lambda: gossip.matrix_gap([[0.5, 0.5]]), "row 0 has 2 weights; give 1"),
        (lambda: gossip.matrix_gap([[1.5, -0.5], [-0.5, 1.5]]), "row 0 has the weight -0.5; give weights of 0"),
        (lambda: gossip.matrix_gap([[0.5, 0.5], [1, 0]]), r"weight \[1\]\[0\] is 1 and \[0\]\[1\] 0.5; give a symm"),
        (lambda: gossip.steady_consensus_distance(0, 1), "gap is 0; give a spectral gap above 0"),
        (lambda: gossip.steady_consensus_distance(0.5, -1), "step_distance is -1; give 0 or more"),
        (lambda: gossip.gossip_bytes("ring", 4, 0), "size is 0; give"),
        (lambda: server.exchanged_bytes([8], 4, servers=5), "servers is 5; with 4 ranks it is 1 to 4"),
        (lambda: server.exchanged_bytes([8], 4, 4, True), "servers is 4; with 4 ranks, of which one must train, it"),
        (lambda: server.exchanged_bytes([8], 4, steps=-1), "steps is -1; give 0 or more"),
        (lambda: server.exchange_seconds(8, 4, 0), "bandwidth is 0; give"),
        (lambda: server.slice_sizes(8, slice_bytes=0), "slice_bytes is 0; give"),
        (lambda: server.scheduled_step_seconds([1], [1], [1], 1, "fifo"), "order is 'fifo'; it is one of backward, "),
        (lambda: server.scheduled_step_seconds([1], [1, 1], [1], 1), "have 1, 2 and 1 layers; give one number each"),
        (lambda: server.scheduled_step_seconds([1], [-1], [1], 1), "a layer's seconds or bytes are below 0; give"),
        (lambda: stragglers.backup_seconds([1, 1], 2), "backups is 2; with 2 ranks it is 0 to 1"),
        (lambda: stragglers.synchronous_seconds([]), "seconds is empty; give"),
        (lambda: stragglers.asynchronous_seconds([1, 0]), "a rank's step takes 0 seconds; give more than 0"),
        (lambda: stragglers.bounded_staleness_seconds([[1]], -1), "bound is -1; give the steps that a rank may be"),
        (lambda: stragglers.bounded_staleness_seconds([], 0), "rank_seconds is empty; give"),
        (lambda: stragglers.local_sgd_seconds([[1], [1, 2]], 1), "rank 1 has 2 steps and rank 0 1; give all ranks"),
        (lambda: stragglers.local_sgd_seconds([[1]], 0), "inner_steps is 0; ranks average after at least 1 step"),
        (lambda: stragglers.expected_step_seconds(4, -1, 1), "fixed_seconds is -1; give 0 or more"),
        (lambda: local.low_communication_reduction(0), "inner_steps is 0; ranks average after at least 1 step"),
        (lambda: local.streaming_bytes(8, 2, 4, 0), "fragments is 0; give at least 1"),
        (lambda: local.outer_step_bytes(8, 2, 3), "bits is 3; it is one of 32, 16, 8, 4"),
        (lambda: local.streaming_bandwidth(8, 2, 10, 1, 5, 32, 3), "overlap_steps is 3; with 10 inner steps and 5"),
        (lambda: compression.kept(8, 0), "ratio is 0; give the part of the values that is sent, above 0 and at mo"),
        (lambda: compression.random_k_bytes(8, 2, 1.1), "ratio is 1.1; give the part"),
        (lambda: compression.qsgd_bytes(8, 2, 1), r"bits is 1; give a whole number from 2 \(a sign and a level\)"),
        (lambda: compression.powersgd_bytes([(2, 2)], 2, 0), "rank is 0; give at least 1"),
        (lambda: compression.sign_bytes(0, 2), "numel is 0; give"),
        (lambda: compression.dense_bytes(8, 0), "world_size is 0; give at least 1 rank"),
    ],
    ids=lambda value: None if inspect.isfunction(value) else value[:20],
)
def test_what_makes_no_sense_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
