"""Ratios of communication to computation, and compression, against times and sizes put together from other formulas."""

import pytest

from ringzero.costs import alpha_beta as ab
from ringzero.costs import compression, overlap
from ringzero.costs import transformer as tf
from ringzero.costs.coefficients import COEFFICIENTS

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
    forward, backward = tf.forward_flops(size, TOKENS) / PEAK, tf.backward_flops(size, TOKENS) / PEAK
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


@pytest.mark.parametrize(("gated", "squares"), [(True, 16), (False, 12)])
def test_pipeline_parallel(gated, squares):
    layers, tokens = 3, 100
    products = tf.layer_matmuls(1, tokens, HIDDEN, 40, gated=gated)
    stage = layers * sum(tf.matmul_flops(*shape) for name, *shape in products if name not in ("scores", "values"))
    ratio = overlap.pipeline_parallel_ratio(PEAK, BANDWIDTH, HIDDEN, layers, 2, squares)
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
    layers = overlap.min_layers_for_pipeline(PEAK, BANDWIDTH, n)
    assert overlap.pipeline_parallel_ratio(PEAK, BANDWIDTH, n, layers) == pytest.approx(1)


def test_very_many_ranks():
    least = overlap.min_tokens_for_data_parallel(PEAK, BANDWIDTH)
    assert least == pytest.approx(PEAK / BANDWIDTH)
    assert least == pytest.approx(overlap.min_tokens_for_data_parallel(PEAK, BANDWIDTH, 10**9))
    assert overlap.min_tokens_for_data_parallel(0.5, 0.25) == 2


def test_one_bit_adam():
    assert [compression.one_bit_adam_volume_reduction(w) for w in (0, 1)] == [16, 1]
    assert compression.one_bit_adam_volume_reduction(0.2, bits=1) == 1
    assert compression.one_bit_adam_volume_reduction(0.5, bits=32) == pytest.approx(64 / 33)


def test_resnet18_is_the_one_of_the_papers():
    shapes = compression.resnet18_cifar10_shapes()
    assert len(shapes) == 62
    assert sum(compression._numel(shape) for shape in shapes) == 11_173_962
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
        (lambda: overlap.pipeline_parallel_ratio(PEAK, BANDWIDTH, 8, 0), "layers is 0; give"),
        (lambda: overlap.min_layers_for_pipeline(PEAK, BANDWIDTH, 8, 0), "bytes_per_element is 0; give"),
        (lambda: compression.one_bit_adam_volume_reduction(1.5), "warmup_fraction is 1.5; give the part"),
        (lambda: compression.one_bit_adam_volume_reduction(0.5, 0), "bits is 0; an uncompressed"),
        (lambda: compression.powersgd_compression_ratio([(2, 2)], 0), "rank is 0; give at least 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
