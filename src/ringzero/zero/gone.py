"""What stands where a whole tensor is not: whoever reads it is told what it is, instead of finding nothing.

``Gone`` is a parameter that is not gathered. ``InShards`` is in the place of a gradient that was reduced.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch.nn import Parameter
from torch.utils._pytree import tree_leaves

from ringzero.data_parallel.passes import NOT_BACKWARD, running_backward

# What may be asked of a parameter that is not there. What is computed with its values is refused.
_ABOUT_IT = {
    *(torch.Tensor.element_size, torch.Tensor.is_floating_point, torch.Tensor.is_complex, torch.Tensor.__hash__),
    *(torch.Tensor.untyped_storage, torch.Tensor.requires_grad_, torch.Tensor.register_hook),
    torch.Tensor.register_post_accumulate_grad_hook,
}
_SIZES = {
    *(torch.Tensor.size, torch.Tensor.numel, torch.Tensor.nelement, torch.Tensor.dim, torch.Tensor.__len__),
    *(getattr(torch.Tensor, name).__get__ for name in ("shape", "ndim", "nbytes")),
}
_VALUES = {getattr(torch.Tensor, name).__get__ for name in ("data", "T", "mT", "H", "mH", "real", "imag")}
_readable = [False]


class Gone(Parameter):
    """A parameter while it is empty: it knows its ``whole_shape`` and its ``name``."""

    whole_shape: torch.Size
    name_in_module: str
    given_class: type

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            gone = next((each for each in tree_leaves((args, kwargs)) if isinstance(each, Gone)), None)
            if gone is None or _readable[0]:
                return function(*args, **kwargs or {})
            if function in _SIZES:
                whole = torch.empty(gone.whole_shape, dtype=gone.dtype, device="meta")
                return function(whole, *args[1:], **kwargs or {})
            is_property = getattr(function, "__name__", "") in ("__get__", "__set__", "__delete__")
            if function in _ABOUT_IT or (is_property and function not in _VALUES):
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


class InShards(torch.Tensor):
    """What ``parameter.grad`` is once the gradient has gone into shards. It has a shape and no numbers.

    torch's own tools take each ``grad`` that is not None. So they meet this one, and every operation on it raises
    RuntimeError, which names the parameter and what to call instead.

    Autograd adds to a ``grad`` that is there. The first gradient of a backward pass may therefore come here, before
    the pass is noticed: it waits in ``arrived``. Later ones do not, since ``begins`` is called.
    """

    whose: str
    arrived: torch.Tensor | None
    task: int  # autograd's number of the pass in which gradients do not come here any more

    @staticmethod
    def of(whose: str, like: torch.Tensor, shape: tuple[int, ...]) -> "InShards":
        made = torch.Tensor._make_wrapper_subclass(InShards, shape, dtype=like.dtype, device=like.device)
        made.whose, made.arrived, made.task = whose, None, NOT_BACKWARD
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        first, task = args[0], running_backward()
        if isinstance(first, InShards) and task not in (NOT_BACKWARD, first.task):
            if function is torch.ops.aten.add_.Tensor:
                first.arrived = args[1]
                return first
            if function is torch.ops.aten.add.Tensor:  # with create_graph=True
                return args[1]
        own = next(each for each in tree_leaves((args, kwargs)) if isinstance(each, InShards))
        own._refuse(function.overloadpacket.__name__)

    def begins(self) -> torch.Tensor | None:
        """A backward pass has begun: its gradient, if that came here, and otherwise None."""
        arrived, self.arrived, self.task = self.arrived, None, running_backward()
        return arrived

    def _refuse(self, what: str) -> NoReturn:
        raise RuntimeError(
            f"{what} was given the gradient of {self.whose}, which is not here: the ranks have it in shards, once it "
            "is reduced. To clip, call the model's clip_grad_norm_ (which returns the norm) or clip_grad_value_; to "
            "scale, scale the loss; to forget it, call the model's zero_grad(); to step, the model's step(). A scaled "
            "loss takes ringzero.zero.GradScaler, given the model"
        )

    def untyped_storage(self) -> torch.UntypedStorage:
        """No memory, for who counts it."""
        return torch.UntypedStorage(0)

    def numpy(self, **_: Any) -> NoReturn:
        self._refuse("numpy")

    def tolist(self) -> NoReturn:
        self._refuse("tolist")

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"the gradient of {self.whose}: {tuple(self.shape)}, in shards on the ranks"
