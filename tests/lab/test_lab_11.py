"""Lab 11: its answers are what the broken programs do, and its oracles are one process that trains with torch."""

import ast
import re

import pytest
import torch

pytest.importorskip("nbgrader")

from ringzero_course.grading import build_labs
from ringzero_course.lab.runs import Case, Run
from ringzero_course.lab.subjects import silent
from tests.live_notebook import assert_full_marks, text_of

LAB = "11_silent_bugs"
PROGRAMS = ("order", "tokens", "windows", "dropout", "pairs", "schedule", "skip", "head")


def answer(reference, name):
    """What the reference's ``name()`` returns."""
    return ast.literal_eval(text_of(reference.run(name, f"{reference.cells[name].source}\n{name}()")))


def shown_after(reference, name):
    """What the cell behind that of the broken program ``name`` shows."""
    cells = list(reference.cells.values())
    return text_of(cells[next(i for i, cell in enumerate(cells) if cell.id == name) + 1])


def value(reference, code):
    """What an expression is in the notebook, when its last cell of that name has run."""
    return ast.literal_eval(text_of(reference.run("what_compare_says", code)))


def falls(text):
    losses = [float(loss) for loss in re.findall(r"\d+\.\d+", text)]
    return len(losses) > 1 and losses[-1] < 0.95 * losses[0]


def test_broken_programs_cannot_be_edited_away(reference):
    locked = {cell.id for cell in reference.notebook.cells if cell.metadata.get("nbgrader", {}).get("locked")}
    programs = {f"broken_{name}" for name in PROGRAMS}
    assert locked == {"tools", "causes", "three_files", *programs, *reference.tests}


def test_every_loss_falls(reference):
    """As the text says of each of the eight."""
    for name in PROGRAMS:
        lines = [line for line in shown_after(reference, f"broken_{name}").splitlines() if "loss" in line]
        assert lines
        for line in lines:
            text = line.split("loss", 1)[1] if "rank " not in line else line
            assert falls(text.split(";")[0]), line


def test_samples_that_nobody_takes(reference):
    shown = shown_after(reference, "broken_order")
    lists = [[ast.literal_eval(text) for text in re.findall(r"\[.*?\]", line)] for line in shown.splitlines()[1:5]]
    first = [i for epoch, _ in lists for i in epoch]
    said = answer(reference, "why_samples_are_missing")
    assert said["never"] == 24 - len(set(first))
    assert said["most"] == max(first.count(i) for i in first)
    assert all(epoch == following for epoch, following in lists)  # the second bug


def test_what_a_token_counts(reference):
    shown = shown_after(reference, "broken_tokens")
    counts = ast.literal_eval(re.search(r"\[.*\]", shown)[0])
    said = answer(reference, "why_tokens_count_unlike")
    weights = [sum(counts) / (len(counts) * count) for count in counts]
    assert (said["heavy"], said["light"]) == (weights[1], weights[3])
    assert "differ from each other by 0.0\n" in shown


def test_lengths_of_steps(reference):
    shown = shown_after(reference, "broken_windows")
    *_, last = lengths = [float(text) for text in re.search(r"lengths of the steps: (.*)", shown)[1].split()]
    right = float(re.search(r"window of two: (.*)", shown)[1])
    said = answer(reference, "why_the_last_step_is_wrong")
    assert said["steps"] == len(lengths)
    assert said["times"] == pytest.approx(last / right, abs=4e-5)  # what is asked for has four digits
    shown = shown_after(reference, "broken_pairs")
    one, four = (float(text) for text in re.findall(r"first step (\S+)", shown))
    said = answer(reference, "why_pairs_learn_slowly")
    assert said["four"] == pytest.approx(four / one, abs=4e-5)
    assert said["eight"] == said["four"] / 2
    assert len(set(re.findall(r"loss (\S+)", shown))) == 1


def test_patterns_of_dropout(reference):
    patterns = re.findall(r"[x.]{12}", shown_after(reference, "broken_dropout"))
    assert len(patterns) == 16
    assert answer(reference, "why_dropout_is_weak")["patterns"] == len(set(patterns))


