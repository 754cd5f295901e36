"""Throughput, batches, days and dollars against counted products; a pipeline's bubble against schedules played out."""

import itertools

import pytest

from ringzero.costs import pipeline
from ringzero.costs.page import throughput
from ringzero.costs.page import transformer as tf

LLAMA = {"layers": 32, "hidden": 4096, "ffn": 14336, "heads": 32, "kv_heads": 8}


def products(batch, sequence, model):
    """FLOP of a step's products, one by one: forward, and twice that backward."""
    shape = {name: size for name, size in model.items() if name not in ("layers", "vocab")}
    rows = tf.layer_matmuls(batch, sequence, **shape, gated=True)
    flops = {name: model["layers"] * 3 * tf.matmul_flops(*product) for name, *product in rows}
    flops["head"] = 3 * tf.matmul_flops(1, batch * sequence, model["hidden"], model["vocab"])
    return flops


def test_flops_of_a_token_are_those_of_the_products():
    model, batch, sequence = LLAMA | {"vocab": 128256}, 2, 8192
    flops = products(batch, sequence, model)
    params = throughput.matmul_params(**model, gated=True)
    token = throughput.model_flops_per_token(params, 32, 4096, sequence)
    assert token * batch * sequence == sum(flops.values())
    masked = {name: value / 2 if name in ("scores", "values") else value for name, value in flops.items()}
    causal = throughput.model_flops_per_token(params, 32, 4096, sequence, causal=True)
    assert causal * batch * sequence == sum(masked.values())
    # Computed twice: the forward third of all of it.
    again = throughput.hardware_flops_per_token(params, 32, 4096, sequence) * batch * sequence
    assert again == pytest.approx(sum(flops.values()) * 4 / 3)


def test_what_is_multiplied_is_all_but_norms_and_the_input_embedding():
    all_params = tf.llama_params(**LLAMA, vocab=128256)
    norms, embedding = (2 * 32 + 1) * 4096, 128256 * 4096
    assert throughput.matmul_params(**LLAMA, vocab=128256, gated=True) == all_params - norms - embedding
    gpt = throughput.matmul_params(12, 768, 50257)  # MLP of width 4h, no gate: 12 h^2 a layer
    assert gpt == 12 * 12 * 768**2 + 50257 * 768


def test_a_gpt_s_conventions_agree():
    """6 P + 12 L h s with the matrices as P is the step of Korthikanti et al.; Narayanan's adds the forward pass."""
    shape = {"layers": 48, "hidden": 6144, "vocab": 51200}
    token = throughput.model_flops_per_token(throughput.matmul_params(**shape), 48, 6144, 2048)
    assert token * 4 * 2048 == tf.model_flops(batch=4, sequence=2048, **shape)
    b, s, layers, h, v = 4, 2048, 48, 6144, 51200
    printed = 96 * b * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))  # equation 3
    assert tf.hardware_flops(4, 2048, **shape, recomputation="full") == pytest.approx(printed)


def test_utilization_is_flops_over_peak():
    assert throughput.utilization(6e9, 1e6, gpus=8, peak_flops=1e15) == pytest.approx(0.75)
    assert throughput.utilization(2.0, 3.0, 1, 6.0) == 1


def test_a_run_that_costs_what_its_report_says():
    """DeepSeek-V3 (arXiv 2412.19437, table 1): 2.788M GPU-hours at $2 are $5.576M; 37B active of 671B, 14.8T tokens."""
    params, tokens, gpus, peak = 37e9, 14.8e12, 2048, 989e12
    mfu = 6 * params * tokens / (2.788e6 * 3600 * peak)
    cost = throughput.run_cost(params, tokens, gpus, peak, mfu, 2)
    assert cost["gpu_hours"] == pytest.approx(2.788e6)
    assert cost["dollars"] == pytest.approx(5.576e6)
    assert cost["days"] == pytest.approx(56.7, abs=0.05)
    assert cost["seconds"] == pytest.approx(cost["days"] * 24 * 60 * 60)
    assert cost["tokens_per_second_per_gpu"] == pytest.approx(cost["tokens_per_second"] / gpus)
    assert cost["exaflop"] == pytest.approx(3285600)
    token = throughput.utilization(6 * params, cost["tokens_per_second"], gpus, peak)
    assert token == pytest.approx(mfu)


def test_llama_s_hours_agree_with_its_mfu():
    """Chapter 0: 30.84M H100 hours are 35 % of the peak by 6 FLOP; with attention, in 90 % of the hours, 38 to 43 %."""
    params, tokens, of_all_hours = 405e9, 15.6e12, 30.84e6 * 3600 * 989e12
    assert 6 * params * tokens / of_all_hours == pytest.approx(0.345, abs=0.001)
    with_attention = throughput.model_flops_per_token(params, 126, 16384, 8192)
    assert with_attention * tokens / of_all_hours == pytest.approx(0.374, abs=0.001)
    assert 0.38 < with_attention * tokens / of_all_hours / 0.9 < 0.43


def test_a_free_run_takes_the_same_time():
    paid, free = (throughput.run_cost(1e9, 1e9, 1, 1e15, 0.5, dollars) for dollars in (3, 0))
    assert free == paid | {"dollars": 0}


# ---- a pipeline, played out


def order(schedule, stages, micro_batches, position, virtual_stages):
    """("F" or "B", micro-batch, piece) in the order in which a stage runs them."""
    work = list(range(micro_batches * virtual_stages))

    def pass_of(kind, k):
        piece = k // stages % virtual_stages
        micro_batch = k // (stages * virtual_stages) * stages + k % stages
        return kind, micro_batch, piece if kind == "F" else virtual_stages - 1 - piece

    if virtual_stages == 1:
        forward, backward = ([(kind, k, 0) for k in work] for kind in "FB")
        warmup = stages - 1 - position
    else:
        forward, backward = ([pass_of(kind, k) for k in work] for kind in "FB")
        warmup = 2 * (stages - 1 - position) + (virtual_stages - 1) * stages
    if schedule == "gpipe":
        return forward + backward
    warmup = min(warmup, len(work))
    steady = itertools.chain.from_iterable(zip(forward[warmup:], backward, strict=False))
    return [*forward[:warmup], *steady, *backward[len(work) - warmup :]]


