"""Ratios of communication to computation, and compression, against times and sizes put together from other formulas."""

import math

import pytest

from ringzero.costs import compression, playbook, two_level
from ringzero.costs import experts as mixtures
from ringzero.costs import zero3_with_tensor as with_tensor
from ringzero.costs.page import alpha_beta as ab
from ringzero.costs.page import overlap
from ringzero.costs.page import transformer as tf
from ringzero.costs.page.coefficients import COEFFICIENTS

PEAK, BANDWIDTH, TOKENS, HIDDEN = 989e12, 450e9, 4096, 5120


def sent(coefficients, size):
    return ab.seconds(coefficients, size, alpha=0.0, beta=1 / BANDWIDTH)


@pytest.mark.parametrize("bytes_per_element", [2, 4])
@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 512])
@pytest.mark.parametrize("size", [1e6, 7e9])
def test_data_parallel_and_zero_3_in_bytes(size, world_size, bytes_per_element):
    """Errata: no parameter count is left in the ratio, and bytes are bytes."""
    buffer = bytes_per_element * size
    gather, scatter = (COEFFICIENTS[name]["ring"](world_size) for name in ("all_gather", "reduce_scatter"))
    forward, backward = tf.forward_flops(size, TOKENS) / PEAK, 2 * tf.forward_flops(size, TOKENS) / PEAK
    ratio = overlap.data_parallel_ratio(PEAK, BANDWIDTH, TOKENS, world_size, bytes_per_element)
    assert ratio == pytest.approx(sent(COEFFICIENTS["all_reduce"]["ring"](world_size), buffer) / backward)
    ratio = overlap.zero3_ratio(PEAK, BANDWIDTH, TOKENS, world_size, bytes_per_element)
    assert ratio == pytest.approx(sent(gather, buffer) / forward)
    assert ratio == pytest.approx((sent(gather, buffer) + sent(scatter, buffer)) / backward)


@pytest.mark.parametrize("bytes_per_element", [2, 4])
@pytest.mark.parametrize("ways", [1, 2, 8])
@pytest.mark.parametrize("tokens", [1, 4096])
def test_tensor_parallel(tokens, ways, bytes_per_element):
    gathered = sent(COEFFICIENTS["all_gather"]["ring"](ways), bytes_per_element * tokens * HIDDEN)
    product = tf.matmul_flops(1, tokens, HIDDEN, HIDDEN / ways) / PEAK
    ratio = overlap.tensor_parallel_ratio(PEAK, BANDWIDTH, HIDDEN, ways, bytes_per_element)
    assert ratio == pytest.approx(gathered / product)


def test_pipeline_parallel():
    layers, tokens = 3, 100
    products = tf.layer_matmuls(1, tokens, HIDDEN, 40, gated=True)
    stage = layers * sum(tf.matmul_flops(*shape) for name, *shape in products if name not in ("scores", "values"))
    ratio = overlap.pipeline_parallel_ratio(PEAK, BANDWIDTH, HIDDEN, layers)
    assert ratio == pytest.approx(2 * tokens * HIDDEN / BANDWIDTH / (stage / PEAK))


def test_the_errata_s_formulas_for_bf16():
    n, h, layers, ways = 8, HIDDEN, 4, 8
    machine = PEAK / BANDWIDTH
    assert overlap.zero3_ratio(PEAK, BANDWIDTH, TOKENS, n) == pytest.approx((n - 1) / n * machine / TOKENS)
    assert overlap.tensor_parallel_ratio(PEAK, BANDWIDTH, h, ways) == pytest.approx((ways - 1) / h * machine)
    assert overlap.pipeline_parallel_ratio(PEAK, BANDWIDTH, h, layers) == pytest.approx(machine / (16 * h * layers))


@pytest.mark.parametrize("n", [2, 3, 64])
def test_at_the_threshold_the_ratio_is_one(n):
    tokens = overlap.min_tokens_for_data_parallel(PEAK, BANDWIDTH, n, 4)
    assert overlap.data_parallel_ratio(PEAK, BANDWIDTH, tokens, n, 4) == pytest.approx(1)
    tokens = overlap.min_tokens_for_zero3(PEAK, BANDWIDTH, n)
    assert overlap.zero3_ratio(PEAK, BANDWIDTH, tokens, n) == pytest.approx(1)
    hidden = overlap.min_hidden_for_tensor_parallel(PEAK, BANDWIDTH, n)
    assert overlap.tensor_parallel_ratio(PEAK, BANDWIDTH, hidden, n) == pytest.approx(1)


