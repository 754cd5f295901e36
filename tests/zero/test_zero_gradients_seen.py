"""Gradients that are in shards: what programs and torch's tools do to ``grad`` is right, or refused by name."""

from functools import partial
from itertools import product

import pytest
import torch
import torch.distributed as dist
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm

from ringzero import launch
from ringzero.zero import STAGES, Host

REFUSED = "is not here: the ranks have it in shards"
OPTIONS = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)).double()


def batch(step):
    return torch.randn(12, 6, generator=torch.Generator().manual_seed(step), dtype=torch.float64)


def alone(forgets):
    """What one process has after steps of two backward passes each, if gradients are forgotten or not."""
    module = network()
    optimizer = torch.optim.SGD(module.parameters(), **OPTIONS)
    for step in range(3):
        for half in range(2):
            module(batch(2 * step + half)).square().mean().backward()
        optimizer.step()
        if forgets:
            optimizer.zero_grad()
    return dict(module.state_dict())


def trained(make, step_of, forget):
    module = network()
    model = make(module)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    scheduler = torch.optim.lr_scheduler.LambdaLR(model.optimizer, lambda _: 1.0)
    for step in range(3):
        for half in range(2):
            x = batch(2 * step + half).tensor_split(ranks)[rank]
            (model(x).square().sum() * ranks / 36).backward()
        step_of(model)
        scheduler.step()
        forget(model)
    return model.state_dict()


FORGET = {
    "model": lambda model: model.zero_grad(),
    "module": lambda model: model.module.zero_grad(),
    "optimizer": lambda model: model.optimizer.zero_grad(),
    "another optimizer": lambda model: torch.optim.SGD(model.module.parameters()).zero_grad(),
    "parameters": lambda model: [setattr(p, "grad", None) for p in model.parameters()],
    "the optimizer's": lambda model: [
        setattr(p, "grad", None) for group in model.optimizer.param_groups for p in group["params"]
    ],
    "nobody": lambda model: None,
}
STEPS = {"model": lambda model: model.step(), "optimizer": lambda model: model.optimizer.step()}


def every_way():
    results = {}
    for (of, forget), stage in product(FORGET.items(), STAGES):
        for by, step in STEPS.items() if of == "nobody" else [("model", STEPS["model"])]:
            results[stage, of, by] = trained(partial(STAGES[stage], optimizer=torch.optim.SGD, **OPTIONS), step, forget)
    for of in ("module", "optimizer"):
        results["host", of, "optimizer"] = trained(
            lambda m: STAGES[3](m, torch.optim.SGD, home=Host(), **OPTIONS), STEPS["optimizer"], FORGET[of]
        )
    return results


def test_the_program_may_forget_gradients_and_step_in_every_way_of_torch_s():
    wants = {forgets: alone(forgets) for forgets in (True, False)}
    for (stage, of, by), got in launch(every_way, world_size=2).returns[0].items():
        for name, want in wants[of != "nobody"].items():
            torch.testing.assert_close(got[name], want, rtol=0, atol=1e-12, msg=f"{name}: {stage}, {of}, {by}")


def doubled(p):
    if p.grad is not None:
        p.grad *= 2


def unscaled(model):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(torch.ones(()))
    scaler.unscale_(model.optimizer)


FOREIGN = {
    "clip_grad_norm_": lambda m: clip_grad_norm_(m.module.parameters(), 0.01),
    "clip_grad_norm_ of the model": lambda m: clip_grad_norm_(m.parameters(), 0.01, foreach=False),
    "clip_grad_norm_ of shards": lambda m: clip_grad_norm_(m.optimizer.param_groups[0]["params"], 0.01),
    "clip_grad_value_": lambda m: clip_grad_value_(m.parameters(), 0.01),
    "get_total_norm": lambda m: get_total_norm([p.grad for p in m.parameters() if p.grad is not None]),
    "scaled": lambda m: [doubled(p) for p in m.parameters()],
    "kept": lambda m: [p.grad.clone() for p in m.parameters() if p.grad is not None],
    "zeroed in place": lambda m: m.module.zero_grad(set_to_none=False),
    "a list": lambda m: next(m.parameters()).grad.tolist(),
    "an array": lambda m: next(m.parameters()).grad.numpy(),
    "torch's scaler": unscaled,
}
REPLACED = {
    "given": lambda m: setattr(
        (p := next(m.module.parameters())), "grad", torch.ones(p.data_ptr() and (7, 6), dtype=torch.float64)
    ),
    "one taken away": lambda m: setattr(next(m.module.parameters()), "grad", None),
    "another optimizer": lambda m: torch.optim.SGD(m.module.parameters(), lr=0.1).step(),
}


