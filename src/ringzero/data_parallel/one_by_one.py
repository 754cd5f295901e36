"""What a replica whose gradients travel one by one owes the other ranks after an error of its backward pass."""

import torch
from torch.nn import Parameter

from ringzero.data_parallel.replica import Replica


class OneByOne(Replica):
    """``gradient_ready`` sends each gradient and waits for it. The last one of a pass carries ``Replica``'s mark."""

    def backward_begins(self) -> None:
        self._came: list[Parameter] = []

    def _ready(self, parameter: Parameter) -> None:
        self._came.append(parameter)
        if len(self._came) == len(self.trained):
            self.marks.put(parameter.grad, self.group.size())
        self.gradient_ready(parameter)

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
        order = getattr(self, "_order", reversed(self.trained.values()))
        self.marks.owes = len(self._came) == len(self.trained)
        for parameter in [p for p in order if p not in set(self._came)]:
            parameter.grad = torch.zeros_like(parameter)
            self._ready(parameter)
        if self.marks.owes:
            self.compare_weights()
        else:
            self.marks.check(self._came[-1].grad)
