"""Claims about runs of ``harness.optimizers``: the steps are torch's, and the state is two numbers a parameter."""

import torch

from ringzero.lab.claims.values import close
from ringzero.lab.harness.optimizers import gradients_of, start_and_gradients
from ringzero.lab.runs import Run


def adam_as_torch_does_it(run: Run) -> str | None:
    """Each parameter ends where ``torch.optim.Adam`` takes it."""
    seed, shape, steps, dtype, options = run.case.args
    start = torch.zeros(shape, dtype=dtype, device="cpu")
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    gradients = gradients_of(seed, shape, steps, dtype)
    without_hats = _without_hats(gradients, **options)
    why = _as_torch(run, torch.optim.Adam([start], **options), start, gradients, tolerance)
    if why and all(close("", [end], [without_hats], tolerance) is None for end in run.reports[0].ends.values()):
        return f"{why}: that is Adam without the hats, which undo the start of m and v at 0"
    return why


def _without_hats(gradients, lr, betas, eps, **_):
    p = m = v = torch.zeros_like(gradients[0])
    for g in gradients:
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
        p = p - lr * m / (v.sqrt() + eps)
    return p


def adamw_as_torch_does_it(run: Run) -> str | None:
    """The parameter ends where ``torch.optim.AdamW`` takes it."""
    seed, shape, steps, options = run.case.args
    start, gradients = start_and_gradients(seed, shape, steps)
    return _as_torch(run, torch.optim.AdamW([start], **options), start, gradients, 1e-10)


def _as_torch(run, optimizer, parameter, gradients, tolerance):
    start = parameter.clone()
    for parameter.grad in gradients:
        optimizer.step()
    what = f"the parameter after {len(gradients)} step{'s' * (len(gradients) > 1)}"
    ends = run.reports[0].ends.values()
    if all(torch.equal(end, start) for end in ends):
        return f"{what} is what it was before: a step is to change the tensor that it is given, in place"
    return next((why for end in ends if (why := close(what, [end], [parameter], tolerance))), None)


def keeps_two_numbers_each(run: Run) -> str | None:
    """The state holds two numbers a parameter, in its dtype, and perhaps a step count."""
    _, shape, _, dtype, _ = run.case.args
    expected = 2 * dtype.itemsize * torch.Size(shape).numel()
    kept = run.reports[0].kept
    if expected <= kept <= expected + 16:  # a step count, if it is a tensor
        return None
    return f"the state holds {kept} bytes of tensors, {kept / expected * 2:.3g} numbers a parameter, expected 2"


def keeps_no_more_than_adam(run: Run) -> str | None:
    """The state of AdamW is not larger than Adam's, in float64."""
    numbers = torch.Size(run.case.args[1]).numel()
    kept = run.reports[0].kept
    if kept <= 16 * numbers + 16:
        return None
    return f"the state holds {kept / (8 * numbers):.3g} numbers a parameter, expected 2"


def leaves_the_gradient_alone(run: Run) -> str | None:
    return None if run.reports[0].untouched else "the gradient was changed"
