"""What every rank must manage to do: where one cannot, none goes on."""

from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from safetensors import SafetensorError


def together(group: dist.ProcessGroup, act: Callable[[], Any]) -> list:
    """What ``act()`` gives on each rank. If a file cannot be read or written on one, OSError is raised on all."""
    mine: tuple[Any, str | None]
    try:
        mine = act(), None
    except (OSError, SafetensorError) as error:
        mine = None, f"rank {group.rank()}: {error}"
    everyone: list[tuple[Any, str | None]] = [(None, None)] * group.size()
    dist.all_gather_object(everyone, mine, group=group)
    if errors := [error for _, error in everyone if error]:
        raise OSError("; ".join(errors))
    return [result for result, _ in everyone]
