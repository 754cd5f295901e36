"""A function that trains and reduces gradients: what it hands to the other ranks, and where backward is meanwhile."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ringzero.lab.payloads import doubled, no_other_way, payloads

NOT_INSIDE = -1  # of what torch calls the current graph task: no backward pass runs


def noted(train: Callable, *tensor: Any, again: bool = False, **case: Any) -> dict:
    """What ``train(*tensor, **case)`` ``returned`` on this rank, copies of the tensors it handed over, ``given``, and
    for each: whether it was ``inside`` a backward pass, and how many linear layers these had ``reached`` so far.

    With ``again`` it is called once more, and all-reduces bring twice the sum: what it returned then is ``doubled``.
    """
    inside: list[bool] = []
    reached: list[int] = []
    layers = 0

    def watch(module, _, output):
        if isinstance(module, nn.Linear) and output.requires_grad:
            output.register_hook(arrive)

    def arrive(_):
        nonlocal layers
        layers += 1

    def note():
        inside.append(torch._C._current_graph_task_id() != NOT_INSIDE)
        reached.append(layers)

    watching = nn.modules.module.register_module_forward_hook(watch)
    try:
        with payloads(note) as given:
            returned = train(*tensor, **case)
    finally:
        watching.remove()
    found = {"returned": returned, "given": given, "inside": inside, "reached": reached}
    if again:
        with doubled(), no_other_way():
            found["doubled"] = train(*tensor, **case)
    return found
