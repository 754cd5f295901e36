"""The labs' own training, against the plain thing."""

import pytest
import torch

from ringzero.collectives import chunk_bounds
from ringzero_course.lab.harness import training
from ringzero_course.lab.runs import Case, Run, part
from ringzero_course.lab.subjects import replicas, stages


def run_of(ranks, **options):
    return Run(Case(ranks, None, torch.float32, (), options))


def test_alone_is_one_process_on_the_whole_batch():
    report = replicas.alone(run_of(3, seed=5), 0)
    model = training.Model(5)
    optimizer = torch.optim.SGD(model.parameters(), replicas.RATE)
    for step in range(replicas.STEPS):
        x, y = training.batch(5 + 100 * step, 3 * training.SAMPLES)
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        for name, p in model.named_parameters() if step == 0 else ():
            torch.testing.assert_close(report["gradients"][f"the gradient of {name}"], p.grad)
    for name, p in model.named_parameters():
        torch.testing.assert_close(report["end"][f"{replicas.LAST}{name}"], p.detach())


def test_the_model_notes_when_backward_comes_to_a_layer():
    """A layer's own gradients come after its mark and before the mark of the layer below."""
    model, events = training.Model(1), []
    model.begun = type("Noted", (dict,), {"__setitem__": lambda self, layer, _: events.append(layer)})()
    for number, layer in enumerate(model.layers):
        for p in layer.parameters():
            p.register_post_accumulate_grad_hook(lambda _, number=number: events.append(number))
    x, _ = training.batch(1)
    model(x).sum().backward()
    assert events == [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0]


def test_awkward_models():
    state = training.Model(1).state_dict()
    assert {"scale", "count"} <= state.keys()
    assert "shift" not in state
    tied = training.Model(1, hidden=(7, 7, 7), tied=(1, 2))
    assert tied.layers[1].weight is tied.layers[2].weight
    assert not any("layers.1" in name for name in training.Model(1, frozen=(1,)).trained())
    for skip in ("skipped", "skipped_on_odd"):
        run = run_of(2, seed=1, hidden=(7, 7, 7), **{skip: (1,)})
        gradients = replicas.alone(run, 0)["gradients"]
        assert gradients["the gradient of layers.1.weight"].any() == (skip == "skipped_on_odd")
        assert gradients["the gradient of layers.2.weight"].any()


def test_the_labs_adamw_is_torchs():
    build_labs = pytest.importorskip("ringzero_course.grading.build_labs")
    (source,) = (cell.source for cell in build_labs.source_notebook("06_zero").cells if "def adamw(" in cell.source)
    names = {"torch": torch}
    exec(source, names)
    mine, theirs = torch.randn(7, dtype=torch.float64), torch.nn.Parameter(torch.zeros(7, dtype=torch.float64))
    theirs.data.copy_(mine)
    optimizer, state = torch.optim.AdamW([theirs], **stages.ADAMW), {}
    for _ in range(5):
        theirs.grad = torch.randn(7, dtype=torch.float64)
        names["adamw"](mine, theirs.grad, state)
        optimizer.step()
    torch.testing.assert_close(mine, theirs.detach(), rtol=1e-12, atol=0)
    for number in stages.NUMBERS:
        torch.testing.assert_close(state[number], optimizer.state[theirs][number])


def test_parts_are_those_of_the_collectives():
    vector = torch.arange(10)
    assert torch.cat([part(vector, 3, rank) for rank in range(3)]).tolist() == list(range(10))
    bounds = chunk_bounds(10, 3).tolist()
    assert [part(vector, 3, rank)[0].item() for rank in range(3)] == bounds[:-1]


def test_alone_is_one_process_whatever_the_number_of_passes():
    """Gradients of several passes add up; those of the ranks are averaged."""
    once, again = (stages.alone(run_of(2, seed=3, steps=1, hidden=(5,), passes=passes), 0) for passes in (1, 2))
    module = training.Model(3, (5,))
    for rank in range(2):
        (training.loss_of(module, 3, rank, 2) / 2).backward()
    for name, p in module.named_parameters():
        torch.testing.assert_close(once["gradients"][name], p.grad)
        assert not torch.equal(once["gradients"][name], again["gradients"][name])
