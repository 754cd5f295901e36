"""``ringzero same``: right programs are the same on N ranks, and a bug gets its name."""

import json

import pytest
from click.testing import CliRunner

from ringzero.cli import main
from ringzero.same import ProgramError, compare
from tests.fuzz import same as same_programs
from tests.in_turn import in_turn
from tests.same.programs import LOADER, OURS, RIGHT, START, WRAPPED, WRONG, write


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_the_same(tmp_path, name):
    for ranks in (2, 3):
        verdict = compare(str(write(tmp_path / "train.py", RIGHT[name])), "step", ranks=ranks)
        assert verdict.same, str(verdict)
        assert verdict.steps >= 4


@pytest.mark.parametrize("name", WRONG)
def test_a_bug_gets_its_name(tmp_path, name):
    cause, program = WRONG[name]
    verdict = compare(str(write(tmp_path / "train.py", program)), "step")
    assert not verdict.same
    assert verdict.causes[0].name == cause, str(verdict)


@pytest.mark.parametrize("seed", in_turn(range(40), 10))
def test_a_random_right_program_is_not_accused(tmp_path, seed):
    verdict, words = same_programs.judge(seed, tmp_path)
    assert verdict == "right", words


TRAINED = """
torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(batch):
    model.zero_grad()
    BODY
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= ranks
    optimizer.step()
"""


def program(body, start=""):
    return start + TRAINED.replace("BODY", body)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (program("(model(batch[0]) + torch.randn(1)).square().mean().backward()"), r"draws random numbers \(torch\)"),
        (program("(model(batch[0]) + random.random()).sum().backward()", "import random\n"), r"draws .* \(random\)"),
        (program("(model(batch[0]) + time.perf_counter()).sin().mean().backward()", "import time\n"), "repeat itself"),
        (program("model.cuda()"), "needs a GPU"),
        (program("loss_of(model, batch).backward()", "batches = [torch.ones(1, 6)]\n"), "has 1 samples, fewer"),
        ("step = 3\n", "step is a int, no step"),
        ("def other(): pass\n", "there is no 'step' in the file; it has .*other"),
        ("def step(a, b): pass\n", r"takes 2 arguments \(a, b\)"),
        ("del batches\ndef step(batch): pass\n", "the file has none of batches, loader"),
        ("def step(batch): raise KeyError('x')\n", "(?s)does not end on 2 ranks.*KeyError"),
        ("def step():\n    if rank == 0:\n        dist.barrier()\n", "ranks? 1 .*never entered barrier"),
        ("class step:\n    def __init__(self, a): pass\n", r"step is a class, and step\(\) fails"),
        ("def step(batch): return batch[0].sum()\n", "nothing can be compared on 2 ranks"),
        ("import psutil\npsutil.virtual_memory = lambda: type('M', (), {'available': 10})\nmodel = nn.Linear(6, 3)\n"
         "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
         "def step(batch):\n    model(batch[0]).sum().backward()\n    optimizer.step()\n", "GB are free. Compare"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(tmp_path, text, says):
    with pytest.raises(ProgramError, match=says):
        compare(str(write(tmp_path / "train.py", text)), "step", steps=2)


def test_as_written_and_where_the_loader_has_a_type_of_its_own(tmp_path):
    named = """
import collections
Pair = collections.namedtuple("Pair", "x y")
loader = DataLoader(dataset, batch_size=4, sampler=sampler, collate_fn=lambda them: Pair(*map(torch.stack, zip(*them))))
"""
    right = LOADER + named + WRAPPED.replace("loss_of(model, batch)", "loss_of(model, (batch.x, batch.y))")
    wrong = right.replace("    loss.backward()", "    (loss / ranks).backward()")
    for as_written, tolerance in ((False, 1e-9), (True, 2e-4)):
        path = write(tmp_path / "train.py", right)
        verdict = compare(path, "step", as_written=as_written)
        assert (verdict.same, verdict.steps, verdict.tolerance) == (True, 4, tolerance), str(verdict)
        write(path, wrong)
        assert compare(path, "step", as_written=as_written).causes[0].name == "averaged twice"


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_wrong_program_on_shards_is_seen(tmp_path, stage):
    """Its gradients are in pieces, so the parameters tell."""
    wrong = OURS.replace("STAGE]", f"{stage}]").replace("torch.optim.AdamW", "torch.optim.SGD")
    wrong = wrong.replace("    loss.backward", "    (loss / ranks).backward")
    verdict = compare(write(tmp_path / "train.py", wrong), "step")
    assert verdict.first.startswith("after step 1: the parameters of "), str(verdict)


def test_the_command_says_and_saves_what_it_found(tmp_path):
    def call(*words):
        return CliRunner().invoke(main, ["same", *words])

    good, bad = write(tmp_path / "good.py", RIGHT["by hand"]), write(tmp_path / "bad.py", WRONG["a sum by hand"][1])
    done = call(f"{good}:step", "--steps", "2")
    assert (done.exit_code, done.output[:34]) == (0, "2 ranks train as one process does:")
    done = call(f"{bad}:step", "--json", str(tmp_path / "found.json"))
    assert done.exit_code == 1
    assert "sum for mean: the gradients are 2 times" in done.output
    found = json.loads((tmp_path / "found.json").read_text())
    assert not found["same"]
    assert found["causes"][0]["name"] == "sum for mean"
    assert call(f"{good}:stop").exit_code == 2
    assert call(str(good)).exit_code == 2
    assert "train.py:step" not in START
    with pytest.raises(ValueError, match="at least 2 ranks"):
        compare(str(good), "step", ranks=1)
