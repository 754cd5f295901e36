"""What a training step is made of: a model's units, such as layers, as numbers."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple


class Unit(NamedTuple):
    """A part of a model, for one micro-batch on one rank.

    ``parameters``  elements of each of its tensors, in the order in which the module has them
    ``forward``, ``backward``  seconds of computing
    ``kept``        bytes of activations between the two
    ``output``      bytes that it hands to the next unit
    """

    name: str
    parameters: tuple[int, ...]
    forward: float
    backward: float
    kept: float = 0.0
    output: float = 0.0

    @property
    def elements(self) -> int:
        return sum(self.parameters)


class Bucket(NamedTuple):
    """Gradients that travel together. It is full when the backward pass of unit number ``last`` has ended."""

    elements: int
    last: int


def buckets(
    units: Sequence[Unit], cap_bytes: float, bytes_per_element: float, first_bytes: float = 2**20
) -> list[Bucket]:
    """Buckets as ``data_parallel.buckets.assign`` cuts them, in the order in which they leave: the last layer first.

    A bucket closes once it holds ``cap_bytes``, the first once it holds ``first_bytes``.
    """
    closed, filling, cap, last = [], 0, min(first_bytes, cap_bytes), 0
    for number in reversed(range(len(units))):
        for elements in reversed(units[number].parameters):
            filling, last = filling + elements, number
            if filling * bytes_per_element >= cap:
                closed.append(Bucket(filling, last))
                filling, cap = 0, cap_bytes
    return [*closed, Bucket(filling, last)] if filling else closed


def one_bucket(units: Sequence[Unit]) -> list[Bucket]:
    """All gradients together."""
    return buckets(units, inf, 1, inf)


def one_each(units: Sequence[Unit]) -> list[Bucket]:
    """A bucket for each unit that has parameters."""
    return [Bucket(unit.elements, number) for number, unit in reversed(list(enumerate(units))) if unit.elements]
