"""What every rank must manage to do: where one cannot, none goes on."""

from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from safetensors import SafetensorError

KINDS = (FileNotFoundError, OSError, ValueError, TypeError)  # of errors; what is of another kind is a RuntimeError


def together(group: dist.ProcessGroup, act: Callable[[], Any]) -> list:
    """What ``act()`` gives on each rank.

    If it raises on one, an error that names the ranks is raised on all: of the first of ``KINDS`` that those of all
    ranks are, OSError if one is an OSError, and otherwise RuntimeError. What all say alike is said once.
    """
    cause: Exception | None = None
    result, said = None, ""
    kind: type | None = None
    try:
        result = act()
    except Exception as error:
        cause, said = error, str(error) or type(error).__name__
        kind = next((kind for kind in KINDS if isinstance(error, kind)), None)
        if isinstance(error, SafetensorError):
            kind = OSError
    everyone = [(result, said, kind)] * group.size()
    dist.all_gather_object(everyone, (result, said, kind), group=group)
    errors = {rank: error for rank, (_, error, _) in enumerate(everyone) if error}
    if errors:
        kinds = {of for _, error, of in everyone if error}
        one_kind = kinds.pop() if len(kinds) == 1 else OSError if kinds & {OSError, FileNotFoundError} else None
        alike = len(errors) == group.size() > len(set(errors.values())) == 1
        said = errors[0] if alike else "; ".join(f"rank {rank}: {error}" for rank, error in errors.items())
        raise (one_kind or RuntimeError)(said) from cause
    return [result for result, _, _ in everyone]
