"""The trained parameters of a module as one flat vector on the CPU."""

import torch
from torch import Tensor

from ringzero.data_parallel.vector import dense
from ringzero.unsynced.end_to_end import joined, views, write_back
from ringzero.unsynced.packed import Packed


class FlatModule:
    """``module`` as a vector of ``numel`` numbers: its trained parameters end to end, in the order of the module.

    ``untrained`` are its buffers and frozen parameters. The module may be on a GPU.

    Raises ValueError unless there are trained parameters and all of them are float32.
    """

    def __init__(self, module: torch.nn.Module):
        self.trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not self.trained:
            raise ValueError("no parameter of the module requires a gradient, so there is nothing to train")
        if others := sorted({str(parameter.dtype) for parameter in self.trained} - {"torch.float32"}):
            raise ValueError(f"the module has parameters of {', '.join(others)}; convert it with module.float()")
        self.numel = sum(parameter.numel() for parameter in self.trained)
        mine = {id(parameter) for parameter in self.trained}
        self.untrained = Packed(t for t in (*module.parameters(), *module.buffers()) if id(t) not in mine)

    def parameters(self) -> Tensor:
        """The vector."""
        return joined(self.trained, device="cpu")

    def write(self, vector: Tensor) -> None:
        """Bring ``vector`` into the module."""
        write_back(vector, self.trained)

    def take_gradient(self) -> Tensor:
        """The gradients as a vector, zeros where there is none; then the module has none."""
        vector = torch.zeros(self.numel, device="cpu")
        for part, parameter in zip(views(vector, self.trained), self.trained, strict=True):
            if parameter.grad is not None:
                part.copy_(dense(parameter.grad))
            parameter.grad = None
        return vector
