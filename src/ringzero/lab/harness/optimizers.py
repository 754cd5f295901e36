"""Steps of an optimizer that is written by hand: where the parameters end, and what is kept for the next step."""

from collections.abc import Callable

import torch


def gradients_of(seed: int, shape: tuple, steps: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Small ones, so that eps matters, and fewer and fewer, so that the moments do."""
    source = torch.Generator("cpu").manual_seed(seed)
    every = torch.randn(steps, *shape, generator=source, dtype=torch.float64, device="cpu")
    return [(0.01 * g / (t + 1)).to(dtype) for t, g in enumerate(every)]


def start_and_gradients(seed: int, shape: tuple, steps: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    source = torch.Generator("cpu").manual_seed(seed)
    start, *gradients = torch.randn(steps + 1, *shape, generator=source, dtype=torch.float64, device="cpu")
    return start, gradients


def several_adam_steps(
    adam_step: Callable, seed: int, shape: tuple, steps: int, dtype: torch.dtype, options: dict
) -> dict:
    """Two parameters in turn, each with a state of its own: where they end, and the bytes of the first one's state."""
    here = torch.get_default_device()
    first, second = (torch.zeros(shape, dtype=dtype, device=here, requires_grad=True) for _ in range(2))
    states: list[dict] = [{}, {}]
    untouched = True
    for g in gradients_of(seed, shape, steps, dtype):
        for parameter, state in zip((first, second), states, strict=True):
            given = g.to(here)
            adam_step(parameter, given, state, **options)
            untouched = untouched and torch.equal(given, g.to(here))
    ends = {"first": first.detach(), "second": second.detach()}
    return {"ends": ends, "kept": _bytes_of(states[0]), "untouched": untouched}


def several_adamw_steps(adamw_step: Callable, seed: int, shape: tuple, steps: int, options: dict) -> dict:
    """One parameter: where it ends, and the bytes of its state."""
    here = torch.get_default_device()
    start, gradients = start_and_gradients(seed, shape, steps)
    parameter = start.to(here).requires_grad_()
    state: dict = {}
    for gradient in gradients:
        adamw_step(parameter, gradient.to(here), state, **options)
    return {"ends": {"only": parameter.detach()}, "kept": _bytes_of(state)}


def _bytes_of(state):
    """Bytes of the tensors in a state, each storage counted once."""
    storages = [value.untyped_storage() for value in state.values() if torch.is_tensor(value)]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