def test_very_many_ranks():
    least = overlap.min_tokens_for_data_parallel(PEAK, BANDWIDTH)
    assert least == pytest.approx(PEAK / BANDWIDTH)
    assert least == pytest.approx(overlap.min_tokens_for_data_parallel(PEAK, BANDWIDTH, 10**9))
    assert overlap.min_tokens_for_data_parallel(0.5, 0.25) == 2


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("ways", [1, 2, 8])
def test_tensor_parallel_layer_product_by_product(ways, gated):
    """Each product that is cut, from the layer's products of ``transformer``, and the two regions that they make up."""
    heads, kv_heads, ffn, tokens, width = 64, 8, 28672, 512, 8192
    shapes = {
        name: shape
        for name, *shape in tf.layer_matmuls(1, tokens, width, heads, kv_heads, ffn, gated)
        if name not in ("scores", "values")
    }
    cut = overlap.tensor_parallel_products(width, ffn, heads, kv_heads, gated)
    assert len(cut) == len(shapes) == 4
    spent = {}
    for (name, collective, columns), (ours, shape) in zip(cut, shapes.items(), strict=True):
        assert set(name.split()) == set(ours.split())
        communication = sent(COEFFICIENTS[collective]["ring"](ways), 2 * tokens * width)
        computation = tf.matmul_flops(*shape) / ways / PEAK
        ratio = overlap.tensor_parallel_ratio(PEAK, BANDWIDTH, columns, ways)
        assert ratio == pytest.approx(communication / computation), name
        spent[name] = communication, computation
    mlp = [sum(part) for part in zip(*list(spent.values())[2:], strict=True)]
    ratio = overlap.tensor_parallel_mlp_ratio(PEAK, BANDWIDTH, ffn, ways, gated)
    assert ratio == pytest.approx(mlp[0] / mlp[1])


def test_llama_70b_s_gate_and_up_on_nvlink():
    widths = {name: width for name, _, width in overlap.tensor_parallel_products(8192, 28672, 64, 8, gated=True)}
    assert overlap.tensor_parallel_ratio(PEAK, BANDWIDTH, widths["gate and up"], 8) == pytest.approx(0.27, abs=0.005)
    assert overlap.tensor_parallel_products(8192, 28672, 64)[0][2] == 3 * 8192


def test_a_layer_has_no_gate_and_no_shared_heads_unless_told():
    o, machine = overlap, (PEAK, BANDWIDTH)
    assert [name for name, _, _ in o.tensor_parallel_products(64, 256, 8)] == ["Q, K, V", "projection", "up", "down"]
    for of_mlp, arguments in [
        (o.tensor_parallel_mlp_ratio, (*machine, 28672, 8)),
        (o.min_ffn_for_tensor_parallel_mlp, (*machine, 8)),
        (o.max_tensor_parallel_degree, (*machine, 28672)),
        (mixtures.expert_parallel_ratio, (*machine, 2048, 8)),
        (mixtures.min_ffn_for_expert_parallel, machine),
        (with_tensor.mixed_ratio, (PEAK, 50e9, BANDWIDTH, TOKENS, 28672, 32, 8)),
        (with_tensor.best_zero_degree, (4e6, 28672, 512, 50e9, BANDWIDTH)),
        (with_tensor.min_tokens_for_mixed, (PEAK, 50e9, BANDWIDTH, 28672)),
    ]:
        assert of_mlp(*arguments) == of_mlp(*arguments, gated=False) != of_mlp(*arguments, gated=True)
    one_by_one = with_tensor.mixed_ratio(PEAK, 50e9, BANDWIDTH, TOKENS, 28672, 32, 8, concurrent=False)
    assert with_tensor.mixed_ratio(PEAK, 50e9, BANDWIDTH, TOKENS, 28672, 32, 8) == one_by_one


