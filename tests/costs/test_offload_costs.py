"""Costs past the GPU's memory, across nodes, and of Muon: formulas against counts, simulations and real schedules."""

import inspect
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from ringzero.collectives import ALGORITHMS
from ringzero.collectives.schedule import chunk_bounds
from ringzero.costs import muon, offload, tiers, two_level
from ringzero.costs.page import memory
from ringzero.zero.quantised import FORMATS

MIXED, FULL = memory.bytes_per_param(), memory.bytes_per_param(mixed_precision=False)
PLACES = [("device", "device"), ("host", "device"), ("host", "host"), ("file", "device"), ("file", "host")]
PLACES += [("file", "file")]
EACH = st.sampled_from([MIXED, FULL, memory.bytes_per_param("sgd"), memory.bytes_per_param("momentum", False)])


# ---- bytes by tier


def inventory(shards, states, parameters, each, resident):
    """Every buffer of a rank, as {(tier, what): bytes}, with a file written in blocks of 4096."""
    parameter, gradient, optimizer = each
    mixed = parameter == 2
    held = Counter({("device", "whole parameters"): parameter * resident})
    for shard in shards:
        record = 4 * shard + (optimizer - 4 if mixed else optimizer) * shard  # the master, then the states
        in_file = record
        if mixed or states != parameters:
            if parameters == "file":
                in_file += parameter * shard
            else:
                held[parameters, "shard"] += parameter * shard
        if states == "file":
            blocks = in_file // 4096 + (in_file % 4096 > 0)
            held["file", "records"] += 2 * 4096 * blocks
            held["host", "buffers"] = max(held["host", "buffers"], 3 * 4096 * blocks)
        else:
            held[states, "master and states"] += record
        held["device" if states == "device" else "host", "gradient"] += gradient * shard
    return tuple(sum(size for (tier, _), size in held.items() if tier == name) for name, _ in tiers.TIERS)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=5), st.sampled_from(PLACES), EACH, st.integers(0, 9999))
def test_bytes_by_tier_are_those_of_all_buffers(shards, places, each, resident):
    assert tiers.tier_bytes(shards, *places, each, resident) == inventory(shards, *places, each, resident)


def test_on_the_device_it_is_zero_3_and_elsewhere_nothing_is_lost():
    for each in (MIXED, FULL):
        whole = memory.model_state_bytes(800, stage=3, world_size=8, each=each)
        assert tiers.tier_bytes(100, each=each) == (whole, 0, 0)
        assert sum(tiers.tier_bytes(100, "host", "host", each)) == whole == 1600
    assert sum(tiers.tier_bytes(100, "host", "device", FULL)) == 2000  # shard and master are two


def test_two_generations_of_rounded_records_and_three_buffers():
    """1000 numbers of 12 bytes are 3 blocks; with the 16-bit parameter 14 bytes are 4."""
    assert tiers.tier_bytes(1000, "file", "device") == (2000, 3 * 12288 + 2000, 2 * 12288)
    assert tiers.tier_bytes(1000, "file", "host") == (0, 3 * 12288 + 2000 + 2000, 2 * 12288)
    assert tiers.tier_bytes(1000, "file", "file") == (0, 3 * 16384 + 2000, 2 * 16384)


@settings(deadline=None)
@given(
    st.sampled_from(PLACES),
    EACH,
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from([(1, 1), (8, 8), (16, 8), (3, 1)]),
    st.tuples(*[st.integers(1, 10**9)] * 3),
)
def test_the_largest_model_fits_and_a_larger_one_does_not(places, each, layers, window, world, room):
    window = min(window, layers)
    world_size, in_a_node = world
    params, tier = tiers.largest_model(*room, layers, window, world_size, in_a_node, *places, each)
    assert params % layers == 0
    limits = dict(zip(("device", "host", "file"), room, strict=True))

    def overflowing(layer, layers):
        shard = int(max(np.diff(chunk_bounds(layer, world_size))))
        one = tiers.tier_bytes([shard] * layers, *places, each, resident=window * layer)
        of_a_node = (one[0], one[1] * in_a_node, one[2] * in_a_node)
        return [name for (name, limit), used in zip(limits.items(), of_a_node, strict=True) if used > limit]

    layer = params // layers
    assert overflowing(layer, layers) == []
    assert tier in overflowing(layer + 1, layers)


