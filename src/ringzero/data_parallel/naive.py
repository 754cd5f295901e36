"""Data parallelism without overlap: a message for each gradient, which the backward pass waits for."""

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.nn import Parameter

from ringzero.collectives.torchs import contiguous
from ringzero.data_parallel.replica import Replica


class NaiveDataParallel(Replica):
    """All-reduce each gradient as soon as it is there, and wait for it: a message a parameter, and no overlap.

    The last gradient of a pass carries the mark of ``marks.py``.
    """

    def backward_begins(self) -> None:
        self._came: list[Parameter] = []

    def gradient_ready(self, parameter: Parameter) -> None:
        gradient = parameter.grad
        assert gradient is not None
        self._came.append(parameter)
        if len(self._came) == len(self.trained):
            self.marks.put(gradient, self.group.size())
        gradient.div_(self.group.size())
        with nullcontext(gradient) if gradient.is_sparse else contiguous(gradient) as numbers:  # laid out as parameters
            dist.all_reduce(numbers, group=self.group)

    def backward_over(self) -> None:
        super().backward_over()
        self._order = self._came  # of the next pass, too
        self.marks.check(self._came[-1].grad)
        self.compare_weights()

    def _missing(self) -> list[str]:
        """What did not come in this pass: a gradient that no_sync left may be there, of this rank alone."""
        came = set(self._came)
        return [name for name, p in self.trained.items() if p not in came]

    def abandon(self) -> None:
        """What this rank owes the others after an error of its backward pass: zeros, in the order of the last pass."""
        order = getattr(self, "_order", reversed(self.trained.values()))
        self.marks.owes = len(self._came) == len(self.trained)
        for parameter in [p for p in order if p not in set(self._came)]:
            parameter.grad = torch.zeros_like(parameter)
            self.gradient_ready(parameter)
        if self.marks.owes:
            self.compare_weights()
        else:
            self.marks.check(self._came[-1].grad)
