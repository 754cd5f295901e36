"""Claims about runs of ``harness.optimizers``: the steps are torch's, and the state is two numbers a parameter.

A wrong end is compared with what usual mistakes come to. The reason names the mistake that was found.
"""

import torch

from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.values import close
from ringzero.lab.harness.optimizers import LATER, gradients_of, start_and_gradients
from ringzero.lab.runs import Run

COUNTED_FROM = 20_000  # numbers: below, Python's own memory is too little to tell from chance
# Usual mistakes as options of ``_ends``.
MISTAKES = {
    "ε stands under the root here, and outside of it in the formula": {"inside": True},
    "the moments are not corrected: the hats are missing": {"corrected": False},
    "the steps are counted from 0, the formula counts them from 1": {"late": 1},
    "betas[0] and betas[1] are exchanged": {"exchanged": True},
    "the betas are always 0.9 and 0.999, whatever was given": {"betas": (0.9, 0.999)},
    "ε is always 1e-8, whatever was given": {"eps": 1e-8},
    "lr is always 0.001, whatever was given": {"lr": 1e-3},
    "there is no decay": {"decay": "none"},
    "the decay is added to the gradient: that is L2 regularisation": {"decay": "in the gradient"},
    "the parameter decays by λ, not by lr · λ": {"decay": "without lr"},
    "the parameter decays in the first step only": {"decay": "once"},
    "the parameter decays after Adam's step, so the update decays too": {"decay": "after"},
    "where the gradient is 0 the parameter does not decay": {"decay": "by a gradient"},
    "the parameter grows where it should decay: the sign": {"decay": "grows"},
}


def adam_as_torch_does_it(run: Run) -> str | None:
    """Each parameter ends where ``torch.optim.Adam`` takes it."""
    seed, shape, steps, dtype, options = run.case.args
    start = torch.zeros(shape, dtype=dtype, device="cpu")
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    gradients = gradients_of(seed, shape, steps, dtype)
    return _as_torch(run, torch.optim.Adam, options, start, gradients, tolerance)


def adamw_as_torch_does_it(run: Run) -> str | None:
    """The parameter ends where ``torch.optim.AdamW`` takes it."""
    seed, shape, steps, options = run.case.args
    dtype = run.option("precision", torch.float64)
    start, gradients = start_and_gradients(seed, shape, steps, dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-10
    return _as_torch(run, torch.optim.AdamW, {"weight_decay": 0.01} | options, start, gradients, tolerance)


def _as_torch(run, make, options, start, gradients, tolerance):
    if not run.reports[0].in_place:
        return "the parameter has other memory now, or is not trained any more: write into the memory that it has"
    parameter = start.clone()
    optimizer = make([parameter], **options)
    for t, parameter.grad in enumerate(gradients):
        if t == LATER:
            optimizer.param_groups[0].update(run.option("later") or {})
        optimizer.step()
    what = f"the parameter after {len(gradients)} step{'s' * (len(gradients) > 1)}"
    for name, end in run.reports[0].ends.items():
        why = close(what, [end], [parameter], tolerance)
        if why and name == "second":
            return f"one parameter is right, another that is stepped in turn is not: has each a state of its own? {why}"
        if why and run.option("later"):
            return f"{why.removeprefix('on rank 0 ')}: after {LATER} steps other options are given"
        if why:
            return _mistake(end, options, start, gradients, parameter, tolerance) or why.removeprefix("on rank 0 ")
    return None


def _mistake(end, options, start, gradients, right, tolerance):
    """The mistake of which ``end`` is the result, as a sentence; None if it is no usual one."""
    if torch.equal(end.to(start.dtype), start):
        return "the parameter is what it was before: change it in place"
    if end.shape == start.shape and not end.isfinite().all():
        return "the parameter has values that are no numbers: is a root taken below 0, or divided by 0?"
    for sentence, mistake in MISTAKES.items():
        wrong = _ends(start.double(), [g.double() for g in gradients], **({"weight_decay": 0.0} | options | mistake))
        near, far = close("", [end], [wrong], 10 * tolerance), close("", [right], [wrong], 100 * tolerance)
        if near is None and far is not None:
            return sentence
    if right.dtype == torch.float64 and not close("", [end], [right], 1e-5):
        return "the parameter is right to seven digits only: what the state holds has its type, float64"
    return None


def _ends(
    p, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, inside=False, corrected=True, late=0,
    exchanged=False, decay="as AdamW",
):  # fmt: skip
    """Where Adam, or AdamW, takes a parameter with a mistake in it."""
    betas = betas[::-1] if exchanged else betas
    m, v = torch.zeros_like(p), torch.zeros_like(p)
    shrinks = {"as AdamW": lr, "without lr": 1.0, "grows": -lr}.get(decay, 0.0) * weight_decay
    for t, gradient in enumerate(gradients, 1):
        due = decay == "by a gradient" and gradient.any() or decay == "once" and t == 1
        p = p * (1 - (lr * weight_decay if due else shrinks))
        g = gradient + weight_decay * p if decay == "in the gradient" else gradient
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        step = max(1, t - late)
        m_hat, v_hat = (x / (1 - beta**step) if corrected else x for x, beta in zip((m, v), betas, strict=True))
        p = p - lr * m_hat / ((v_hat + eps).sqrt() if inside else v_hat.sqrt() + eps)
        p = p * (1 - lr * weight_decay) if decay == "after" else p
    return p


@given(adam_as_torch_does_it)
def keeps_two_numbers_each(run: Run) -> str | None:
    """The state holds two numbers a parameter, in its dtype, and perhaps a step count; nothing is kept elsewhere."""
    _, shape, _, dtype, _ = run.case.args
    return _keeps(run.reports[0], torch.Size(shape).numel(), dtype.itemsize)


@given(adamw_as_torch_does_it)
def keeps_no_more_than_adam(run: Run) -> str | None:
    """The same for AdamW: the decay needs no memory."""
    return _keeps(run.reports[0], torch.Size(run.case.args[1]).numel(), run.option("precision", torch.float64).itemsize)


def _keeps(report, numbers, size):
    """Why a state holds other than two numbers a parameter, of ``size`` bytes each, or something is kept elsewhere."""
    per_parameter = f"{report.kept / size / numbers:.3g} numbers a parameter, expected 2"
    if numbers >= COUNTED_FROM and report.in_python > size * numbers / 2:
        return (
            f"{report.in_python:,} bytes are kept in NumPy arrays or lists: keep the two moments as tensors in the "
            "state, and nothing else"
        )
    if report.kept < 2 * size * numbers:
        return f"the state holds tensors of {report.kept} bytes, {per_parameter} in the parameter's type"
    if report.kept > 2 * size * numbers + 16:  # a step count, if it is a tensor
        return f"the state holds tensors of {report.kept} bytes, {per_parameter}"
    if report.elsewhere > 16:
        return (
            f"{report.elsewhere} bytes of tensors are kept outside the state: what the next step needs belongs into it"
        )
    return None


@given(adam_as_torch_does_it)
def leaves_the_gradient_alone(run: Run) -> str | None:
    """The gradient is what it was before the step."""
    return None if run.reports[0].untouched else "adam_step changed the gradient that it was given"


@given(adamw_as_torch_does_it)
def adamw_leaves_the_gradient_alone(run: Run) -> str | None:
    """So it is before AdamW's."""
    return None if run.reports[0].untouched else "adamw_step changed the gradient that it was given"