@settings(deadline=None)
@given(st.sampled_from(PLACES), EACH, st.integers(2, 40), st.integers(10**5, 10**8))
def test_one_layer_more_does_not_fit(places, each, layers, shard):
    """Room for exactly ``layers`` layers of ``8 * shard`` parameters on 8 ranks of a node."""
    one = tiers.tier_bytes([shard] * layers, *places, each, resident=2 * 8 * shard)
    room = one[0], 8 * one[1], 8 * one[2]
    params, _ = tiers.largest_model(*room, layers, 2, 8, 8, *places, each)
    assert layers * 8 * shard <= params < layers * 8 * (shard + 4096)  # a record may have bytes to spare
    more, _ = tiers.largest_model(*room, layers + 1, 2, 8, 8, *places, each)
    assert more // (layers + 1) < 8 * shard


def test_each_tier_more_holds_a_larger_model():
    """A DGX-2: 16 GPUs of 32 GB, 1.5 TB of memory, 28 TB of NVMe; a model of 128 layers (ZeRO-Infinity, figure 1)."""
    node = {"layers": 128, "world_size": 16, "ranks_per_node": 16}
    device, _ = tiers.largest_model(32e9, **node)
    host, host_limit = tiers.largest_model(32e9, 1.5e12, **node, states="host", parameters="host")
    file, file_limit = tiers.largest_model(32e9, 1.5e12, 28e12, **node, states="file", parameters="file")
    assert 30e9 < device < 32e9
    assert 90e9 < host < 94e9
    assert host_limit == "host"
    assert host < file < 1.1e12
    assert file_limit in ("host", "file")


# ---- a window of layers


def ticks(copies, visits, window):
    """Seconds, one at a time, until all visits are computed. ``copies[layer]``; ``visits``: (layer, seconds) in order.

    The next layer of the visits that is missing is copied as soon as there is a place: an empty one, or that of a layer
    that is not needed before it. Of those the one that is needed last makes place.
    """
    now, visit, here, copying = 0, 0, [], None
    left = visits[0][1]
    while True:
        while visit < len(visits) and visits[visit][0] in here and left == 0:  # computed
            visit += 1
            left = visits[visit][1] if visit < len(visits) else 0
        if visit == len(visits):
            return now
        order = [layer for layer, _ in visits[visit:]]
        wanted = next((i for i, layer in enumerate(order) if layer not in here), None)
        if copying is None and wanted is not None:
            spare = [layer for layer in here if layer not in order[:wanted]]
            if len(here) == window and spare:
                here.remove(max(spare, key=lambda layer: (order + [layer]).index(layer)))
            if len(here) < window:
                copying = [order[wanted], copies[order[wanted]]]
        if copying is not None and copying[1] == 0:
            here.append(copying[0])
            copying = None
            continue
        if visits[visit][0] in here and left == 0:
            continue
        now += 1
        if copying is not None:
            copying[1] -= 1
        if visits[visit][0] in here:
            left -= 1


LAYERS = st.integers(1, 6).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 5), min_size=n, max_size=n)] * 3, st.integers(1, n))
)


@given(LAYERS)
def test_a_window_takes_as_long_as_a_simulation_second_by_second(layers):
    copies, forwards, backwards, window = layers
    visits = list(enumerate(forwards))
    assert offload.window_seconds(copies, forwards, window) == ticks(copies, visits, window)
    both = visits + list(enumerate(backwards))[::-1]
    assert offload.forward_backward_seconds(copies, forwards, backwards, window) == ticks(copies, both, window)


@given(LAYERS)
def test_the_smallest_window_is_within_one_per_cent_of_the_best(layers):
    copies, forwards, backwards, _ = layers
    seconds = [
        ticks(copies, [*enumerate(forwards), *list(enumerate(backwards))[::-1]], k + 1) for k in range(len(copies))
    ]
    assert seconds == sorted(seconds, reverse=True)  # a larger window is never slower
    best = offload.smallest_window(copies, forwards, backwards)
    assert seconds[best - 1] <= 1.01 * seconds[-1]
    assert all(slower > 1.01 * seconds[-1] for slower in seconds[: best - 1])


def test_a_larger_window_hides_a_slow_layer():
    """Layer 4 takes long to copy; with more layers ahead the link has done it by then."""
    copies, forwards = [1, 1, 1, 9, 1, 1], [3] * 6
    assert [offload.window_seconds(copies, forwards, k) for k in (1, 2, 3, 6)] == [32, 25, 22, 21]
    assert offload.smallest_window(copies, forwards, [6] * 6) > 2


