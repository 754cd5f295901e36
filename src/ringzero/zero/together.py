"""What every rank must manage to do: where one cannot, none goes on."""

from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from safetensors import SafetensorError


def together(group: dist.ProcessGroup, act: Callable[[], Any]) -> list:
    """What ``act()`` gives on each rank.

    Raises OSError on all ranks if a file cannot be read or written on one; ValueError if one has no other error.
    """
    mine: tuple[Any, str, bool]
    try:
        mine = act(), "", False
    except (OSError, SafetensorError, ValueError) as error:
        mine = None, f"rank {group.rank()}: {error}", isinstance(error, ValueError)
    everyone = [mine] * group.size()
    dist.all_gather_object(everyone, mine, group=group)
    if errors := [error for _, error, _ in everyone if error]:
        is_value = all(of_value for _, error, of_value in everyone if error)
        raise (ValueError if is_value else OSError)("; ".join(errors))
    return [result for result, _, _ in everyone]
