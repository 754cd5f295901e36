"""ZeRO: optimizer states, gradients and parameters sharded among data-parallel ranks.

| a rank holds | optimizer states | gradients                       | parameters                   |
|--------------|------------------|---------------------------------|------------------------------|
| stage 1      | its shard        | all                             | all                          |
| stage 2      | its shard        | its shard, and what is reduced  | all                          |
| stage 3      | its shard        | its shard, and what is reduced  | its shard, and what computes |

``STAGES[2]`` is ``ZeroStage2``; ``model.py`` says how to use them. ``save`` and ``load`` are sharded checkpoints.

Given the same vectors (``units``, or 1 and 2 the same buckets) and one backward pass a step, the stages agree bit for
bit: the ring adds up a chunk in an order that depends on the chunk alone. Several passes are added up before the sum
over ranks in stage 1, and after it in 2 and 3.
"""

from ringzero.zero.checkpoint import load, save
from ringzero.zero.stage1 import ZeroStage1
from ringzero.zero.stage2 import ZeroStage2
from ringzero.zero.stage3 import ZeroStage3

STAGES = {1: ZeroStage1, 2: ZeroStage2, 3: ZeroStage3}

__all__ = ["STAGES", "ZeroStage1", "ZeroStage2", "ZeroStage3", "load", "save"]
