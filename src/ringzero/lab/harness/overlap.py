"""A backward pass of layers that note when they compute: with the record of what was sent, proof of what overlapped.

The layers are stand-ins for layers on a GPU: ``backward`` sleeps, as a host does while its GPU works, and returns a
gradient that is known beforehand. So the layers of several ranks take no core from each other or from the messages.
"""

import operator
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.distributed as dist

from ringzero.lab.payloads import doubled, no_other_way, payloads
from ringzero.record import recorder
from ringzero.record.recording_group import TracedWork


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
    """The gradient of layer ``number`` on ``rank``, on the CPU: numbers of eighths, so that sums are exact."""
    source = torch.Generator("cpu").manual_seed(1000 * rank + number)
    return torch.randint(-1000, 1000, (numel,), generator=source, device="cpu").float() / 8


def make_layers(numels: list[int], seconds: float = 0.0) -> tuple[list[Layer], list[tuple[int, float, float]]]:
    """On a rank: the layers, and the list in which they note ``(layer, begin, end)`` as they run."""
    computed: list[tuple[int, float, float]] = []
    return [Layer(number, numel, seconds, computed) for number, numel in enumerate(numels)], computed


def one_step(backward_pass: Callable, numels: list[int], cap: float, again: bool = False) -> dict:
    """On a rank: the ``gradients`` that came back, what the layers noted, ``computed``, and the tensors ``sent``.

    ``asked`` are the times at which the program asked whether an all-reduce was over. Who asks until it is, waits.
    ``layers_left`` says how many layers are where they were in the list. With ``again`` there is a second step, on its
    way all that is sent is ``doubled``; ``doubled`` are the gradients that came back then.
    """
    layers, computed = make_layers(numels)
    given = list(layers)
    found: dict[str, Any] = {}
    with noting_questions() as asked, payloads() as sent:
        found["gradients"] = backward_pass(given, cap)
    found |= {"computed": list(computed), "asked": list(asked), "sent": list(sent)}
    found["layers_left"] = sum(map(operator.is_, given, layers))
    if again:
        with doubled(), no_other_way():
            found["doubled"] = backward_pass(layers, cap)
    return found


@contextmanager
def noting_questions() -> Iterator[list[float]]:
    """Inside, a list grows by the time of each question to a work handle, or to its future, that is not ``wait()``."""
    asked: list[float] = []
    is_completed, get_future = TracedWork.is_completed, TracedWork.get_future

    def asks(work):
        asked.append(time.time())
        return is_completed(work)

    with ExitStack() as stack:
        for name, noting in (("is_completed", asks), ("get_future", lambda work: Future(get_future(work), asked))):
            stack.callback(setattr, TracedWork, name, getattr(TracedWork, name))
            setattr(TracedWork, name, noting)
        yield asked


class Future:
    """A future that adds the time to ``asked`` when somebody asks or waits for it."""

    def __init__(self, future: Any, asked: list[float]):
        self._future, self._asked = future, asked

    def wait(self) -> Any:
        self._asked.append(time.time())
        return self._future.wait()

    def done(self) -> bool:
        self._asked.append(time.time())
        return self._future.done()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._future, name)
