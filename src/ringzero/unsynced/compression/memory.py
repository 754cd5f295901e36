"""Error feedback: what was not sent of a gradient is kept, and added to the next one.

Seide et al., "1-Bit Stochastic Gradient Descent" (2014); why it works: Karimireddy et al., "Error Feedback Fixes
SignSGD" (2019). Errors belong to parameters, since which of these travel together may change between two steps.
"""

from collections.abc import Mapping, Sequence

import torch
from torch.utils.weak import WeakIdKeyDictionary

from ringzero.unsynced.end_to_end import joined, views


class Memory:
    """The error of each parameter. Those of parameters that travel together lie end to end, as their gradients do."""

    def __init__(self) -> None:
        self._errors = WeakIdKeyDictionary()  # parameter -> its error, in its shape: a view of one of the vectors
        self._vectors: dict[tuple[int, ...], torch.Tensor] = {}  # by the ids of the parameters in it

    def of(self, parameters: Sequence[torch.Tensor], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """The errors of ``parameters``, 1-D, to be written to; zeros at first.

        Raises ValueError if a parameter had another shape before.
        """
        errors = [self._errors.get(parameter) for parameter in parameters]
        for parameter, error in zip(parameters, errors, strict=True):
            if error is not None and error.shape != parameter.shape:
                raise ValueError(
                    f"the error kept is that of a parameter of shape {tuple(error.shape)}, whose shape is "
                    f"{tuple(parameter.shape)} now; call reset() on every rank, which forgets all errors"
                )
        key = tuple(map(id, parameters))
        vector = self._vectors.get(key)
        is_new = any(error is None for error in errors)
        if vector is None or is_new or (vector.dtype, vector.device) != (dtype, device):
            parts = [torch.zeros(p.shape) if e is None else e for p, e in zip(parameters, errors, strict=True)]
            vector = joined(parts, dtype, device)
            self._vectors = {old: v for old, v in self._vectors.items() if not {*old} & {*key}} | {key: vector}
            for parameter, part in zip(parameters, views(vector, parameters), strict=True):
                self._errors[parameter] = part
        return vector

    def by_parameter(self) -> Mapping[torch.Tensor, torch.Tensor]:
        return self._errors

    def load(self, errors: Mapping[torch.Tensor, torch.Tensor]) -> None:
        """Keep ``errors`` in place of all that were kept."""
        self.__init__()  # type: ignore[misc]
        for parameter, error in errors.items():
            self._errors[parameter] = error