@pytest.mark.parametrize("concurrent", [False, True])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 8), (16, 1), (4, 8), (16, 2)])
def test_hybrid_sends_what_two_level_counts(nodes, ranks_per_node, concurrent):
    """Seconds of the busiest rank's bytes in the backward pass: the second all-gather and the reduction."""
    size, across_bandwidth = 1e9 * nodes * ranks_per_node, 50e9
    rows = two_level.step_traffic(size, nodes, ranks_per_node, sharding="hybrid")
    n = nodes * ranks_per_node  # all of which send as much
    across, inside = (
        sum(row[1] for row in rows[1:]) / n / across_bandwidth,
        sum(row[2] for row in rows[1:]) / n / BANDWIDTH,
    )
    backward = 2 * tf.forward_flops(size, TOKENS) / PEAK
    both = max(across, inside) if concurrent else across + inside
    machine = (PEAK, BANDWIDTH, across_bandwidth)
    ratio = overlap.hybrid_ratio(*machine, TOKENS, nodes, ranks_per_node, concurrent=concurrent)
    assert ratio == pytest.approx(both / backward)
    forward = rows[0][2] / n / BANDWIDTH / (tf.forward_flops(size, TOKENS) / PEAK)
    assert overlap.zero3_ratio(PEAK, BANDWIDTH, TOKENS, ranks_per_node) == pytest.approx(forward)
    assert ratio >= forward * (1 - 1e-12)


@pytest.mark.parametrize("world_size", [1, 2, 64])
def test_mixture_of_experts_in_bytes(world_size):
    """All experts' gradients are sent; only the products of a token's own are computed."""
    experts, active, expert = 128, 4, 3e6  # parameters of one expert
    gradients = sent(COEFFICIENTS["all_reduce"]["ring"](world_size), 2 * experts * expert)
    backward = 2 * tf.forward_flops(active * expert, TOKENS) / PEAK
    ratio = mixtures.moe_data_parallel_ratio(PEAK, BANDWIDTH, TOKENS, experts, active, world_size)
    assert ratio == pytest.approx(gradients / backward)
    least = mixtures.min_tokens_for_moe_data_parallel(PEAK, BANDWIDTH, 4, 4, world_size)
    assert least == overlap.min_tokens_for_data_parallel(PEAK, BANDWIDTH, world_size)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("ways", [1, 2, 64])
def test_expert_parallel_token_by_token(ways, gated):
    """Every rank's tokens go to k random experts, spread evenly: (Z-1)/Z of them to other ranks, and back."""
    active, ffn, tokens = 8, 2048, 640
    visits = tokens * active * (ways - 1) / ways
    communication = 2 * visits * HIDDEN * 2 / BANDWIDTH
    computation = tokens * active * (3 if gated else 2) * 2 * HIDDEN * ffn / PEAK
    ratio = mixtures.expert_parallel_ratio(PEAK, BANDWIDTH, ffn, ways, gated)
    assert ratio == pytest.approx(communication / computation)
    many = mixtures.min_ffn_for_expert_parallel(PEAK, BANDWIDTH, gated=gated)
    assert many == pytest.approx(mixtures.min_ffn_for_expert_parallel(PEAK, BANDWIDTH, 10**9, gated))


MIXED = {"zero_bandwidth": 50e9, "tensor_bandwidth": BANDWIDTH}


@pytest.mark.parametrize("concurrent", [False, True])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("zero_ranks", "ways"), [(1, 8), (64, 1), (32, 8)])
def test_mixed_in_bytes(zero_ranks, ways, gated, concurrent):
    """A layer's MLP forward: its parameters' shards are gathered by X ranks, its activations travel among T."""
    ffn, matrices = 4 * HIDDEN, 3 if gated else 2
    layer = matrices * HIDDEN * ffn
    group_tokens = TOKENS * ways  # of the T GPUs that compute the same tokens
    parameters = 2 * layer / ways * (zero_ranks - 1) / zero_ranks / MIXED["zero_bandwidth"]
    activations = 2 * 2 * group_tokens * HIDDEN * (ways - 1) / ways / MIXED["tensor_bandwidth"]
    computation = tf.forward_flops(layer, group_tokens) / ways / PEAK
    both = max(parameters, activations) if concurrent else parameters + activations
    ratio = with_tensor.mixed_ratio(
        PEAK,
        **MIXED,
        tokens=TOKENS,
        ffn=ffn,
        zero_ranks=zero_ranks,
        tensor_parallel=ways,
        gated=gated,
        concurrent=concurrent,
    )
    assert ratio == pytest.approx(both / computation)