def test_the_window_may_cost_as_much_as_is_tolerated():
    """Eight layers whose copies of 0.1 s hide behind the 9.9 s of the layer before: one slot costs 1.4 s of 158.5."""
    layers = [0.1] * 8, [9.9] * 8, [9.9] * 8
    seconds = [offload.forward_backward_seconds(*layers, k) for k in range(1, 9)]
    assert seconds == pytest.approx([158.4 + 1.5] + [158.4 + 0.1] * 7)
    assert offload.smallest_window(*layers) == 1
    assert offload.smallest_window(*layers) == 1


# ---- weights read across the link


def test_direct_access_or_a_copy():
    """Read once behind enough work, the link costs nothing and the device holds no copy. Read often, a copy wins."""
    link, device = 50e9, 3e12
    direct = [offload.direct_access_seconds(1e9, 0.03, link, reads) for reads in (1, 2, 8)]
    copied = [offload.copied_access_seconds(1e9, 0.03, link, device, reads) for reads in (1, 2, 8)]
    assert direct == pytest.approx([0.03, 0.04, 0.16])
    assert copied == pytest.approx([0.05, 0.05, 0.05])
    assert offload.copied_access_seconds(1e9, 0.001, link, 1e12, 8) == pytest.approx(0.02 + 0.008)


# ---- how much bandwidth is enough


@given(*[st.integers(1, 4096)] * 4)
def test_intensities_are_flop_over_bytes(sequence, batch, hidden, interval):
    params = 12 * hidden**2 * 10  # ten layers
    flop = 8 * params * sequence * batch
    moved = {
        "parameters_gradients": 2 * (3 + 1) * params,
        "optimizer_states": 2 * 16 * params,
        "activation_checkpoints": 2 * 2 * sequence * batch * hidden * 10 / interval,
    }
    for kind, size in moved.items():
        got = offload.arithmetic_intensity(kind, sequence, batch, hidden, interval)
        assert got == pytest.approx(flop / size)
    got = offload.arithmetic_intensity("parameters_gradients", sequence, batch)
    assert got == pytest.approx(sequence * batch)


@given(st.floats(1, 1e5), st.floats(1e9, 1e13), st.floats(1e12, 1e15))
def test_efficiency_and_the_bandwidth_for_it(intensity, bandwidth, peak):
    flop = 1e15
    compute, copy = flop / peak, flop / intensity / bandwidth
    got = offload.efficiency(intensity, bandwidth, peak)
    assert got == pytest.approx(compute / (compute + copy))
    assert offload.required_bandwidth(intensity, got, peak) == pytest.approx(bandwidth, rel=1e-6)


# ---- across and inside nodes


def sent(schedule, ranks, ranks_per_node, bytes_of_chunk):
    """``Counter`` of bytes by (rank, "across" or "inside"); ``ranks`` are those that play the schedule."""
    bytes_sent = Counter()
    for round in schedule.rounds:
        for transfer in round:
            src, dst = ranks[transfer.src], ranks[transfer.dst]
            where = "inside" if src // ranks_per_node == dst // ranks_per_node else "across"
            bytes_sent[src, where] += bytes_of_chunk
    return bytes_sent


def played(nodes, ranks_per_node, sharding, kind, weights, gradients, secondary, shard, block):
    """What the schedules of a step send, counted transfer by transfer. ``shard``: elements of one of all ranks."""
    n = nodes * ranks_per_node
    everyone = range(n)
    in_nodes = [range(node * ranks_per_node, (node + 1) * ranks_per_node) for node in range(nodes)]
    places = [range(place, n, ranks_per_node) for place in range(ranks_per_node)]

    def size(numel, format):
        if format in FORMATS:
            return FORMATS[format](block).bytes(numel)
        return 4 * numel  # fp32

    def play(collective, name, groups, chunk):
        total = Counter()
        for group in groups:
            schedule = ALGORITHMS[collective][name](len(group))
            total += sent(schedule, group, ranks_per_node, chunk)
        return total

    if sharding == "hybrid":
        chunk = size(nodes * shard, kind)
        gather = play("all_gather", "ring", in_nodes, chunk)
        scatter = play("reduce_scatter", "ring", in_nodes, chunk)
        return gather + gather + scatter + play("all_reduce", "ring", places, size(shard, kind))
    forward = play("all_gather", "ring", [everyone], size(shard, weights or kind))
    backward = play("all_gather", "ring", in_nodes, size(nodes * shard, kind)) if secondary else forward
    if not gradients:
        return forward + backward + play("reduce_scatter", "ring", [everyone], size(shard, kind))
    first = play("all_to_all", "pairwise", in_nodes, size(nodes * shard, gradients))
    return forward + backward + first + play("all_to_all", "pairwise", places, size(shard, gradients))


