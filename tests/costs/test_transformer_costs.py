"""Parameters and FLOP of transformers, against torch modules and torch's own counters."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode

from ringzero.costs.page import transformer as tf
from tests.small_transformers import Gpt, Llama, LlamaBlock, params


def built(model, *args):
    with torch.device("meta"):  # shapes and no memory: the real sizes can be counted
        return params(model(*args))


@pytest.mark.parametrize(
    ("layers", "hidden", "vocab", "positions", "heads"), [(1, 8, 11, 5, 2), (12, 768, 50257, 1024, 12)]
)
def test_gpt_s_parameters(layers, hidden, vocab, positions, heads):
    tied = built(Gpt, layers, hidden, vocab, positions, heads)
    assert tf.gpt_params(layers, hidden, vocab, positions) == tied
    assert tf.gpt_params(layers, hidden, vocab, positions, tied_embeddings=False) == tied + vocab * hidden
    assert tf.gpt_params(layers, hidden, vocab, positions, ffn=hidden) == tied - layers * (6 * hidden**2 + 3 * hidden)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "shape", [(2, 12, 17, 20, 6, 2), (32, 4096, 32000, 11008, 32, 32), (80, 8192, 32000, 28672, 64, 8)]
)
def test_llama_s_parameters(shape, tied):
    assert tf.llama_params(*shape, tied) == built(Llama, *shape, tied)


def test_every_query_head_has_its_own_key_unless_told():
    assert tf.llama_params(2, 12, 17, 20, 6) == built(Llama, 2, 12, 17, 20, 6, 6, False)


def test_gpt_3_s_printed_rows_that_contradict_themselves():
    """XL: 24 heads of 128 are 3072, not 2048. 13B: 40 heads of 128 are 5120, not 5140. Neither splits evenly."""
    for hidden, heads in [(2048, 24), (5140, 40)]:
        with pytest.raises(ValueError, match=f"hidden is {hidden}; it must be a multiple of heads, {heads}"):
            tf.layer_flops(1, 2048, hidden, heads)
    assert tf.gpt_params(40, 5120, 50257, 2048) == pytest.approx(13e9, rel=0.02)


BATCH, SEQUENCE, HIDDEN, HEADS, VOCAB, LAYERS = 2, 24, 16, 4, 29, 3


def counted(model, *inputs, backward=False):
    with FlopCounterMode(display=False) as forward:
        out = model(*inputs)
    if not backward:
        return forward.get_total_flops()
    with FlopCounterMode(display=False) as both:
        out.sum().backward()
    return forward.get_total_flops(), both.get_total_flops()


def gpt(**block):
    torch.manual_seed(0)
    return Gpt(LAYERS, HIDDEN, VOCAB, SEQUENCE, HEADS, **block), torch.randint(VOCAB, (BATCH, SEQUENCE))


def predicted_forward():
    layer = tf.layer_flops(BATCH, SEQUENCE, HIDDEN, HEADS)
    return LAYERS * layer + tf.logits_flops(BATCH, SEQUENCE, HIDDEN, VOCAB)


def test_flops_forward_and_backward_are_those_torch_counts():
    model, ids = gpt()
    forward, backward = counted(model, ids, backward=True)
    assert forward == predicted_forward()
    assert backward == 2 * forward
    assert forward + backward == tf.model_flops(BATCH, SEQUENCE, LAYERS, HIDDEN, VOCAB)


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_flops_of_a_gated_layer_with_shared_keys(kv_heads):
    block, x = LlamaBlock(HIDDEN, HEADS, kv_heads, 40), torch.randn(BATCH, SEQUENCE, HIDDEN)
    assert counted(block, x) == tf.layer_flops(BATCH, SEQUENCE, HIDDEN, HEADS, kv_heads, 40, gated=True)


def test_attention_and_the_layer_are_the_closed_forms():
    b, s, h = BATCH, SEQUENCE, HIDDEN
    products = {name: tf.matmul_flops(*shape) for name, *shape in tf.layer_matmuls(b, s, h, HEADS)}
    assert products["scores"] + products["values"] == tf.attention_flops(b, s, h) == 4 * b * s * s * h
    assert tf.layer_flops(b, s, h, HEADS) == 24 * b * s * h * h + 4 * b * s * s * h


def test_two_flop_a_parameter_and_token():
    """2ND leaves attention out, and counts embeddings that are only looked up: for GPT-3 it is within 3 %."""
    shape = {"layers": 96, "hidden": 12288, "vocab": 50257}
    size, tokens = tf.gpt_params(positions=2048, **shape), 8 * 2048
    rule = 3 * tf.forward_flops(size, tokens)
    assert rule == 6 * size * tokens
    assert rule == pytest.approx(tf.model_flops(8, 2048, **shape), rel=0.03)


def checkpointed(model):
    """Each layer recomputed whole."""
    forwards = [block.forward for block in model.blocks]
    for block, forward in zip(model.blocks, forwards, strict=True):
        block.forward = lambda x, forward=forward: checkpoint(forward, x, use_reentrant=False)
    return model


@pytest.mark.parametrize("recomputation", ["none", "selective", "full"])
def test_what_runs_a_second_time(recomputation):
    model, ids = gpt(attention="recomputed" if recomputation == "selective" else "stored")
    model = checkpointed(model) if recomputation == "full" else model
    with set_checkpoint_early_stop(False):  # otherwise torch skips the last product, whose result nobody needs
        forward, backward = counted(model, ids, backward=True)
    again = tf.recomputed_flops(BATCH, SEQUENCE, LAYERS, HIDDEN, recomputation)
    assert (forward, backward) == (predicted_forward(), 2 * predicted_forward() + again)


def test_the_paper_s_hardware_flops():
    """Korthikanti et al. 2022: s/6h becomes s/3h. It counts attention's backward again, three times what runs."""
    step = {"batch": 4, "sequence": 2048, "layers": 48, "hidden": 6144, "vocab": 51200}
    b, s, layers, h, v = step.values()
    products = 72 * b * layers * s * h**2
    assert tf.model_flops(**step) == pytest.approx(products * (1 + s / (6 * h) + v / (12 * h * layers)), rel=1e-12)
    assert tf.hardware_flops(**step) == pytest.approx(products * (1 + s / (3 * h) + v / (12 * h * layers)), rel=1e-12)
    assert tf.hardware_flops(**step, recomputation="none") == tf.model_flops(**step)
    extra = {
        kind: tf.hardware_flops(**step, recomputation=kind) - tf.model_flops(**step) for kind in ("selective", "full")
    }
    assert extra["selective"] == pytest.approx(3 * tf.recomputed_flops(b, s, layers, h, "selective"))
    assert extra["full"] == pytest.approx(layers * (24 * b * s * h**2 + 4 * b * s**2 * h))


