"""The trained parameters end to end, cut into slices: what a worker pushes to the servers and pulls from them."""

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from ringzero.unsynced.end_to_end import joined, views

SLICE_BYTES = 256 * 1024


class Slice(NamedTuple):
    """Elements ``start`` to ``stop`` of all trained parameters end to end, which ``server`` keeps."""

    number: int
    server: int
    start: int
    stop: int


def cut(elements: int, element_bytes: int, servers: int, slice_bytes: float) -> list[Slice]:
    """Slices of at most ``slice_bytes``, handed to the servers in turn; at least one for each server."""
    longest = max(1, math.floor(min(slice_bytes / element_bytes, math.ceil(elements / servers))))
    starts = range(0, elements, longest)
    return [Slice(i, i % servers, start, min(start + longest, elements)) for i, start in enumerate(starts)]


def _where(parameter: Parameter) -> tuple[int, int]:
    """Its address, and how often it was written to."""
    return parameter.data_ptr(), parameter._version


class Sliced:
    """The parameters ``trained``, by name, in ``slices`` of at most ``slice_bytes`` for so many ``servers``.

    ``values``    the newest that have come, 1-D, on the CPU
    ``gradient``  what was taken in of this step's gradient, as long as ``values``
    """

    def __init__(self, trained: Mapping[str, Parameter], servers: int, slice_bytes: float):
        self._trained = dict(trained)
        parameters = list(trained.values())
        self.values = joined(parameters, device="cpu")
        self.gradient = torch.empty_like(self.values)
        self.slices = cut(len(self.values), self.values.element_size(), servers, slice_bytes)
        self._values_of = dict(zip(parameters, views(self.values, parameters), strict=True))
        self._gradient_of = dict(zip(parameters, views(self.gradient, parameters), strict=True))
        self._slices_of: dict[Parameter, list[int]] = {}
        stops = list(accumulate(p.numel() for p in parameters))
        for parameter, stop in zip(parameters, stops, strict=True):
            start = stop - parameter.numel()
            self._slices_of[parameter] = [s.number for s in self.slices if s.start < stop and start < s.stop]
        self._where = {p: _where(p) for p in parameters}
        self._old = set[Parameter]()  # their new values are not in the module yet
        self.expect_gradients()

    def expect_gradients(self) -> None:
        """A step begins: no slice is complete."""
        self._missing = {each.number: set[Parameter]() for each in self.slices}
        for parameter, numbers in self._slices_of.items():
            for number in numbers:
                self._missing[number].add(parameter)

    def missing(self) -> dict[str, Parameter]:
        """Parameters, by name, whose gradient was not taken in since ``expect_gradients``."""
        missing = set().union(*self._missing.values())
        return {name: parameter for name, parameter in self._trained.items() if parameter in missing}

    def take_gradient(self, parameter: Parameter) -> list[int]:
        """Copy ``parameter.grad``. Returns the slices that are complete now, the last one first.

        Raises ValueError for a sparse gradient, RuntimeError for a second one in a step.
        """
        gradient, numbers = parameter.grad, self._slices_of[parameter]
        assert gradient is not None
        if gradient.is_sparse:
            name = next(name for name, p in self._trained.items() if p is parameter)
            raise ValueError(f"the gradient of {name} is sparse; a parameter server needs dense ones: sparse=False")
        if any(parameter not in self._missing[number] for number in numbers):
            raise RuntimeError(
                "a second backward pass before step(): with overlap=True the first one's gradients have left; "
                "to add up gradients take overlap=False"
            )
        self._gradient_of[parameter].copy_(gradient.detach())
        for number in numbers:
            self._missing[number].remove(parameter)
        return [number for number in reversed(numbers) if not self._missing[number]]

    def written(self) -> list[str]:
        """Names of the parameters that the program has written to or replaced; ``write_back`` leaves no trace."""
        return [name for name, p in self._trained.items() if _where(p) != self._where[p]]

    def part(self, number: int, vector: Tensor) -> Tensor:
        """Where slice ``number`` lies in ``vector``."""
        return vector[self.slices[number].start : self.slices[number].stop]

    # ---- back into the module

    def expect_values(self, numbers: Iterable[int]) -> None:
        """New values of these slices are on the way, or have come, and are not in the module."""
        expected = set(numbers)
        self._old.update(parameter for parameter, some in self._slices_of.items() if expected.intersection(some))

    def expected(self, parameters: Iterable[Parameter]) -> set[int]:
        """The slices with new values for ``parameters``."""
        return {number for parameter in parameters if parameter in self._old for number in self._slices_of[parameter]}

    def write_back(self, parameters: Iterable[Parameter]) -> None:
        """Bring the new values of ``parameters`` into the module."""
        old = [parameter for parameter in parameters if parameter in self._old]
        for parameter in old:
            parameter.data.copy_(self._values_of[parameter])
        self._old.difference_update(old)
