"""One communication that was issued: what it reads and writes, and when the program may see its result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from ringzero.record import sources
from ringzero.strict.accesses import Extent
from ringzero.strict.streams import Clock

POISON = 255  # of each byte: NaN in a floating-point tensor, -1 in one of whole numbers
Tensors = list[torch.Tensor]


class Traffic(NamedTuple):
    """What an operation exchanges: ``{peer: tensor}``. An empty message still tells the peer what is called."""

    sends: Mapping[int, torch.Tensor]
    receives: Mapping[int, torch.Tensor]


class Pending:
    """An operation that was issued. Its outputs hold poison until it is over and somebody may look.

    ``kind``      "send", "all_reduce" and so on; ``says``, what the other ranks' must say too, such as the type
    ``plan``      ``plan(inputs)`` gives its ``Traffic``, and a function that makes the results when that has arrived
    ``outputs``   get the results, one for one; ``given``, the same tensors as the caller has them
    ``clock``     of the communicator's stream after it; ``number``, of that stream and of it there
    ``recorded``  ``(recorder, offset)``, so that a hang can be explained, or None
    """

    def __init__(
        self,
        kind: str,
        says: str,
        inputs: Tensors,
        outputs: Tensors,
        plan: Callable[[Tensors], tuple[Traffic, Callable[[], Tensors]]],
    ):
        self.kind, self.says, self.plan = kind, says, plan
        self.place = sources.place(*sources.callers_line())
        self.inputs, self.outputs = [own_view(t) for t in inputs], [own_view(t) for t in outputs]
        self.given = outputs
        self.clock: Clock = {}
        self.number = (0, 0)
        self.waited = self.settled = False
        self.recorded: tuple[Any, int | None] | None = None
        self.error: BaseException | None = None
        self.results: Tensors = []
        self._over, self._settling = threading.Event(), threading.Lock()

    def __str__(self) -> str:
        return f"the {self.kind} ({self.place})"

    def works_in_place(self) -> bool:
        """Whether an output is in the memory of an input."""
        return any(Extent.of(a).meets(Extent.of(b)) for a in self.inputs for b in self.outputs if same_storage(a, b))

    def read_inputs(self) -> None:
        """From now on the inputs may change."""
        self.inputs = [tensor.clone() for tensor in self.inputs]

    def poison_outputs(self) -> None:
        for output in self.outputs:
            output.view(-1).view(torch.uint8).fill_(POISON)

    def is_over(self) -> bool:
        return self._over.is_set()

    def ended(self) -> None:
        """It is over, with ``results`` or with an ``error``. Keep nothing that it sent: on a GPU it is freed."""
        self.inputs, self.plan = [], _over
        if self.recorded is not None and self.error is None:
            self.recorded[0].has_ended(self.recorded[1])
        self._over.set()

    def wait(self) -> None:
        """The program asks to wait for it."""
        self.waited = True
        if self.recorded is not None:
            self.recorded[0].was_waited_for(self.recorded[1])

    def has_not_waited(self) -> None:
        """Take back the note of ``wait``: the program has not asked yet."""
        if self.recorded is not None and self.recorded[1] is not None:
            self.recorded[0].was_not_waited_for(self.recorded[1])

    def settle(self) -> None:
        """Block this thread until it is over, and copy the results to the outputs. Raises what went wrong."""
        if not self.is_over() and self.recorded is not None:
            self.recorded[0].begins_to_wait(self.recorded[1])
        self._over.wait()
        if self.error is not None:
            raise self.error
        with self._settling:  # a thread that comes second must not go on before the first has copied
            if not self.settled:
                for output, result in zip(self.outputs, self.results, strict=True):
                    output.copy_(result)
                self.outputs, self.given, self.results = [], [], []
                self.settled = True


def _over(_: Tensors) -> tuple[Traffic, Callable[[], Tensors]]:
    raise AssertionError("an operation is carried out once")


def own_view(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, with a version of its own: to write there is no in-place operation for autograd.

    What inference mode makes may be written in that mode only, and results may be copied when the program has left it.
    """
    with torch.inference_mode(False):
        empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        return empty.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


def same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata
