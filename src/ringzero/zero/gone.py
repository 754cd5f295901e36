"""Parameters that are not gathered: whoever reads one is told which it is, instead of finding nothing in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import Parameter

# What may be asked of a parameter that is not there. What is computed with its values is refused.
_ABOUT_IT = {
    *(torch.Tensor.element_size, torch.Tensor.is_floating_point, torch.Tensor.is_complex, torch.Tensor.__hash__),
    *(torch.Tensor.untyped_storage, torch.Tensor.requires_grad_, torch.Tensor.register_hook),
    torch.Tensor.register_post_accumulate_grad_hook,
}
_SIZES = {torch.Tensor.size, torch.Tensor.numel, torch.Tensor.nelement, torch.Tensor.dim, torch.Tensor.__len__}
_shapes_of, _data_of = torch.Tensor.shape.__get__, torch.Tensor.data.__get__  # type: ignore[attr-defined]
_readable = [False]


class Gone(Parameter):
    """A parameter while it is empty: it knows its ``whole_shape`` and its ``name``."""

    whole_shape: torch.Size
    name_in_module: str
    given_class: type

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            gone = next((each for each in args if isinstance(each, Gone)), None)
            if gone is None or _readable[0]:
                return function(*args, **kwargs or {})
            if function in _SIZES or function == _shapes_of:
                return function(torch.empty(gone.whole_shape, device="meta"), *args[1:], **kwargs or {})
            is_property = getattr(function, "__name__", "") in ("__get__", "__set__", "__delete__")
            if function in _ABOUT_IT or (is_property and function != _data_of):
                return function(*args, **kwargs or {})
            raise RuntimeError(
                f"{gone.name_in_module} is used where it is not gathered; ZeroStage3 has it whole only while the "
                "forward of its unit runs. Give `units` a module that holds it and what uses it; or take the whole "
                "values from model.state_dict(), and bring new ones in by load_state_dict"
            )

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"{self.name_in_module}: {tuple(self.whole_shape)}, not gathered"


def take_away(parameter: Parameter, name: str, shape: torch.Size) -> None:
    """Have reads of ``parameter``, which is empty, refused. ``give_back`` ends it."""
    if not isinstance(parameter, Gone):
        given_class, parameter.__class__ = type(parameter), Gone
        assert isinstance(parameter, Gone)
        parameter.whole_shape, parameter.name_in_module, parameter.given_class = shape, name, given_class


def give_back(parameter: Parameter) -> None:
    if isinstance(parameter, Gone):
        parameter.__class__ = parameter.given_class


@contextmanager
def readable() -> Iterator[None]:
    """What is empty may be read inside, as empty."""
    before, _readable[0] = _readable[0], True
    try:
        yield
    finally:
        _readable[0] = before