@pytest.mark.parametrize("gated", [False, True])
def test_the_best_mixture_is_the_best_of_all(gated):
    """Against all splits of a million GPUs into factors of two; N is so large that (N-1)/N is 1 to a thousandth."""
    ffn, gpus, tokens = 1e6, 2**20, 64.0
    splits = [(2**k, 2 ** (20 - k)) for k in range(21)]
    sums = {
        x: with_tensor.mixed_ratio(PEAK, **MIXED, tokens=tokens, ffn=ffn, zero_ranks=x, tensor_parallel=t, gated=gated)
        for x, t in splits
    }
    best = with_tensor.best_zero_degree(tokens * gpus, ffn, gpus, **MIXED, gated=gated)
    nearest = min(sums, key=sums.get)
    assert 2**-0.51 < nearest / best < 2**0.51
    least = with_tensor.min_tokens_for_mixed(PEAK, **MIXED, ffn=ffn, gated=gated)
    # At that many tokens the best real split has ratio 1: both parts are half.
    x = with_tensor.best_zero_degree(least * gpus, ffn, gpus, **MIXED, gated=gated)
    parameters = overlap.min_tokens_for_zero3(PEAK, MIXED["zero_bandwidth"]) / (least * gpus / x)
    activations = gpus / x / (overlap.max_tensor_parallel_degree(PEAK, BANDWIDTH, ffn, gated) - 1)
    assert parameters == pytest.approx(0.5)
    assert activations == pytest.approx(0.5)
    assert with_tensor.min_tokens_for_mixed(PEAK, **MIXED, ffn=ffn, gated=gated, concurrent=True) == pytest.approx(
        least / 4
    )


def crossing(ratio, low, high):
    """Where ``ratio``, rising or falling, is 1, by bisection on a logarithmic scale."""
    falls = ratio(low) > ratio(high)
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if (ratio(middle) > 1) == falls else (low, middle)
    return low


@pytest.mark.parametrize("n", [2, 8, 64])
def test_thresholds_are_where_the_ratio_crosses_one(n):
    o, machine, two = overlap, (PEAK, BANDWIDTH), (PEAK, BANDWIDTH, 50e9)
    for solved, ratio in [
        (o.min_tokens_for_data_parallel(*machine, n, 4), lambda t: o.data_parallel_ratio(*machine, t, n, 4)),
        (o.min_tokens_for_zero3(*machine, n), lambda t: o.zero3_ratio(*machine, t, n)),
        (o.min_tokens_for_hybrid(*two, n, 8), lambda t: o.hybrid_ratio(*two, t, n, 8)),
        (
            mixtures.min_tokens_for_moe_data_parallel(*machine, 128, 4, n),
            lambda t: mixtures.moe_data_parallel_ratio(*machine, t, 128, 4, n),
        ),
        (o.max_data_parallel_ranks(*machine, 4e6), lambda n: o.data_parallel_ratio(*machine, 4e6 / n, n)),
        (o.min_hidden_for_tensor_parallel(*machine, n), lambda h: o.tensor_parallel_ratio(*machine, h, n)),
        (
            o.min_ffn_for_tensor_parallel_mlp(*machine, n, True),
            lambda f: o.tensor_parallel_mlp_ratio(*machine, f, n, True),
        ),
        (
            o.max_tensor_parallel_degree(*machine, 28672, True),
            lambda t: o.tensor_parallel_mlp_ratio(*machine, 28672, t, True),
        ),
        (
            mixtures.min_ffn_for_expert_parallel(*machine, n),
            lambda f: mixtures.expert_parallel_ratio(*machine, f, n),
        ),
    ]:
        assert crossing(ratio, 1.0001, 1e9) == pytest.approx(solved, rel=1e-9)


