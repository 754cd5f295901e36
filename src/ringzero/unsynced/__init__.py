"""Training without full synchronisation: parameter servers, local SGD, gossip, a quorum, compression.

| what is given up                   | classes                                                                      |
|------------------------------------|------------------------------------------------------------------------------|
| nothing but the all-reduce         | ``ParameterServer`` with ``Synchronous()``; ``ServedByCollectives``          |
| that gradients are fresh           | ``ParameterServer`` with ``BoundedStaleness()``, ``Pairwise``                |
| that models agree after every step | ``LocalSGD``, ``DiLoCo``                                                     |
| that models agree at all           | ``Gossip``, ``PushSum``, ``Pairwise``                                        |
| that the sum is exact              | ``ringzero.unsynced.compression``                                            |
| that every rank lives to the end   | ``Surviving`` on a ``Quorum``                                                |
"""

from ringzero.unsynced.by_collectives import ServedByCollectives
from ringzero.unsynced.gossip import Gossip
from ringzero.unsynced.local import DiLoCo, LocalSGD
from ringzero.unsynced.pairwise import Pairwise
from ringzero.unsynced.parameter_server import ParameterServer
from ringzero.unsynced.push_sum import PushSum
from ringzero.unsynced.quorum import Quorum
from ringzero.unsynced.rules import BoundedStaleness, Synchronous
from ringzero.unsynced.surviving import Surviving

__all__ = [
    "BoundedStaleness",
    "DiLoCo",
    "Gossip",
    "LocalSGD",
    "Pairwise",
    "ParameterServer",
    "PushSum",
    "Quorum",
    "ServedByCollectives",
    "Surviving",
    "Synchronous",
]