def played(schedule, stages, micro_batches, virtual_stages=1, forward=1.0, backward=2.0):
    """``(seconds, kept)``: of the whole step, and the micro-batches that each stage keeps at the most."""
    orders = [order(schedule, stages, micro_batches, s, virtual_stages) for s in range(stages)]
    seconds = {"F": forward / virtual_stages, "B": backward / virtual_stages}
    last = stages * virtual_stages - 1
    ends, clocks, nexts = {}, [0.0] * stages, [0] * stages
    while any(n < len(o) for n, o in zip(nexts, orders, strict=True)):
        moved = False
        for s in range(stages):
            while nexts[s] < len(orders[s]):
                kind, micro_batch, piece = orders[s][nexts[s]]
                place = piece * stages + s
                before = ("F", micro_batch, place - 1) if kind == "F" else ("B", micro_batch, place + 1)
                if kind == "B" and place == last:
                    before = ("F", micro_batch, place)
                needed = 0.0 if before[2] < 0 else ends.get(before)
                if needed is None:
                    break
                clocks[s] = max(clocks[s], needed) + seconds[kind]
                ends[kind, micro_batch, place] = clocks[s]
                nexts[s] += 1
                moved = True
        assert moved, "the schedule is stuck"
    kept = [max(itertools.accumulate(1 if kind == "F" else -1 for kind, _, _ in o)) / virtual_stages for o in orders]
    return max(clocks), kept


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (2, 2), (4, 8), (4, 3), (8, 32)])
def test_the_bubble_is_that_of_the_schedule(schedule, stages, micro_batches):
    took, kept = played(schedule, stages, micro_batches)
    work = 3.0 * micro_batches
    assert pipeline.bubble_over_ideal(stages, micro_batches) == pytest.approx((took - work) / work)
    assert pipeline.bubble_fraction(stages, micro_batches) == pytest.approx((took - work) / took)
    for position in range(stages):
        ours = pipeline.micro_batches_kept(stages, micro_batches, position)
        assert kept[position] == (micro_batches if schedule == "gpipe" else ours)


@pytest.mark.parametrize(("stages", "micro_batches", "pieces"), [(2, 4, 2), (4, 8, 2), (4, 4, 3), (4, 16, 4)])
def test_interleaving_shortens_the_bubble_and_keeps_more(stages, micro_batches, pieces):
    took, kept = played("1f1b", stages, micro_batches, pieces)
    work = 3.0 * micro_batches
    assert pipeline.bubble_over_ideal(stages, micro_batches, pieces) == pytest.approx((took - work) / work)
    assert pipeline.bubble_fraction(stages, micro_batches, pieces) == pytest.approx((took - work) / took)
    for position in range(stages):
        ours = pipeline.micro_batches_kept(stages, micro_batches, position, virtual_stages=pieces)
        assert ours == pytest.approx(kept[position])
    first = pipeline.micro_batches_kept(stages, 10**6, virtual_stages=pieces)
    assert first == pytest.approx(stages * (1 + (stages - 1) / (stages * pieces)))  # Korthikanti et al.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: throughput.matmul_params(0, 8, 8), "layers is 0; give a number above 0"),
        (lambda: throughput.matmul_params(2, 8, 0), "vocab is 0; give"),
        (lambda: throughput.matmul_params(2, 9, 8, heads=2), "hidden is 9; it must be a multiple of heads"),
        (lambda: throughput.model_flops_per_token(0, 1, 1, 1), "params is 0; give"),
        (lambda: throughput.hardware_flops_per_token(1, 1, 1, 0), "sequence is 0; give"),
        (lambda: throughput.utilization(0, 1, 1, 1), "flops_per_token is 0; give"),
        (lambda: throughput.utilization(1, 0, 1, 1), "tokens_per_second is 0; give"),
        (lambda: throughput.utilization(1, 1, 0, 1), "gpus is 0; give"),
        (lambda: throughput.run_cost(1, 1, 1, 1, 40, 2), "mfu is 40; give the part of the peak reached"),
        (lambda: throughput.run_cost(1, 1, 1, 1, 1.01, 2), "mfu is 1.01; give"),
        (lambda: throughput.run_cost(1, 1, 1, 1, 0, 2), "mfu is 0; give the part"),
        (lambda: throughput.run_cost(1, 1, 1, 1, float("nan"), 2), "mfu is nan; give the part"),
        (lambda: throughput.run_cost(1, 1, 1, 1, 0.4, -2), "dollars_per_gpu_hour is -2; give 0 or more"),
        (lambda: throughput.run_cost(1, 0, 1, 1, 0.4, 2), "tokens is 0; give"),
        (lambda: pipeline.bubble_over_ideal(0, 1), "stages is 0; give"),
        (lambda: pipeline.bubble_fraction(1, 0), "micro_batches is 0; give"),
        (lambda: pipeline.bubble_fraction(1, 1, 0), "virtual_stages is 0; give"),
        (lambda: pipeline.micro_batches_kept(4, 0), "micro_batches is 0; give"),
        (lambda: pipeline.micro_batches_kept(4, 8, 4), "position is 4; the pipeline has the stages 0 to 3"),
        (lambda: pipeline.micro_batches_kept(4, 8, -1), "position is -1; the pipeline"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
