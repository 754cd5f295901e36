"""Parameters that are computed with beside a master: a program may write to them by ``data``, which leaves no trace.

Other writes in place count up a tensor's version, and ``data`` replaced is other memory. So it is noticed that the
program asked for ``data``: from then on what it holds is compared with the master.
"""

import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch.nn import Parameter
from torch.utils.weak import WeakIdKeyDictionary

_handed_out = WeakIdKeyDictionary()  # parameters whose ``data`` the program has had
_data: Any = torch.Tensor.data


class Watched(Parameter):
    @property
    def data(self) -> torch.Tensor:
        _handed_out[self] = True
        return _data.__get__(self)

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        _data.__set__(self, value)

    def detach(self) -> torch.Tensor:  # ``Parameter(watched)`` calls it, and wants one of the same class
        plain = torch.Tensor.detach(self)
        return plain.as_subclass(Watched) if sys._getframe(1).f_code is Parameter.__new__.__code__ else plain


class Master(Parameter):
    """What an optimizer steps: its version counts writes to ``data``, too, as in ``p.data.clamp_(-1, 1)``."""

    @property
    def data(self) -> torch.Tensor:
        return torch.Tensor.detach(self)

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        _data.__set__(self, value)


def watch(parameter: Parameter) -> None:
    """Notice who asks for ``data`` of ``parameter`` from now on, unless it is of a class of the program's own."""
    if type(parameter) is Parameter:
        parameter.__class__ = Watched


def end_watch(parameter: Parameter) -> None:
    if type(parameter) is Watched:
        _handed_out.pop(parameter, None)
        parameter.__class__ = Parameter  # type: ignore[assignment]


def may_be_written(parameters: Iterable[Parameter]) -> bool:
    """Whether the program has had the ``data`` of one of them. Where it asked for none at all this costs nothing."""
    return len(_handed_out) > 0 and any(parameter in _handed_out for parameter in parameters)