PLANS = [
    {},
    {"kind": "fp32"},
    {"sharding": "hybrid"},
    {"weights": "int8"},
    {"gradients": "int4"},
    {"secondary": True},
    {"weights": "int8", "gradients": "int4", "secondary": True},
    {"weights": "bf16", "gradients": "bf16", "kind": "fp32"},
]


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 1), (1, 4), (4, 1), (2, 2), (2, 3), (3, 2), (4, 4)])
@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize(("shard", "block"), [(640, 64), (37, 16)])
def test_bytes_of_a_step_are_those_of_its_schedules(nodes, ranks_per_node, plan, shard, block):
    plan = {"sharding": "flat", "kind": "bf16", "weights": None, "gradients": None, "secondary": False, **plan}
    by_rank = played(nodes, ranks_per_node, **plan, shard=shard, block=block)
    step = {"params": shard * nodes * ranks_per_node, "nodes": nodes, "ranks_per_node": ranks_per_node, **plan}
    counted = {where: [size for (_, w), size in by_rank.items() if w == where] for where in ("across", "inside")}
    assert two_level.cross_node_bytes(**step, block=block) == sum(counted["across"])
    assert two_level.inside_node_bytes(**step, block=block) == sum(counted["inside"])


@given(st.integers(1, 10**6), st.sampled_from(sorted(FORMATS)), st.integers(1, 500).map(lambda half: 2 * half))
def test_a_payload_is_what_the_library_sends(numel, kind, block):
    assert two_level.payload_bytes(numel, kind, block) == FORMATS[kind](block).bytes(numel)
    assert two_level.payload_bytes(numel, "fp32", block) == 4 * numel


def test_an_encoded_payload_is_so_long():
    for numel in (1, 255, 256, 257, 1001):
        for kind in FORMATS:
            assert FORMATS[kind](256).encode(torch.ones(numel)).numel() == two_level.payload_bytes(numel, kind)


@pytest.mark.parametrize("zeropp", [True, False])
def test_the_papers_volumes_are_a_nodes_share_on_very_many_nodes(zeropp):
    params, nodes, ranks_per_node = 2**40, 2**14, 8
    plan = {"weights": "int8", "gradients": "int4", "secondary": True} if zeropp else {}
    rows = two_level.step_traffic(params, nodes, ranks_per_node, **plan, block=2**20)
    for name, across, _ in rows:
        volume = two_level.zeropp_cross_node_volume(name, zeropp)
        assert across / nodes / (2 * params) == pytest.approx(volume, rel=1e-3)
    assert two_level.zeropp_cross_node_volume("total", zeropp) == (0.75 if zeropp else 3)


def test_a_second_shard_is_a_node_s_model_over_its_ranks():
    assert two_level.secondary_shard_bytes(1000, 8) == 250
    assert two_level.secondary_shard_bytes(1001, 8, bytes_per_element=4) == 4 * 126


# ---- Muon


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (4, 12), (12, 4)])
def test_newton_schulz_flop_are_those_torch_counts(rows, columns):
    x = torch.randn(min(rows, columns), max(rows, columns))
    with FlopCounterMode(display=False) as counter:
        for _ in range(3):
            a = x @ x.T
            x = 3.4 * x + (-4.8 * a + 2.0 * (a @ a)) @ x
    assert counter.get_total_flops() == muon.newton_schulz_flops(rows, columns, steps=3)


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 10**6), st.integers(1, 10))
def test_the_overhead_is_never_more_than_the_bound(rows, columns, tokens, steps):
    """6 FLOP a parameter and token. For a square matrix the bound is what is added."""
    added = 100 * muon.newton_schulz_flops(rows, columns, steps) / (6 * rows * columns * tokens)
    bound = muon.flop_overhead(steps, min(rows, columns), tokens)
    assert added <= bound * (1 + 1e-12)
    if rows == columns:
        assert added == pytest.approx(bound)


def all_sent(collective, name, world_size, size):
    """Bytes that all ranks together send, ``size`` being the whole buffer. Chunks are equal."""
    schedule = ALGORITHMS[collective][name](world_size)
    return sum(len(round) for round in schedule.rounds) * size / schedule.chunks


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_muon_s_bytes_are_those_of_the_collectives(n):
    matrices = [(24, 24), (8, 48), (240, 1)]
    gradients, updates = (sum(rows * columns for rows, columns in matrices) * size for size in (4, 2))
    zero_2 = sum(all_sent(name, "ring", n, gradients) for name in ("reduce_scatter", "all_gather"))
    owner = sum(all_sent(name, "ring", n, gradients) for name in ("reduce", "broadcast"))
    there_and_back = sum(all_sent(name, "flat", n, updates) for name in ("gather", "scatter"))
    totals = {
        "owner": owner,
        "gather": zero_2 + all_sent("all_gather", "ring", n, updates),
        "all_to_all": zero_2 + there_and_back,
    }
    for way, total in totals.items():
        got = muon.muon_bytes(way, matrices, n, bytes_per_element=4, update_bytes_per_element=2)
        assert got == pytest.approx((total - zero_2, total))


