"""All ways to train of chapters 7 to 9 on one task: each sends what its formula says, and each learns."""

import pytest
import torch
from click.testing import CliRunner

import ringzero
from ringzero.cli import main
from ringzero.ranks.cluster import missing_ability
from ringzero_course.figures.trade_offs import front, trade_off
from ringzero_course.tasks import characters, methods, sentences

SHAPES = [tuple(parameter.shape) for parameter in characters.Model().parameters()]
BERT = "book/examples/bert.py"


@pytest.mark.parametrize("name", methods.METHODS)
def test_all_ranks_send_what_the_formula_says_and_the_loss_falls(name):
    for ranks, steps in ((4, 32), (2, 7)):
        curve = methods.merged(ringzero.launch(methods.train, name, steps, 2, world_size=ranks, trace=True).returns)
        assert curve[-1].bytes == methods.METHODS[name].sent(SHAPES, ranks, steps)
        if steps > 7:
            torch.manual_seed(0)
            assert curve[-1].loss < characters.held_out_loss(characters.Model()) - 0.25


def test_the_bert_of_chapter_6_is_a_task_too():
    task = sentences.Sentences(BERT)
    shares = [task.batch(step=1, rank=rank, world_size=2) for rank in range(2)]
    assert torch.equal(torch.stack([parts for _, parts in shares], 1).flatten(), task.batch(step=1)[1])
    torch.manual_seed(0)
    model = task.Model()
    task.loss(model, task.batch(step=0)).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert task.held_out_loss(model, every=64) > 1
    with pytest.raises(ValueError, match="nowhere.py is not there; give the path"):
        sentences.Sentences("nowhere.py").Model()


@pytest.mark.skipif(missing_ability() is not None, reason="needs an emulated cluster")
def test_the_bench_prints_loss_bytes_and_seconds_beside_data_parallelism(tmp_path):
    options = ["--ranks", "2", "--steps", "16", "--seeds", "1", "--rate", "1gbit", "--methods"]
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        main, ["bench", "unsynced", *options, "local SGD;top 1 %", "--figure", str(page)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    for name in ("DDP", "local SGD", "top 1 %"):
        for metric in ("final loss", "bytes a step", "step time"):
            assert any(line.startswith(f"{name}, 2 ranks") and metric in line for line in done.stdout.splitlines())
    assert page.read_text().count("<svg") == 2


def test_the_bench_refuses_a_method_that_there_is_not():
    done = CliRunner().invoke(main, ["bench", "unsynced", "--methods", "magic"])
    assert done.exit_code
    assert "methods has ['magic']; they are DDP" in done.output


def test_the_front_has_what_nothing_beats():
    points = {"a": (1, 5), "b": (2, 3), "c": (2.5, 4), "d": (9, 1), "e": (9, 2)}
    assert front(points) == ["a", "b", "d"]


def test_names_in_a_trade_off_do_not_touch():
    points = {f"method {i}": (1 + i * 0.01, 2 + i * 0.001) for i in range(8)}
    html = trade_off(points, x="kB", y="nats", title="Many in one place").html
    assert html.count('class="name"') == 8
    with pytest.raises(ValueError, match="method 0 has x 0; on a logarithmic axis"):
        trade_off({"method 0": (0, 1)}, x="", y="", title="")
    with pytest.raises(ValueError, match="there are no points"):
        trade_off({}, x="", y="", title="")