def test_the_22_billion_parameters_of_chapter_1():
    """Korthikanti et al., table 5: 1.42 s a step with full recomputation; selective: 1.10 s, MFU 41.5 %, HFU 43.7 %.

    The printed seconds are rounded, so the shares lie between those of 1.095 and 1.105 s.
    """
    step = {"batch": 4, "sequence": 2048, "layers": 48, "hidden": 6144, "vocab": 51200}

    def share(flops, seconds):
        return tf.utilization(flops, seconds, gpus=8, peak_flops=312e12)

    needed, full = tf.model_flops(**step), tf.hardware_flops(**step, recomputation="full")
    selective = tf.hardware_flops(**step, recomputation="selective")
    for flops, printed in ((needed, 0.415), (selective, 0.437)):
        assert share(flops, 1.105) - 0.0005 <= printed <= share(flops, 1.095) + 0.0005
    assert share(needed, 1.10) / share(needed, 1.42) == pytest.approx(1.29, abs=0.005)  # 29.0 % more throughput
    assert share(full, 1.42) == pytest.approx(share(selective, 1.10), rel=0.05)  # by HFU alike


def test_utilization():
    assert tf.utilization(3e15, seconds=2, gpus=5, peak_flops=1e15) == pytest.approx(0.3)


def test_intensity():
    """A square product of n: 2n^3 FLOP over 3n^2 elements. A vector reads a matrix for two FLOP an element."""
    assert tf.matmul_intensity(600, 600, 600, bytes_per_element=2) == pytest.approx(200)
    assert tf.matmul_intensity(1, 10**6, 10**6, bytes_per_element=4) == pytest.approx(0.5, rel=1e-5)
    assert tf.matmul_intensity(2, 3, 5, bytes_per_element=1) == 60 / (6 + 15 + 10)
    assert tf.ridge_point(989e12, 3.35e12) == pytest.approx(295, abs=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.gpt_params(0, 8, 8, 8), "layers is 0; give a number above 0"),
        (lambda: tf.gpt_params(1, 8, 8, 8, ffn=0), "ffn is 0; give a number above 0"),
        (lambda: tf.llama_params(1, 8, 8, 0, 2), "ffn is 0; give"),
        (lambda: tf.llama_params(1, 8, 8, 8, 3), "hidden is 8; it must be a multiple of heads, 3"),
        (lambda: tf.llama_params(1, 12, 8, 8, 6, 4), "kv_heads is 4; it must divide heads, 6"),
        (lambda: tf.llama_params(1, 12, 8, 8, 0), "heads is 0; give"),
        (lambda: tf.forward_flops(-1, 1), "params is -1; give"),
        (lambda: tf.layer_matmuls(0, 1, 8, 2), "batch is 0; give"),
        (lambda: tf.layer_matmuls(1, 1, 8, 2, ffn=0), "ffn is 0; give"),
        (lambda: tf.matmul_intensity(1, 0, 1), "k is 0; give"),
        (lambda: tf.matmul_intensity(1, 1, 1, 0), "bytes_per_element is 0; give"),
        (lambda: tf.ridge_point(1, 0), "memory_bandwidth is 0; give"),
        (lambda: tf.model_flops(1, 1, 1, 1, -5), "vocab is -5; give"),
        (lambda: tf.hardware_flops(1, 1, 1, 1, 1, "half"), "recomputation is 'half'; it is one of none, selective"),
        (lambda: tf.recomputed_flops(1, 1, 1, 1, "half"), "recomputation is 'half'; it is one of none, selective"),
        (lambda: tf.utilization(1, float("nan"), 1, 1), "seconds is nan; give"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
