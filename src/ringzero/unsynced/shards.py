"""The chunks of a flat vector that a rank keeps, and the optimizer that steps them.

A chunk travels as *rows*: a matrix whose first row are its parameters, and whose other rows are the optimizer's states
that have a number for each parameter. What else the optimizer knows, such as how many steps were done, is the same for
all chunks, and travels as plain data.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ringzero.zero.optimizers import ELEMENTWISE


class Shards:
    """``kept`` is ``{chunk: its parameters}``; their states are in ``optimizer``, an ``optimizer_class(**options)``.

    Raises TypeError or ValueError for an optimizer that cannot step a chunk alone.
    """

    def __init__(self, optimizer_class: type[torch.optim.Optimizer], options: Mapping[str, Any]):
        names = ", ".join(ELEMENTWISE)
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, torch.optim.Optimizer)):
            raise TypeError(f"optimizer is {optimizer_class!r}; give one of these classes of torch.optim: {names}")
        if optimizer_class not in ELEMENTWISE.values():
            raise ValueError(f"a chunk cannot be stepped by {optimizer_class.__name__} alone; give one of {names}")
        self.kept: dict[int, torch.nn.Parameter] = {}
        self.optimizer = optimizer_class([torch.nn.Parameter(torch.zeros(1, device="cpu"))], **options)

    def step(self, gradients: Mapping[int, Tensor]) -> None:
        """Step all chunks, each with its gradient."""
        for chunk, parameters in self.kept.items():
            parameters.grad = gradients[chunk]
        with torch.device("cpu"):
            self.optimizer.step()

    def rows(self, chunk: int) -> Tensor:
        """The chunk's parameters and states, as a matrix."""
        parameters = self.kept[chunk]
        return torch.stack([parameters.detach(), *(value for value in self._state(parameters).values() if value.dim())])

    def about(self) -> dict[str, Any]:
        """What the rows are, and the states that have one number for all chunks."""
        state = self._state(next(iter(self.kept.values())))
        return {
            "rows": [key for key, value in state.items() if value.dim()],
            "numbers": {key: value.item() for key, value in state.items() if not value.dim()},
        }

    def replace(self, rows: Mapping[int, Tensor], about: Mapping[str, Any]) -> None:
        """From now on keep these chunks, which are ``rows`` as ``about`` says; they are used, not copied."""
        self.kept = {chunk: torch.nn.Parameter(parameters) for chunk, (parameters, *_) in rows.items()}
        self.optimizer.param_groups[0]["params"] = list(self.kept.values())
        self.optimizer.state.clear()
        for chunk, parameters in self.kept.items():
            state = dict(zip(about["rows"], rows[chunk][1:], strict=True))
            state |= {key: torch.tensor(value, device="cpu") for key, value in about["numbers"].items()}
            if state:  # before the first step there is none
                self.optimizer.state[parameters] = state

    def _state(self, parameters: Tensor) -> dict[str, Tensor]:
        state = self.optimizer.state.get(parameters, {})
        return {key: value for key, value in state.items() if isinstance(value, Tensor)}
