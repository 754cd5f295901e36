"""A backward pass of layers that note when they compute: with the record of what was sent, proof of what overlapped.

The layers are stand-ins for layers on a GPU: ``backward`` sleeps, as a host does while its GPU works, and returns a
gradient that is known beforehand. So the layers of several ranks take no core from each other or from the messages.
"""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from ringzero.record import recorder


class Layer:
    """A layer of ``numel`` parameters. ``backward()`` returns its gradient, a new 1-D tensor, after ``seconds``."""

    def __init__(self, number: int, numel: int, seconds: float, noted: list):
        self._number, self._seconds, self._noted = number, seconds, noted
        self._gradient = gradient(dist.get_rank(), number, numel).to(torch.get_default_device())

    def backward(self) -> torch.Tensor:
        begin = time.time()
        with recorder.computing("backward"):
            time.sleep(self._seconds)
            found = self._gradient.clone()
        self._noted.append((self._number, begin, time.time()))
        return found


def gradient(rank: int, number: int, numel: int) -> torch.Tensor:
    """The gradient of layer ``number`` on ``rank``, on the CPU: whole numbers, so that sums are exact."""
    source = torch.Generator("cpu").manual_seed(1000 * rank + number)
    return torch.randint(-1000, 1000, (numel,), generator=source, device="cpu").float()


def make_layers(numels: list[int], seconds: float = 0.0) -> tuple[list[Layer], list[tuple[int, float, float]]]:
    """On a rank: the layers, and the list in which they note ``(layer, begin, end)`` as they run."""
    computed: list[tuple[int, float, float]] = []
    return [Layer(number, numel, seconds, computed) for number, numel in enumerate(numels)], computed


def one_step(backward_pass: Callable, numels: list[int], cap: float) -> dict:
    """On a rank: the ``gradients`` that came back, and what the layers noted, ``computed``."""
    layers, computed = make_layers(numels)
    return {"gradients": backward_pass(layers, cap), "computed": computed}
