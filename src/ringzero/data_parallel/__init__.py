"""Data-parallel training: every rank has the whole model and a part of the batch; gradients are averaged.

``plain.py`` has it in plain torch.
"""

from ringzero.data_parallel.ddp import DistributedDataParallel, FlatDataParallel
from ringzero.data_parallel.naive import NaiveDataParallel

__all__ = ["DistributedDataParallel", "FlatDataParallel", "NaiveDataParallel"]