@given(st.lists(st.tuples(*[st.integers(1, 50)] * 2), min_size=1, max_size=12), st.integers(1, 8))
def test_the_busiest_rank_orthogonalises_its_part(matrices, n):
    work = [muon.newton_schulz_flops(*shape) for shape in matrices]
    assert muon.muon_flops("gather", matrices, n) == sum(work)
    most = muon.muon_flops("owner", matrices, n)
    assert max(sum(work) / n, max(work)) <= most <= sum(work) / n + max(work)
    assert muon.muon_flops("all_to_all", matrices, n) == most
    if n == 1:
        assert most == sum(work)


@given(st.sampled_from([8, 64, 512]), st.integers(2, 64), st.floats(1e6, 1e11), st.floats(1e9, 1e15))
def test_seconds_are_those_of_the_bytes_and_of_the_work(side, n, link, flops):
    matrices = [(side, side)] * 7
    for way, _ in muon.WAYS:
        _, total = muon.muon_bytes(way, matrices, n)
        seconds = total / n / link + muon.muon_flops(way, matrices, n) / flops
        assert muon.muon_seconds(way, matrices, n, link, flops) == pytest.approx(seconds)


# ---- what makes no sense


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tiers.tier_bytes(8, states="disk"), "states is 'disk'; it is one of device, host, file"),
        (lambda: tiers.tier_bytes(8, "device", "host"), "parameters is 'host' and states is 'device'; place"),
        (lambda: tiers.tier_bytes([8, -1]), "a size is -1; give"),
        (lambda: tiers.tier_bytes(8, each=(0, 2, 12)), "parameter is 0; give"),
        (lambda: tiers.largest_model(1e9, layers=4, window=5), "window is 5; give 1 to 4, the number of layers"),
        (lambda: tiers.largest_model(1e9, world_size=4, ranks_per_node=8), "ranks_per_node is 8; give 1 to 4"),
        (lambda: tiers.largest_model(1e9, host_bytes=-1), "host_bytes and file_bytes are -1 and 0; give 0 or more"),
        (lambda: offload.window_seconds([1, 1], [1, 1], 0), "window is 0; give 1 to 2"),
        (lambda: offload.window_seconds([1, 1], [1, 1], 3), "window is 3; give 1 to 2"),
        (lambda: offload.window_seconds([1, 1], [1], 1), "2 copies and 1 computations; give one of each"),
        (lambda: offload.window_seconds([], [], 1), "0 copies and 0 computations; give"),
        (lambda: offload.smallest_window([1, float("nan")], [1, 1], [1, 1]), "a layer takes nan seconds; give"),
        (lambda: offload.arithmetic_intensity("gradients"), "kind is 'gradients'; it is one of parameters_grad"),
        (lambda: offload.arithmetic_intensity("optimizer_states", 2048), "batch is 0; give a number above 0"),
        (lambda: offload.required_bandwidth(1, 1, 1), "wished is 1; give an efficiency above 0 and below 1"),
        (lambda: two_level.payload_bytes(8, "int2"), "kind is 'int2'; it is one of fp32, bf16, int8, int4"),
        (lambda: two_level.cross_node_bytes(8, 2, 2, "mics"), "sharding is 'mics'; it is one of flat, hybrid"),
        (lambda: two_level.cross_node_bytes(8, 2, 2, "hybrid", secondary=True), "sharding is 'hybrid'; weights"),
        (lambda: two_level.zeropp_cross_node_volume("all_reduce"), "collective is 'all_reduce'; it is one of forw"),
        (lambda: muon.muon_bytes("local", [(2, 2)], 2), "way is 'local'; it is one of owner, gather, all_to_all"),
        (lambda: muon.muon_flops("owner", [], 2), "matrices is empty; give"),
        (lambda: muon.muon_flops("owner", [(2, 0)], 2), "columns is 0; give"),
    ],
    ids=lambda value: None if inspect.isfunction(value) else value[:20],
)
def test_what_makes_no_sense_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
