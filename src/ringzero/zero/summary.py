"""What a sharded model holds, in words."""

from collections.abc import Iterable
from typing import Any

import torch


def holds(model: Any) -> dict[str, str]:
    """``{what: in words}``, the lines of ``summary`` that are other ones than those of a replica."""
    kinds, stepped = ({getattr(vector, of).dtype for vector in model.vectors()} for of in ("whole", "master"))
    frozen = sum(vector.owned.stop - vector.owned.start for vector in model.frozen_shards.vectors)
    sharded = f"; what is frozen too, here {frozen:,} numbers" if model.frozen_shards.vectors else ""
    whole = [*model.keeps_whole, "buffers" if sharded else "what is not trained"]
    shards = [each for each in ("parameters", "gradients") if each not in model.keeps_whole]
    return {
        "whole": f"{', '.join(whole)}; computed with in {_types(kinds)}",
        "sharded": f"{', '.join([*shards, 'optimizer states'])}; stepped in {_types(stepped)}, by "
        f"{type(model.optimizer).__name__} on {type(model.home).__name__}; {model.shard_group.size()} shards, here "
        f"{sum(vector.owned.stop - vector.owned.start for vector in model.vectors()):,} numbers" + sharded,
    }


def _types(kinds: Iterable[torch.dtype]) -> str:
    return ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
