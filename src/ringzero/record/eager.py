"""Code that ``torch.compile`` must leave alone: it talks to other ranks, or looks at process groups.

``torch.compiler.disable`` does the same, but imports torch._dynamo, which takes seconds.
"""

from types import FunctionType
from typing import Any

import torch

_frames: Any = torch._C._dynamo.eval_frame


def not_compiled(function: Any, what_it_calls_too: bool = False) -> Any:
    """Leave ``function`` uncompiled, and with ``what_it_calls_too`` all functions that it calls."""
    leave, compile_ = _frames._FrameAction.SKIP, _frames._FrameAction.DEFAULT
    strategy = _frames._FrameExecStrategy(leave, leave if what_it_calls_too else compile_)
    _frames.set_code_exec_strategy(function.__code__, strategy)
    function._torchdynamo_disable = True
    return function


def none_compiled(class_: type) -> None:
    """Leave every method of a class uncompiled, and all functions that they call."""
    for method in vars(class_).values():
        if isinstance(method, FunctionType):
            not_compiled(method, what_it_calls_too=True)