@pytest.mark.parametrize("size", [1e3, 25e6, 1e10])
def test_effective_bandwidth_is_what_nccl_tests_print(size):
    alpha, beta = 5e-6, 1 / BANDWIDTH
    for collective in ("all_reduce", "all_gather"):
        coefficients = COEFFICIENTS[collective]["ring"](8)
        bus = ab.bus_bandwidth(collective, 8, size, ab.seconds(coefficients, size, alpha, beta))
        assert overlap.effective_bandwidth(coefficients, size, alpha, beta) == pytest.approx(bus)
    assert overlap.effective_bandwidth(coefficients, size, 0.0, beta) == pytest.approx(BANDWIDTH)


def test_the_playbook_s_printed_forms_and_what_is_wrong_with_them():
    n, ways, layers, params = 8, 8, 4, 8e9
    machine = PEAK / BANDWIDTH
    printed = playbook.data_parallel_ratio(PEAK, BANDWIDTH, TOKENS, n, params)
    assert printed == pytest.approx(params / (2 * TOKENS) * (n - 1) / n * machine)
    assert printed / params * 2 == pytest.approx(overlap.data_parallel_ratio(PEAK, BANDWIDTH, TOKENS, n))
    printed = playbook.zero3_ratio(PEAK, BANDWIDTH, TOKENS, n)
    assert printed == pytest.approx(1 / (2 * TOKENS) * (n - 1) / n * machine)
    assert printed * 2 == pytest.approx(overlap.zero3_ratio(PEAK, BANDWIDTH, TOKENS, n))
    printed = playbook.tensor_parallel_ratio(PEAK, BANDWIDTH, HIDDEN, ways)
    assert printed == pytest.approx((ways - 1) / (2 * HIDDEN) * machine)
    assert printed * 2 == pytest.approx(overlap.tensor_parallel_ratio(PEAK, BANDWIDTH, HIDDEN, ways))
    printed = playbook.pipeline_parallel_ratio(PEAK, BANDWIDTH, HIDDEN, layers)
    assert printed == pytest.approx(machine / (32 * HIDDEN * layers))
    assert printed * 2 == pytest.approx(overlap.pipeline_parallel_ratio(PEAK, BANDWIDTH, HIDDEN, layers))


def test_one_bit_adam():
    assert [compression.one_bit_adam_volume_reduction(w) for w in (0, 1)] == [16, 1]


def test_resnet18_is_the_one_of_the_papers():
    shapes = compression.resnet18_cifar10_shapes()
    assert len(shapes) == 62
    assert sum(math.prod(shape) for shape in shapes) == 11_173_962
    assert [round(compression.powersgd_compression_ratio(shapes, rank)) for rank in (1, 2, 4)] == [243, 136, 72]
    assert compression.powersgd_compression_ratio(shapes, 10**9) < 1  # at full rank, two factors outweigh the matrix


