"""Lab 05: what is predicted beside what is measured, and the explorer."""

import re

import pytest
import torch

from ringzero_course.lab.claims import answers, values
from ringzero_course.lab.runs import Case, Run
from ringzero_course.lab.subjects import memory
from tests.live_notebook import errors, text_of

LAB = "05_memory"


def test_the_step_is_drawn(reference):
    drawn = [o.data["text/html"] for c in reference.cells.values() for o in c.outputs if "<svg" in str(o.get("data"))]
    assert len(drawn) == 2
    for kind in ("parameters", "gradients", "optimizer", "activations"):
        assert all(f'<path class="{kind}"' in figure for figure in drawn)


def test_states_are_predicted_to_the_byte(reference):
    shown = text_of(reference.cell_with('model_states(gpt_parameters(4, 64, 101, 48), "adam", "fp32")'))
    apart = dict(re.findall(r"^(\w+) +predicted .* apart (\d+)$", shown, re.MULTILINE))
    (tensors,) = re.findall(r"tensors · 4 bytes = (\d+)", shown)
    assert apart == {"parameters": "0", "gradients": "0", "optimizer": tensors}


def test_own_adam_holds_what_torch_s_does(reference):
    shown = text_of(reference.cell_with("class Mine("))
    (theirs, mine) = re.findall(r"parameters ([\d,]+), gradients ([\d,]+), optimizer ([\d,]+) bytes", shown)
    assert theirs[:2] == mine[:2] == ("80,800", "80,800")
    assert (theirs[2], mine[2]) == ("161,608", "161,600")


def test_activations_are_predicted_within_two_per_cent(reference):
    shown = text_of(reference.cell_with("def kept_by_a_block("))
    ratios = [float(ratio) for ratio in re.findall(r"measured / predicted = ([\d.]+)", shown)]
    assert len(ratios) == 6
    assert all(1 <= ratio < 1.02 for ratio in ratios)


def test_recomputation_is_predicted(reference):
    """What is measured beyond the blocks is the model's end, the same each time."""
    shown = text_of(reference.cell_with("MASK = 1"))
    rows = re.findall(r"^(\w+) +yours +([\d,]+) .* measured +([\d,]+), and +([\d,]+) at the peak", shown, re.MULTILINE)
    assert [row[0] for row in rows] == ["none", "selective", "full"]
    predicted, kept, peak = ([int(row[i].replace(",", "")) for row in rows] for i in (1, 2, 3))
    assert peak == sorted(peak, reverse=True)
    end = 4 * 4 * 64 * (2 * 64 + 101)
    for mine, measured in zip(predicted, kept, strict=True):
        assert mine + end <= measured <= 1.02 * mine + end + 30_000  # LayerNorms' numbers, ids, generators


def test_what_fits(reference):
    shown = text_of(reference.cell_with('("GPT-2 XL, 80 GB"'))
    assert "GPT-2 XL, 80 GB  stage 0 on    1 ranks: batch [6, 19, 148]" in shown
    assert "GPT-3, 141 GB    stage 2 on   64 ranks: batch [0, 0, 0]" in shown


def test_explorer_puts_formulas_beside_a_step(reference):
    (output,) = reference.cell_with("def explain(").outputs
    assert "application/vnd.jupyter.widget-view+json" in output.data
    rows = dict(re.findall(r"(\w+) ([\d.]+)", output.data["text/plain"]))
    assert list(rows) == ["parameters", "gradients", "optimizer", "activations", "peak"]
    assert rows["parameters"] == rows["gradients"] == rows["optimizer"] == "1.000"
    assert 1 <= float(rows["activations"]) < 1.03
    assert float(rows["peak"]) < 1


def test_explorer_answers_and_says_what_fails(reference):
    cell = reference.cell_with("def explain(")
    move = "box = explorer()\nbox.children[4].value = 'full'\nprint(box.children[5].value)"
    shown = text_of(reference.run(cell.id, cell.source + "\n" + move))
    (kept,) = re.findall(r"activations +yours +([\d,]+) ", shown)
    assert int(kept.replace(",", "")) == 4 * 2 * 48 * (2 * 64 + 2 * 64 + 101)  # 2 inputs of layers, and the end
    assert "<svg" in shown
    with reference.changed({"kept_bytes": "def kept_bytes(*_, **__):\n    return 1 / 0"}):
        failed = reference.run(cell.id)
    reference.run(cell.id)
    assert "ZeroDivisionError: division by zero" in text_of(failed)
    assert not errors(failed)


# What the claims say, without a kernel.

OPTIONS = {"lr": 0.03, "weight_decay": 0.2, "betas": (0.7, 0.9), "eps": 1e-2}
as_torch = memory.as_torch(torch.optim.AdamW)


def adamw_run(end, **report):
    report = {"ends": [end, end], "kept": 16 * end.numel(), "untouched": True, "in_place": True} | report
    return Run(Case(1, None, torch.float32, (3, (6,), 4, torch.float64), OPTIONS), problem=None, returned=[report])


def end_with(**mistake):
    return memory.end_of(*memory.start_and_gradients(3, (6,), 4, torch.float64), **OPTIONS | mistake)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"inside": True}, "ε stands under the root"),
        ({"hats": False}, "the hats are missing"),
        ({"betas": (0.9, 0.7)}, "betas[0] and betas[1] are exchanged"),
        ({"weight_decay": 0.0}, "there is no decay"),
        ({"l2": True}, "that is L2 regularisation"),
        ({"weight_decay": 0.2 / 0.03}, "by λ, not by lr · λ"),
        ({"late": True}, "after Adam's step"),
    ],
)
def test_a_usual_mistake_in_adam_is_named(mistake, words):
    assert words in as_torch(adamw_run(end_with(**mistake)))


def test_a_right_step_of_adamw_and_one_that_is_off():
    assert as_torch(adamw_run(end_with())) is None
    assert "after step 4 the parameter is off by up to 0.1" in as_torch(adamw_run(end_with() + 0.1))
    assert as_torch(adamw_run(end_with().float().double())) is None  # a count of steps in a tensor is float32
    start, _ = memory.start_and_gradients(3, (6,), 4, torch.float64)
    assert "change it in place" in as_torch(adamw_run(start))
    assert "has each a state of its own?" in as_torch(adamw_run(end_with(), ends=[end_with(), start]))


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ({"kept": 0}, "have 0 bytes, 0 times the parameter's, expected 2 times: both moments, as tensors"),
        ({"kept": 192}, "have 192 bytes, 4 times the parameter's"),
        ({"kept": 96 + 8}, None),  # with a count of steps
        ({"untouched": False}, "the gradient was changed"),
    ],
)
def test_what_a_step_keeps(report, words):
    said = memory.keeps_two_numbers_each(adamw_run(end_with(), **report))
    assert said is None if words is None else words in said


def test_numbers_are_taken_in_any_form_and_shown_apart():
    for form in (tuple, list, torch.tensor, lambda both: torch.tensor(both).numpy()):
        assert values.numbers(("one", "other"), form([2.0, 3.5]), (2, 3.5)) is None
    assert values.numbers(("one", "other"), [2.0, 3.0], (2, 3.5)) == "other is 3, expected 3.5 (0.857 times it)"
    assert values.number("it", 2669, 2669 + 1 / 3) == "it is 2669, expected 2669.33 (off by 0.0001 of it)"
    assert values.number("it", 1e9, 1e9 + 2000) == "it is 1000000000.0, expected 1000002000.0 (off by 2e-06 of it)"
    assert [answers.plain_number(got) for got in (6.0, torch.tensor(6), 6, 6.5, None)] == [6, 6, 6, 6.5, None]