def test_rates_and_ranks_and_parameters(reference):
    said = answer(reference, "why_training_stops")
    again = (
        "trained(broken_schedule, lambda: make_model(4, 6, 1), [batches_of(r, 40, 8) for r in range(4)], "
        "0.5, 8, 40)[0][0][1]"
    )
    rates = value(reference, again)
    assert rates.index(max(rates)) == said["peak"]
    assert [step for step, rate in enumerate(rates) if rate][-1] + 1 == said["idle"]
    said = answer(reference, "why_a_rank_is_apart")
    cell = reference.cell_with("for rank, step in ((3, 5)").source.split("losses, parameters = ")[0]
    apart = """
[[bool((p != q).any()) for p in some for q in some[:1]] for some in (
    trained(broken_skip, lambda: make_model(4, 6, 1), [part[:k] for part in parts], 0.2)[1] for k in (5, 6))]"""
    before, after = value(reference, cell + apart)
    assert said["step"] == 5
    assert not any(before)
    assert [rank for rank, differs in enumerate(after) if differs] == [said["rank"]]
    said = answer(reference, "why_heads_differ")
    cell = reference.cell_with("def parts_of_a_model(").source.split("print(")[0]
    apart = "{n: p.numel() for n, p in ranks[0][1].items() if any(bool((p != r[n]).any()) for _, r in ranks)}"
    found = value(reference, cell + apart)
    assert sorted(found) == sorted(said["apart"])
    assert sum(found.values()) == said["count"]
    reference.run("what_compare_says")


def test_the_tool_says_what_is_asked_for(reference):
    said = answer(reference, "what_compare_says")
    code = '{n: [c.name for c in compare(str(p), "step", ranks=3).causes] for n, p in FILES.items()}'
    found = value(reference, code)
    reference.run("what_compare_says")
    assert {name: (causes or ["nothing"])[0] for name, causes in found.items()} == {n: said[n] for n in "abc"}


def test_causes_are_in_the_list_and_in_no_released_cell(reference):
    causes = ast.literal_eval(reference.cells["causes"].source.removeprefix("CAUSES = "))
    names = [cell for cell in reference.cells if cell.startswith("why_")]
    assert len(names) == 8
    assert len({answer(reference, name)["cause"] for name in names} & set(causes)) == 8
    for cell in build_labs.release_notebook(LAB).cells:
        assert "claims.entry(" not in cell.source


WITH_DDP = {
    "train_with_dropout": """
def train_with_dropout(make, batches, seed, lr):
    torch.manual_seed(seed * 100 + dist.get_rank())  # other parameters on each rank, until DDP broadcasts rank 0's
    model = make()
    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=lr)
    for x, y in batches:
        optimizer.zero_grad()
        functional.mse_loss(wrapped(x), y).backward()
        optimizer.step()
    return model
""",
    "train_with_head": """
def train_with_head(make_body, make_head, batches, lr):
    body, head = make_body(), make_head()
    model = nn.parallel.DistributedDataParallel(nn.Sequential(body, head))
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return body, head, losses
""",
}


@pytest.mark.parametrize("name", WITH_DDP)
def test_torchs_own_wrapper_gets_every_point(reference, name):
    """On gloo. By NCCL's rules on the CPU its backward pass does not return, so it is none of the right solutions."""
    assert_full_marks(reference, name, WITH_DDP[name])


# Without a kernel.


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_oracle_is_sgd_in_torch(ranks):
    options = {"seed": 5, "total": 6, "warmup": 2, "lr": 0.1}
    model = silent.make_model(5, 4, 6, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(k / 2, (6 - k) / 4))
    for step in range(6):
        optimizer.zero_grad()
        x, y = (torch.cat(each) for each in zip(*(silent.samples(5, step, r) for r in range(ranks)), strict=True))
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        schedule.step()
    found = silent.schedule_alone(Run(Case(ranks, None, torch.float32, (), options)))
    torch.testing.assert_close(found, silent.vector(model), rtol=1e-12, atol=1e-14)


def test_a_rank_may_have_no_token_and_all_may_have_nan():
    counts = [[(silent.tokens(2, step, r, 3, True)[1] >= 0).sum() for r in range(3)] for step in range(3)]
    assert [min(some) == 0 < max(some) for some in counts] == [True] * 3
    nan = [[bool(silent.with_holes(9, step, r, 4)[1].isnan().any()) for r in range(4)] for step in range(5)]
    assert [sum(some) for some in nan] == [0, 1, 0, 0, 4]