def sentences(acts, then_step):
    said = {}
    for stage, (name, act) in product(STAGES, acts.items()):
        model = STAGES[stage](network(), torch.optim.SGD, lr=0.1)
        model(batch(0)).sum().backward()
        assert "in shards" in repr(next(model.parameters()).grad)
        try:
            act(model)
            if then_step:
                model.step()
            said[stage, name] = "silent"
        except RuntimeError as error:
            said[stage, name] = str(error)
    return said


def test_what_computes_with_gradients_that_are_not_there_is_refused_by_name():
    for case, text in launch(sentences, FOREIGN, False, world_size=2).returns[0].items():
        assert REFUSED in text, (case, text)
        assert "0.weight" in text or "2." in text, (case, text)


def test_gradients_of_the_program_s_own_are_not_left_out_of_a_step():
    for (stage, name), text in launch(sentences, REPLACED, True, world_size=2).returns[0].items():
        assert ("has sharded" if name == "another optimizer" else "0.weight") in text, (stage, name, text)


def in_one_buffer(model):
    """The program's own memory for all gradients."""
    parameters = list(model.module.parameters())
    buffer = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float64)
    for parameter, part in zip(parameters, buffer.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = part.view(parameter.shape)
    return buffer


def with_gradients_of_its_own(stage, keeps):
    """Its gradients are added to, but where the program keeps them it would look for the mean."""
    model = STAGES[stage](network(), torch.optim.SGD, **OPTIONS)
    kept = [in_one_buffer(model)] if keeps == "a buffer" else []
    for parameter in model.module.parameters() if not kept else ():
        parameter.grad = torch.ones_like(parameter)
        kept += [parameter.grad] if keeps == "each" else []
    try:
        model(batch(0)).square().mean().backward()
        model.step()
    except RuntimeError as error:
        return str(error)
    return dict(model.state_dict())


@pytest.mark.parametrize("stage", [1, 2])
def test_gradients_that_the_program_keeps_are_refused_and_others_added_to(stage):
    for keeps in ("a buffer", "each"):
        for said in launch(with_gradients_of_its_own, stage, keeps).returns:
            assert said.startswith("the program holds the gradient of ")
            assert "0.weight" in said
    module = network()
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    module(batch(0)).square().mean().backward()
    torch.optim.SGD(module.parameters(), **OPTIONS).step()
    for state in launch(with_gradients_of_its_own, stage, "nothing").returns:
        torch.testing.assert_close(state, dict(module.state_dict()), rtol=0, atol=1e-12)


def values_clipped():
    module, model = network(), network()
    module(batch(0)).square().mean().backward()
    clip_grad_value_(module.parameters(), 1e-3)
    torch.optim.SGD(module.parameters(), lr=1.0).step()
    model = STAGES[2](model, torch.optim.SGD, lr=1.0)
    model(batch(0)).square().mean().backward()
    model.clip_grad_value_(1e-3)
    model.step()
    return max((model.state_dict()[name] - want).abs().max().item() for name, want in module.state_dict().items())


def test_values_are_clipped_as_by_torch():
    assert max(launch(values_clipped, world_size=3).returns) < 1e-15


class Complex(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.w = torch.nn.Parameter(torch.randn(5, 3, dtype=torch.complex128))

    def forward(self, x):
        return (x @ self.w).abs()


def complex_clipped(stage):
    def loss(model):
        return model(batch(0)[:, :5].to(torch.complex128)).square().mean()

    one, other = Complex(), Complex()
    loss(one).backward()
    want = clip_grad_norm_(one.parameters(), 0.1)
    torch.optim.SGD(one.parameters(), lr=1.0).step()
    model = STAGES[stage](other, torch.optim.SGD, lr=1.0)
    loss(model).backward()
    norm = model.clip_grad_norm_(0.1)
    model.step()
    return max((norm - want).abs().item(), (model.state_dict()["w"] - one.w).abs().max().item())


@pytest.mark.parametrize("stage", STAGES)
def test_complex_gradients_are_clipped_as_by_torch(stage):
    assert max(launch(complex_clipped, stage, world_size=2).returns) < 1e-12
