"""Steps of an optimizer that is written by hand: where the parameters end, and what is kept for the next step."""

from collections.abc import Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ringzero.lab.harness.kept import Kept, bytes_of
from ringzero.lab.unaided import unaided

LATER = 2  # steps after which a run has the options ``later``


def gradients_of(seed: int, shape: tuple, steps: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Small ones, so that eps matters, and smaller and smaller, so that the moments do; the third is 0."""
    source = torch.Generator("cpu").manual_seed(seed)
    every = torch.randn(steps, *shape, generator=source, dtype=torch.float64, device="cpu")
    return [(0.01 * g / (t + 1) * (t != 2)).to(dtype) for t, g in enumerate(every)]


def start_and_gradients(
    seed: int, shape: tuple, steps: int, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Where AdamW begins, and gradients, of which the third is 0."""
    source = torch.Generator("cpu").manual_seed(seed)
    start, *gradients = torch.randn(steps + 1, *shape, generator=source, dtype=torch.float64, device="cpu").to(dtype)
    return start, [g * (t != 2) for t, g in enumerate(gradients)]


def several_adam_steps(
    adam_step: Callable, seed: int, shape: tuple, steps: int, dtype: torch.dtype, options: dict, turned: bool = False,
    later: dict | None = None,
) -> dict:  # fmt: skip
    """Steps of two parameters in turn, each with a state of its own; see ``_steps``.

    With ``turned`` they lie in memory column by column. ``later`` are options that change after two steps.
    """

    def given():
        return torch.zeros(shape, dtype=dtype, device="cpu"), gradients_of(seed, shape, steps, dtype)

    return _steps(adam_step, given, options, later, turned)


def several_adamw_steps(
    adamw_step: Callable, seed: int, shape: tuple, steps: int, options: dict, precision: torch.dtype = torch.float64,
    turned: bool = False, later: dict | None = None,
) -> dict:  # fmt: skip
    """The same for AdamW."""
    return _steps(adamw_step, lambda: start_and_gradients(seed, shape, steps, precision), options, later, turned)


class NothingFused(TorchDispatchMode):
    """Inside, torch's whole steps of Adam, which are single operations, raise an error."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "fused_adam" in str(function):
            raise RuntimeError(f"{function} is a whole step of torch's own: write it with operations on tensors")
        return function(*args, **(kwargs or {}))


def _steps(step: Callable, given: Callable, options: dict, later: dict | None, turned: bool) -> dict:
    """A step of two parameters in turn for each gradient; ``given()`` is where both begin, and the gradients.

    Reported are where they end (``ends``), bytes of the tensors in the first one's state (``kept``), bytes of tensors
    that are kept elsewhere (``elsewhere``) and of Python's own memory (``in_python``), and whether the gradients stayed
    as they were.
    """
    here, untouched = torch.get_default_device(), True
    parameters: list[torch.Tensor] = []
    names = "first", "second"
    states: list[dict] = [{} for _ in names]
    with NothingFused():  # torch before 2.13 imports torch.optim at the first operation in such a mode
        torch.zeros(())
    with unaided("torch.optim"), NothingFused(), Kept() as kept:
        start, gradients = given()
        start = start.mT.contiguous().mT if turned else start
        parameters += [start.clone().to(here).requires_grad_() for _ in names]
        places = [p.data_ptr() for p in parameters]
        for t, gradient in enumerate(gradients):
            now = options | (later or {}) if t >= LATER else options
            for parameter, state in zip(parameters, states, strict=True):
                mine = gradient.clone().to(here)
                step(parameter, mine, state, **now)
                untouched = untouched and torch.equal(mine, gradient.to(here))
        del start, gradients, gradient, mine, parameter, state
    return {
        "ends": {name: p.detach() for name, p in zip(names, parameters, strict=True)},
        "kept": bytes_of(states[0]),
        "elsewhere": kept.tensors - bytes_of(states) - bytes_of(parameters),
        "in_python": kept.in_python,
        "untouched": untouched,
        "in_place": all(p.data_ptr() == place and p.requires_grad for p, place in zip(parameters, places, strict=True)),
    }