def test_powersgd_counts_two_factors_a_matrix():
    """(8, 3, 2, 1) is 8 x 6; a vector is sent whole; a factor has no more columns than the matrix has rank."""
    assert compression.powersgd_compression_ratio([(8, 3, 2, 1), (5,)], 2) == 53 / (2 * 14 + 5)
    assert compression.powersgd_compression_ratio([(2, 100)], 7) == 200 / (2 * 102)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: overlap.data_parallel_ratio(PEAK, BANDWIDTH, 0, 8), "tokens is 0; give a number above 0"),
        (lambda: overlap.data_parallel_ratio(PEAK, -1, 10, 8), "bandwidth is -1; give"),
        (lambda: overlap.zero3_ratio(PEAK, BANDWIDTH, 10, 0), "world_size is 0; give at least 1 rank"),
        (lambda: overlap.min_tokens_for_zero3(0, BANDWIDTH), "peak_flops is 0; give"),
        (lambda: overlap.tensor_parallel_ratio(PEAK, BANDWIDTH, 0, 8), "hidden is 0; give"),
        (lambda: overlap.tensor_parallel_ratio(PEAK, BANDWIDTH, 8, 0), "world_size is 0; give"),
        (lambda: overlap.min_hidden_for_tensor_parallel(0, BANDWIDTH, 8), "peak_flops is 0; give"),
        (lambda: overlap.pipeline_parallel_ratio(PEAK, BANDWIDTH, 8, 0), "layers is 0; give"),
        (lambda: overlap.pipeline_parallel_ratio(0, BANDWIDTH, 8, 8), "peak_flops is 0; give"),
        (lambda: with_tensor.mixed_ratio(PEAK, 1, 1, -8, 8, 2, 2), "tokens is -8; give"),
        (lambda: overlap.pipeline_parallel_ratio(PEAK, BANDWIDTH, 8, 8, 0), "bytes_per_element is 0; give"),
        (lambda: overlap.max_data_parallel_ranks(PEAK, BANDWIDTH, 0), "batch_tokens is 0; give"),
        (lambda: overlap.hybrid_ratio(PEAK, 1, 1, 0, 2, 2), "tokens is 0; give"),
        (lambda: overlap.min_tokens_for_hybrid(PEAK, 1, 1, 2, 0), "world_size is 0; give at least 1 rank"),
        (lambda: overlap.min_tokens_for_hybrid(PEAK, 1, 0, 2, 2), "bandwidth is 0; give"),
        (lambda: mixtures.moe_data_parallel_ratio(PEAK, 1, 0, 8, 2, 2), "tokens is 0; give"),
        (
            lambda: mixtures.min_tokens_for_moe_data_parallel(PEAK, 1, 8, 9),
            "active_experts is 9; a token visits at most",
        ),
        (lambda: mixtures.min_tokens_for_moe_data_parallel(PEAK, 1, 0, 0), "active_experts is 0; give"),
        (lambda: overlap.tensor_parallel_products(64, 0, 8), "ffn is 0; give"),
        (lambda: overlap.tensor_parallel_products(64, 64, 8, 0), "kv_heads is 0; give"),
        (lambda: overlap.tensor_parallel_products(65, 64, 8), "hidden is 65; it must be a multiple of heads, 8"),
        (lambda: overlap.tensor_parallel_mlp_ratio(PEAK, 1, 0, 8), "ffn is 0; give"),
        (lambda: overlap.max_tensor_parallel_degree(PEAK, 1, 0), "ffn is 0; give"),
        (lambda: mixtures.expert_parallel_ratio(PEAK, 1, 0, 8), "ffn is 0; give"),
        (lambda: mixtures.min_ffn_for_expert_parallel(PEAK, 1, 0), "world_size is 0; give"),
        (lambda: with_tensor.mixed_ratio(PEAK, 1, 1, 0, 8, 2, 2), "tokens is 0; give"),
        (lambda: with_tensor.mixed_ratio(PEAK, 1, 1, 8, 8, 2, 0), "world_size is 0; give"),
        (lambda: with_tensor.mixed_ratio(PEAK, 1, 1, 8, 8, 0, 2), "world_size is 0; give"),
        (lambda: with_tensor.best_zero_degree(8, 8, 0, 1, 1), "gpus is 0; give"),
        (lambda: with_tensor.best_zero_degree(8, 8, 8, 0, 1), "zero_bandwidth is 0; give"),
        (lambda: with_tensor.min_tokens_for_mixed(PEAK, 1, 0, 8), "tensor_bandwidth is 0; give"),
        (lambda: with_tensor.min_tokens_for_mixed(PEAK, 1, 1, 0), "ffn is 0; give"),
        (lambda: overlap.effective_bandwidth((0, 0, 0), 8, 0, 1), "coefficients are .0, 0, 0.; give those of"),
        (lambda: overlap.effective_bandwidth((1, 1, 0), 8, -1, 1), "alpha is -1; give 0 or more"),
        (lambda: overlap.effective_bandwidth((1, 1, 0), 0, 0, 1), "size is 0; give"),
        (lambda: playbook.data_parallel_ratio(PEAK, 1, 8, 2, 0), "params is 0; give"),
        (lambda: compression.one_bit_adam_volume_reduction(1.5), "warmup_fraction is 1.5; give the part"),
        (lambda: compression.powersgd_compression_ratio([(2, 2)], 0), "rank is 0; give at least 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
