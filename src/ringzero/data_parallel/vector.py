"""A vector: parameters that travel together, their gradients laid end to end in one buffer."""

from collections.abc import Mapping
from sys import getrefcount

import torch
from torch.nn import Parameter


def dense(gradient: torch.Tensor) -> torch.Tensor:
    """The numbers of a gradient, without what autograd knows of them."""
    return gradient.detach().to_dense() if gradient.is_sparse else gradient.detach()


def _holders(parameter: Parameter) -> tuple[int, int]:
    """How many tensors share the memory of ``parameter.grad``, and how many references there are to it."""
    gradient = parameter.grad
    assert gradient is not None
    return torch._C._storage_Use_Count(gradient.untyped_storage()._cdata), getrefcount(gradient)


_alone = Parameter(torch.zeros(1, device="cpu"))
_alone.grad = torch.zeros_like(_alone)
_NOBODY = _holders(_alone)  # as where the parameter alone has its gradient


def is_held(parameter: Parameter) -> bool:
    """Whether the program holds the gradient too: the tensor, or its memory, as of one buffer for all gradients."""
    return any(now > alone for now, alone in zip(_holders(parameter), _NOBODY, strict=True))


class Vector:
    """``parameters``, all of one type and device, by name, and one 1-D buffer for the gradients of all of them.

    ``gradient``  the buffer, or None before ``hold_gradient``; each gradient in it is divided by ``ranks``, so that the
                  sum over the ranks is the mean
    ``views``     ``{parameter: its part of the buffer, in the parameter's shape}``, and in its strides: the fused
                  optimizers step both as they lie, such as in channels_last. ``in_rows``: row after row instead
    ``missing``   parameters whose gradient has not come yet in this backward pass
    ``sparse``    those whose gradient came sparse
    ``held``      gradients that the program holds as well, where the mean goes, too
    """

    in_rows = False

    def __init__(self, parameters: Mapping[str, Parameter], ranks: int):
        self.parameters, self.ranks = dict(parameters), ranks
        self._shapes = {p: p.shape for p in self.parameters.values()}  # a parameter may be empty later, in ZeRO stage 3
        lies = torch.contiguous_format if self.in_rows else torch.preserve_format
        self._strides = {p: torch.empty_like(p, device="meta", memory_format=lies).stride() for p in self._shapes}
        self.gradient: torch.Tensor | None = None
        self.views: dict[Parameter, torch.Tensor] = {}
        self.expect_gradients()

    def expect_gradients(self) -> None:
        """A backward pass begins: every gradient is still missing."""
        self.missing, self.sparse = set(self._shapes), set[Parameter]()
        self.held: dict[Parameter, torch.Tensor] = {}

    def hold_gradient(self, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Take memory for the buffer, of the parameters' type or ``dtype``, and return it; it has no values yet."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        like = next(iter(self._shapes))
        self.gradient = torch.empty(sum(sizes), dtype=dtype or like.dtype, device=like.device)
        parts = self.gradient.split(sizes)
        of_each = zip(self._shapes.items(), parts, strict=True)
        self.views = {p: part.as_strided(shape, self._strides[p]) for (p, shape), part in of_each}
        del parts, of_each
        self._references = self._held()
        return self.gradient

    def _held(self) -> tuple[int, int]:
        """How many tensors share the buffer's memory, and how many references the most wanted view has."""
        assert self.gradient is not None
        sharing = torch._C._storage_Use_Count(self.gradient.untyped_storage()._cdata)
        return sharing, max(map(getrefcount, self.views.values()), default=0)

    def let_go_of_what_is_kept(self) -> None:
        """Take other memory for the buffer if the program holds a gradient that is a view of it, as ``g = p.grad``.

        Where ``p.grad`` is still the view, autograd itself would add to it, so the buffer stays.
        """
        if self._held() != self._references and any(p.grad is not view for p, view in self.views.items()):
            self.hold_gradient()

    def put(self, parameter: Parameter) -> None:
        """Take in ``parameter.grad``, which becomes a view of the buffer."""
        # What autograd made in this pass has not been written to.
        was_there = parameter.grad is not None and not parameter.grad.is_sparse and parameter.grad._version > 0
        held, gradient = was_there and is_held(parameter), parameter.grad
        if self.take_in(parameter):
            assert gradient is not None
            if held and gradient is not self.views[parameter] and not gradient.requires_grad:
                self.held[parameter] = gradient
            try:
                parameter.grad = self.views[parameter]
            except RuntimeError as error:
                raise RuntimeError(self._other(parameter, gradient)) from error

    def arrived(self) -> None:
        """The buffer has the means: so have the gradients that the program holds."""
        for parameter, gradient in self.held.items():
            parameter.grad = gradient.copy_(self.views[parameter])
        self.held = {}

    def take_in(self, parameter: Parameter) -> bool:
        """Copy ``parameter.grad`` into the buffer, or zeros if there is none; return whether there is one.

        A sparse one becomes dense. One with a graph of its own, of ``backward(create_graph=True)``, loses it.
        """
        if self.gradient is None:
            self.hold_gradient()
        view, gradient = self.views[parameter], parameter.grad
        if gradient is None:
            view.zero_()
        else:
            if gradient.is_sparse:
                self.sparse.add(parameter)
                gradient = gradient.to_dense()
            if gradient.requires_grad:
                gradient = gradient.detach()
            if gradient.shape != view.shape:  # ``out`` would take this shape
                raise RuntimeError(self._other(parameter, gradient))
            try:
                torch.div(gradient, self.ranks, out=view)
            except RuntimeError as error:
                if gradient.dtype is view.dtype and gradient.device == view.device:
                    raise
                raise RuntimeError(self._other(parameter, gradient)) from error
        self.missing.discard(parameter)
        return gradient is not None

    def _other(self, parameter: Parameter, gradient: torch.Tensor) -> str:
        (name,) = [name for name, p in self.parameters.items() if p is parameter]
        was = self.views[parameter]
        return (
            f"the gradient of {name} is {tuple(gradient.shape)} {gradient.dtype} on {gradient.device}, and the "
            f"parameter was {tuple(was.shape)} {was.dtype} on {was.device} when the module was wrapped; after a change "
            "of type, shape or device wrap the module again on every rank"
        )
