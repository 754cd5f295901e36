"""What pages show of GPUs was recorded by others: the file adds up, and says whose it is."""

import json
from pathlib import Path

RECORDED = json.loads((Path(__file__).parents[2] / "book/recorded_on_gpus.json").read_text())


def test_it_names_its_source_and_dates():
    assert "commit" in RECORDED["source"]
    assert "MIT License, Copyright" in RECORDED["source"]
    for name in ("waiting", "events", "memory"):
        assert RECORDED[name]["file"].endswith(".gz")
        assert len(RECORDED[name]["recorded"].split("-")) == 3


def test_the_parts_of_a_step_are_the_step():
    for step in RECORDED["waiting"]["steps"]:
        parts = step["computing_us"] + step["nccl_us"] + step["copies_us"] + step["nothing_us"] - step["hidden_us"]
        assert parts == step["step_us"]


def test_the_window_has_kernels_after_each_other_and_after_their_launch():
    window = RECORDED["waiting"]["window"]
    end = 0
    for kernel in window["kernels"]:
        assert kernel["starts_us"] >= max(end, kernel["launched_us"])
        end = kernel["starts_us"] + kernel["takes_us"]
    assert end <= window["until_us"] - window["from_us"]


def test_events_stand_around_the_kernel():
    first, launch, second, synchronize, kernel = RECORDED["events"]["calls"]
    assert first["starts_us"] < launch["starts_us"] < second["starts_us"] < synchronize["starts_us"]
    assert launch["starts_us"] + launch["takes_us"] <= kernel["starts_us"]
    assert synchronize["starts_us"] + synchronize["takes_us"] >= kernel["starts_us"] + kernel["takes_us"]


def test_memory_is_that_of_resnet_50_with_momentum():
    memory = RECORDED["memory"]
    assert {*memory["optimizer"]} == {4 * 25_557_032}
    assert memory["inputs"] == 4 * 32 * (3 * 224 * 224 + 1000)
    lengths = {len(memory[kind]) for kind in ("ms", "parameters", "optimizer", "activations", "gradients", "other")}
    assert len(lengths) == 1
