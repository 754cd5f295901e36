"""What if one rank catches an error of its backward pass and goes on? The others have no message that would tell them.

So the rank marks the gradients that it still owes: their first number is NaN, and so is that of the sum, on every rank.
Whoever finds a NaN there asks all ranks. An honest NaN, as of float16, costs one small message.
"""

from typing import Any

import torch
import torch.distributed as dist


class Marks:
    """Those of ``model``, a replica (by a weak reference), on the last gradients of each pass.

    ``failed``  whether this rank's backward pass ended with an error
    ``owes``    whether an earlier one did, after all gradients of that pass had left
    """

    def __init__(self, model: Any):
        self._model, self.failed, self.owes = model, False, False
        self._unmarked: torch.Tensor | None = None  # the number in whose place NaN went
        self._later: tuple[torch.Tensor, Any, torch.Tensor] | None = None  # the mark of the last pass, on a GPU

    def put(self, gradients: torch.Tensor | None, over: int = 1) -> None:
        """Call it with the last gradients of a pass, before they leave. They are still to be divided by ``over``."""
        assert gradients is not None
        if (self.failed or self.owes) and gradients.numel() and not gradients.is_sparse:
            self._unmarked = _first(gradients) / over
            _first(gradients).fill_(torch.nan)

    def check(self, gradients: torch.Tensor | None, rounded: bool = False, at_once: bool = False) -> None:
        """Call it with the same gradients when they are back. ``rounded`` says that they are not an exact sum.

        On a GPU it looks when the next pass begins, unless ``at_once``.

        Raises RuntimeError, on every rank, if some ranks ended a pass with an error and others did not.
        """
        assert gradients is not None
        if not gradients.numel() or gradients.is_sparse:
            return
        found = gradients.isnan().any() if rounded else _first(gradients).isnan()
        if found.is_cuda and not (at_once or self.failed or self.owes):  # a wait for the GPU would cost too much here
            here = torch.cuda.current_stream(found.device)
            self._later = found.to("cpu", non_blocking=True), here.record_event(), gradients
        elif found:
            self.ask(gradients)

    def check_last_pass(self) -> None:
        if self._later is not None:
            (found, copied, gradients), self._later = self._later, None
            copied.synchronize()
            if found:
                self.ask(gradients)

    def ask(self, gradients: torch.Tensor) -> None:
        """Ask all ranks who failed. Raises RuntimeError as ``check`` does."""
        model, failed = self._model, self._model._who_failed(gradients.device)
        owes, self.owes = self.owes, False
        if not all(failed) and any(failed):
            model._forget_gradients()
            model.end_of_backward()
            names = ", ".join(str(rank) for rank, flag in enumerate(failed) if flag)
            raise RuntimeError(
                f"a pass of this {model.__class__.__name__} ended with an error on rank {names} and not on the "
                "others, so the ranks' steps would differ; catch such an error on every rank, or on none"
            )
        if owes:  # every rank does, so nothing differs
            assert self._unmarked is not None
            dist.all_reduce(self._unmarked, group=model.group)
            _first(gradients).copy_(self._unmarked)


def _first(gradients: torch.Tensor) -> torch.Tensor:
    """The first number, as a view."""
    return gradients[(0,) * gradients.dim()]
