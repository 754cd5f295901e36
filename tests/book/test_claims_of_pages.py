"""What pages say about their own runs: their cells, executed here, and the claim beside them."""

import re
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.costs.page import hardware, transformer
from ringzero.steps import planner
from ringzero.steps.published_runs import RUNS
from ringzero.unsynced import graphs
from ringzero.zero import plain as zero_in_plain_torch

BOOK = Path(__file__).resolve().parents[2] / "book"


@pytest.fixture(autouse=True)
def threads():
    """A page may change their number."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run(page, *beginnings, **names):
    """The names that a page's cells make, of which each has a line that begins so; ``names`` are there before."""
    text = (BOOK / page).read_text()
    cells = re.findall(r"^```\{code-cell\} python\n(?::tags:[^\n]*\n)?(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    made = {"__name__": "page", **names}
    for beginning in beginnings:
        (cell,) = [cell for cell in cells if re.search(f"^{re.escape(beginning)}", cell, re.MULTILINE)]
        exec(compile(cell, f"{page}: {beginning}", "exec"), made)
    return made


def test_the_running_example_by_the_rule_and_in_full(capsys):
    """7.5 billion parameters; the rule of 6 FLOP a parameter and token is near with short sequences, not with long."""
    given = {"transformer": transformer, "hardware": hardware}
    made = run("01_a_transformer_by_the_numbers.md", "layers, h, heads, vocab, s = 36", **given)
    assert made["example"] == pytest.approx(7.5e9, rel=0.01)
    assert 1.05 < made["exact"] / made["by_rule"] < 1.1
    short, long = re.findall(r"(\d+)%$", capsys.readouterr().out, re.MULTILINE)
    assert int(short) < 10
    assert int(long) > 50


CHAPTER_6B, CHAPTER_10 = "06b_awkward_cases.md", "10_where_the_memory_goes.md"


def test_decoupled_decay_beside_l2(capsys):
    made = run(CHAPTER_10, "import math", "def after_decay")
    for decay, expected in made["decays"].items():
        large, small, l2_large, l2_small = made["after"][decay]
        assert large == pytest.approx(expected, abs=0.01)
        assert small == pytest.approx(expected, abs=0.01)
        assert l2_large > 0.9
        assert l2_small == pytest.approx(0.8, abs=0.02) or decay < 1
    apart = {decay: abs(made["after"][decay][3] - expected) for decay, expected in made["decays"].items()}
    assert apart[1.0] < 0.03 < 0.1 < min(apart[0.1], apart[5.0])


def test_momentum_is_a_sum_and_adam_s_moment_a_mean(capsys):
    made = run(CHAPTER_10, "import math", "def remembered")
    assert made["remembered"](made["momentum"], "momentum_buffer") == pytest.approx(10, abs=0.01)
    assert made["remembered"](torch.optim.Adam, "exp_avg") == pytest.approx(1, abs=0.01)


def test_adam_as_on_the_page_is_torch_s(capsys):
    made = run(CHAPTER_10, "import math", "def adam(")
    off = [float(line.split("off by ")[1].split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert len(off) == 6
    assert max(off[0], off[3]) < 1e-12
    assert min(off[1], off[2], off[4], off[5]) > 1e-3
    assert made["eps"] == 1e-3


def test_six_sequences_fit_by_a_thousandth(capsys):
    xl = 1_557_611_200
    made = run(CHAPTER_10, "import math", "def batches", xl=xl)
    assert 6 < made["exact"] < 6.01
    assert made["batches"](0, 1, memory=72e9) < 6
    text = (BOOK / CHAPTER_10).read_text()
    assert made["transformer"].gpt_params(48, 1600, 50257, 1024) == xl
    assert "So six fit on paper" in text


def test_recomputation_by_operation_keeps_the_results_of_products(capsys):
    made = run(CHAPTER_10, "import math", "def two_steps", "def keep_products")
    held = {kind: made["two_steps"](recompute=kind).at("forward") for kind in ("full", "by operation")}
    numbers = made["LAYERS"] * made["BATCH"] * made["SEQUENCE"] * made["HIDDEN"]
    assert held["full"]["other"] < 100
    assert held["by operation"]["activations"] == held["full"]["activations"]
    assert held["by operation"]["other"] == pytest.approx(4 * 9 * numbers, rel=1e-4)


def test_torch_reads_the_allocator_s_variable_under_both_names():
    text = (BOOK / CHAPTER_10).read_text()
    library = (Path(torch.__file__).parent / "lib/libc10.so").read_bytes()
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        assert f"`{name}" in text
        assert b"\0" + name.encode() + b"\0" in library


@pytest.fixture(scope="module")
def chapter_6():
    """The names of the first cell of its awkward cases."""
    return run(CHAPTER_6B, "from contextlib import nullcontext")


def test_the_mean_of_means_is_not_the_mean(chapter_6, capsys):
    made = run(CHAPTER_6B, "LENGTHS = ", **chapter_6)
    one, wrong, right = re.findall(r"loss ([\d.]+)", capsys.readouterr().out)
    assert float(wrong) > 1.5 * float(one)
    assert float(right) == pytest.approx(float(one), abs=0.002)
    assert (made["parameters"] - made["alone"]).abs().max() < 1e-4  # the last of both: weighted


def test_synced_statistics_are_those_of_one_process(chapter_6):
    made = run(CHAPTER_6B, "class SumOverRanks", "def with_norm", **chapter_6)
    off, apart = {}, {}
    for way, of_ranks in made["ended"].items():
        four, means = (torch.stack(each) for each in zip(*of_ranks, strict=True))
        off[way] = (four - made["alone"]).abs().max(), (means - made["alone_mean"]).abs().max()
        apart[way] = (four - four[0]).abs().max(), (means - means[0]).abs().max()
    assert all(max(off[way]) > 1e-2 for way in off if way != "SyncBatchNorm")
    assert max(off["SyncBatchNorm"]) < 1e-5
    assert all(parameters == 0 for parameters, _ in apart.values())
    assert apart["BatchNorm, buffers left alone"][1] > apart["BatchNorm"][1] > 1e-2
    assert apart["SyncBatchNorm"][1] == 0


def test_batch_arithmetic(chapter_6):
    accumulation = run(CHAPTER_6B, "def accumulation", **chapter_6)["accumulation"]
    assert [accumulation(2**22, 4096, 2, n) for n in (128, 192, 256, 384, 512, 1024)] == [4, None, 2, None, 1, None]
    for ranks in (128, 256, 512):
        assert 2 * 4096 * accumulation(2**22, 4096, 2, ranks) * ranks == 2**22


def test_sums_in_16_bits(chapter_6):
    made = run(CHAPTER_6B, "def errors(", **chapter_6)
    ring, once = made["in_a_ring"], made["added_in_fp32"]
    assert ring[0] < 0.01
    assert all(later > earlier for earlier, later in zip(ring[1:], ring[2:], strict=False))
    assert ring[8] > 5 * ring[2]
    assert max(once) < 0.003


CHAPTER_11 = "11_zero.md"
PLAIN_ZERO = ("from ringzero.zero.plain import", "def model(")


@pytest.fixture(scope="module")
def plain_zero():
    """The ZeRO in plain torch, as page 11 uses it."""
    return run(CHAPTER_11, *PLAIN_ZERO, "def bytes_of", launch=launch)


def padded(width, ranks):
    """Numbers of the three layers, each with zeros up to a multiple of the ranks; and without."""
    numbers = width * width + width
    return 3 * ranks * -(-numbers // ranks), 3 * numbers


@pytest.mark.parametrize("device", ["cpu", "strict"])
@pytest.mark.parametrize(("ranks", "width"), [(1, 7), (2, 4), (3, 4), (3, 7)])
def test_plain_zero_trains_as_adamw_in_one_process(plain_zero, ranks, width, device):
    alone = plain_zero["in_one_process"](width=width)
    started = plain_zero["in_one_process"](steps=0, width=width)
    assert (alone - started).abs().max() > 0.05
    ended = {}
    for stage in (0, 1, 2, 3):
        ended[stage] = launch(plain_zero["train_plain"], stage, 10, width, world_size=ranks, device=device).returns
        assert all(torch.equal(other, ended[stage][0]) for other in ended[stage])
        torch.testing.assert_close(ended[stage][0], alone, rtol=1e-4, atol=1e-5)
    assert torch.equal(ended[1][0], ended[2][0])
    assert torch.equal(ended[1][0], ended[3][0])


def reduced(zero, model, batch, width):
    """On a rank: the shards of the gradients, as the optimizer gets them."""
    trainer, ranks = zero(model(width), lr=0.01), dist.get_world_size()
    trainer.model(batch(0, width)[dist.get_rank() :: ranks]).square().mean().backward()
    if zero.__name__ == "Zero1":
        for layer in trainer.layers:
            layer.reduce_gradients()
    return torch.cat([layer.shard.grad for layer in trainer.layers])


@pytest.mark.parametrize("name", ["Zero1", "Zero2", "Zero3"])
def test_plain_zero_reduces_to_the_gradient_of_the_whole_batch(plain_zero, name):
    """AdamW steps alike for a sum and for a mean, so the gradients themselves are looked at."""
    model, batch, width, ranks = plain_zero["model"], plain_zero["batch"], 7, 3
    alone = model(width)
    alone(batch(0, width)).square().mean().backward()
    whole = [torch.cat([p.grad.flatten() for p in layer.parameters()]) for layer in alone]
    shards = [torch.nn.functional.pad(each, (0, -len(each) % ranks)).chunk(ranks) for each in whole]
    expected = [torch.cat(of_a_rank) for of_a_rank in zip(*shards, strict=True)]
    got = launch(reduced, getattr(zero_in_plain_torch, name), model, batch, width, world_size=ranks).returns
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("device", ["cpu", "strict"])
def test_plain_zero_with_gathers_ahead_is_the_same(plain_zero, device):
    stage_3 = launch(plain_zero["train_plain"], 3, world_size=4, device=device).returns
    there = plain_zero | {"plain": {3: stage_3}, "launch": partial(launch, device=device)}
    made = run(CHAPTER_11, "class Zero3Ahead(Zero3):", **there)
    assert "Zero3Ahead" in str(made["PLAIN"]["3, ahead"])
    assert all(torch.equal(each, stage_3[0]) for each in made["ahead"])


@pytest.mark.parametrize(("ranks", "width"), [(1, 7), (2, 4), (3, 7)])
def test_plain_zero_holds_and_sends_what_its_stage_says(plain_zero, ranks, width):
    whole, true = padded(width, ranks)
    for stage in (0, 1, 2, 3):
        for held, sent in launch(plain_zero["count_plain"], stage, width, world_size=ranks, trace=True).returns:
            cut = [1 if stage < least else ranks for least in (1, 2, 3)]
            numbers = (whole if stage else true, true if stage < 2 else whole, whole)
            assert held == [size * n // c for size, n, c in zip((8, 4, 4), numbers, cut, strict=True)]
            assert sent == pytest.approx(4 * (3 if stage == 3 else 2) * numbers[0] * (ranks - 1) / ranks)


CHAPTER_13 = "13_will_it_overlap.md"


def test_thresholds_take_what_all_cards_of_a_node_carry(capsys):
    made = run(CHAPTER_13, "from ringzero.costs import playbook", "for n, bandwidth in B", "products = overlap")
    run(CHAPTER_13, "for ranks, bandwidth in", **made)
    rates = {n: round(b / 1e9) for n, b in made["B"].items()}
    assert rates == {1: 450, 2: 400, 16: 400, 128: 400}
    assert made["one_card"] == pytest.approx(989e12 / 50e9 * 127 / 128, rel=0.01)
    said = capsys.readouterr().out
    assert "128 GPUs: 2,453 tokens" in said
    assert "columns that hide it: 15,384" in said
    ratios = {
        name: float(ratio) for name, ratio in re.findall(r"^(\w[\w ,]*?) +\d+ columns.*: ([\d.]+)$", said, re.MULTILINE)
    }
    assert ratios == {"Q, K, V": 1.50, "projection": 1.88, "gate and up": 0.27, "down": 0.54}
    inside, across = ([float(each) for each in line.split(":")[1].split()] for line in said.splitlines()[-2:])
    assert inside == list(ratios.values())
    assert [ratio < 1 for ratio in across] == [False, False, True, False]  # the widest product alone still hides it
    assert across == pytest.approx([ratio * 15 / 7 * 450 / 400 for ratio in inside], abs=0.02)


def test_the_planner_refuses_the_plan_that_llama_3_was_trained_with():
    assert "the ranking above does not have its plan" in (BOOK / "15_choosing_a_plan.md").read_text()
    (llama,) = (run for run in RUNS if run.name == "Llama 3 405B, 16,384 GPUs")
    found = llama.estimate()
    assert found.bytes > llama.cluster.memory_bytes > found.bytes - found.memory["activations"]
    assert llama.predicted() == pytest.approx(llama.tflops, rel=0.05)
    first = planner.rank(llama.model, llama.cluster, llama.batch).fitting[0]
    assert (first.plan.recomputation, llama.plan.recomputation) == ("full", "none")
    assert first.mfu < found.mfu


def test_who_is_answered_with_a_bound_and_what_a_vote_says(capsys):
    run("07_parameter_servers.md", "def answers(")
    run("07b_failures.md", "import math", "from ringzero.unsynced.quorum import")
    said = capsys.readouterr().out
    assert "[[0], [1], [], [], [0, 1, 2]]" in said
    assert "[('yes', 'no'), ('yes', 'no'), ('yes', 'silent')]" in said


def test_plain_outer_steps_are_diloco(capsys):
    cells = ("import itertools", "def average_every", "class DataParallel:", "class OuterStep", "paper = partial")
    run("08_without_full_sync.md", *cells)
    apart = {
        name: float(by) for name, by in re.findall(r"^(.*): apart by (\S+) of", capsys.readouterr().out, re.MULTILINE)
    }
    assert len(apart) == 4
    assert all(by < 1e-5 for name, by in apart.items() if "AdamW" not in name)
    assert apart["H = 1 and data parallel, AdamW"] > 1e-3


def test_a_checkpoint_has_no_gradients(capsys):
    """12 bytes a parameter: fp32 parameters and Adam's moments."""
    run("07b_failures.md", "import math", "_, _, states = memory.bytes_per_param")
    assert "a checkpoint of 90 GB takes 5.6 s" in capsys.readouterr().out


def test_what_overlap_saves_where_sending_takes_as_long_as_computing():
    chapter = "06_data_parallel.md"
    made = run(chapter, "import sys", "WIDTH, LAYERS", "def predict(")
    flat, overlapped = (made["predict"](*made["OPENING"][way], **made["IDEAL"])[1] for way in list(made["OPENING"])[1:])
    assert flat == pytest.approx(0.205)
    assert overlapped == pytest.approx(0.1 / 3 + 2 * 0.1 / (3 * 6) + 0.1 + 0.005)
    finest, _ = [made["predict"]("overlapped", [1e4] * n, **made["IDEAL"] | {"bandwidth": n * 1e5}) for n in (1000, 2)]
    assert 1 / 3 - 0.02 < 1 - finest[1] / flat < 1 / 3


def test_the_plain_class_fills_the_buckets_of_the_page():
    made = run("06_data_parallel.md", "import sys", "WIDTH, LAYERS", "def predict(")

    def buckets():
        return [
            sum(p.nbytes for p in bucket) for bucket in made["OverlappedDataParallel"](made["deep_model"](), 1).buckets
        ]

    assert launch(buckets, world_size=1).returns[0] == made["ours"]


def test_the_critical_batch_size(chapter_6):
    made = run(CHAPTER_6B, "def steps_needed", **chapter_6)
    needed, rate = made["needed"], made["best_rate"]
    assert needed[1] / needed[16] > 8
    assert rate[16] / rate[1] > 4
    assert needed[128] / needed[1024] < 3
    assert rate[1024] / rate[128] < 3


def test_matrices_of_gossip_are_normal():
    """So the second largest eigenvalue bounds the distance after every round."""
    for graph in (graphs.ring(8), graphs.torus(2, 4), graphs.exponential(8), graphs.one_peer_exponential(8)):
        weights = graph.weights(0)
        assert weights @ weights.T == pytest.approx(weights.T @ weights)
