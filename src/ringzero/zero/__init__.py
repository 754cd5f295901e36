"""ZeRO: optimizer states, gradients and parameters sharded among data-parallel ranks.

| a rank holds | optimizer states | gradients                            | parameters                           |
|--------------|------------------|--------------------------------------|--------------------------------------|
| stage 1      | its shard        | all                                  | all                                  |
| stage 2      | its shard        | its shard, and those not reduced yet | all                                  |
| stage 3      | its shard        | its shard, and those not reduced yet | its shard, and those computed with   |

``plain.py`` has the stages in plain torch. ``STAGES[2]`` is ``ZeroStage2``; ``model.py`` says how to use them.
``save`` and ``load`` are sharded checkpoints; ``save(..., asynchronous=True)`` writes beside training. A ``home``,
``Host`` or ``File``, takes states off the device. A ``travel``, ``Hybrid`` or ``ZeroPlusPlus``, sends less between
nodes. ``Muon`` is an optimizer of whole matrices.

The stages agree bit for bit if their vectors are the same (the same ``units``, or in stages 1 and 2 the same buckets)
and each step has one backward pass: the ring adds up a chunk in an order that depends on the chunk alone. With several
passes a step the last bits differ, since stage 1 adds the passes up before it sums over ranks, stages 2 and 3 after.
"""

from ringzero.zero.checkpoint import Saving, load, save
from ringzero.zero.file import File
from ringzero.zero.host import Host
from ringzero.zero.muon import Muon
from ringzero.zero.quantised import ZeroPlusPlus
from ringzero.zero.scaler import GradScaler
from ringzero.zero.stages import STAGES, ZeroStage1, ZeroStage2, ZeroStage3
from ringzero.zero.tiers import resident
from ringzero.zero.two_level import Hybrid

__all__ = [
    "STAGES",
    "File",
    "GradScaler",
    "Host",
    "Hybrid",
    "Muon",
    "Saving",
    "ZeroPlusPlus",
    "ZeroStage1",
    "ZeroStage2",
    "ZeroStage3",
    "load",
    "resident",
    "save",
]
