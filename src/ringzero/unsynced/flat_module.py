"""The trained parameters of a module as one flat vector on the CPU."""

import torch
from torch import Tensor

from ringzero.collectives.torchs import write
from ringzero.data_parallel.vector import dense


class FlatModule:
    """``module``, seen as a vector of ``numel`` numbers: its trained parameters end to end, as they are registered.

    The module may be on a GPU; what is read is copied from there, and what is written is copied there.

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
        self.untrained = [t for t in (*module.parameters(), *module.buffers()) if id(t) not in mine and t.numel()]

    def parameters(self) -> Tensor:
        """The vector."""
        return torch.cat([parameter.detach().reshape(-1).cpu() for parameter in self.trained])

    def write(self, vector: Tensor) -> None:
        """Bring ``vector`` into the module."""
        for part, parameter in self._parts(vector):
            parameter.copy_(part)

    def take_gradient(self) -> Tensor:
        """The gradients as a vector, zeros where there is none; then the module has none."""
        vector = torch.zeros(self.numel, device="cpu")
        for part, parameter in self._parts(vector):
            if parameter.grad is not None:
                part.copy_(dense(parameter.grad))
            parameter.grad = None
        return vector

    def untrained_bytes(self) -> list[Tensor]:
        """Buffers and frozen parameters, each as bytes of its own."""
        return [tensor.detach().cpu().reshape(-1).clone().view(torch.uint8) for tensor in self.untrained]

    def write_untrained(self, parts: list[Tensor]) -> None:
        """Bring what ``untrained_bytes`` returned elsewhere into the module."""
        for tensor, part in zip(self.untrained, parts, strict=True):
            write(tensor, part.view(tensor.dtype).view(tensor.shape))

    def _parts(self, vector):
        parts = vector.split([parameter.numel() for parameter in self.trained])
        return [(part.view(parameter.shape), parameter) for part, parameter in zip(parts, self.trained, strict=True)]
