"""A barrier that one rank comes to late."""

import time
from collections.abc import Callable

import torch.distributed as dist


def with_one_late(barrier: Callable, late: int, seconds: float) -> dict:
    """When this rank entered the barrier and left it; rank ``late`` comes so many seconds after the others."""
    if dist.get_rank() == late:
        time.sleep(seconds)
    entered = time.time()
    barrier()
    return {"entered": entered, "left": time.time()}
