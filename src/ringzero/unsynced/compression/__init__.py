"""Gradient compression: the mean of gradients over the ranks, of which only a part travels.

    DistributedDataParallel(module, compressor=TopK(0.01))               ringzero's data parallelism
    model.register_comm_hook(TopK(0.01), compressed)                     the same there, or in torch's DDP
    OneBitAdam(module.parameters(), lr=1e-3, warmup_steps=100)           an optimizer that averages by itself

What a rank does not send it may keep and add to its next gradient: error feedback. See ``Compressor``.
"""

from ringzero.unsynced.compression.compressor import Compressor, Exchange, compressed
from ringzero.unsynced.compression.one_bit_adam import OneBitAdam
from ringzero.unsynced.compression.power_sgd import PowerSGD
from ringzero.unsynced.compression.qsgd import QSGD
from ringzero.unsynced.compression.random_k import RandomK
from ringzero.unsynced.compression.sign_majority import SignMajority
from ringzero.unsynced.compression.top_k import TopK

__all__ = ["QSGD", "Compressor", "Exchange", "OneBitAdam", "PowerSGD", "RandomK", "SignMajority", "TopK", "compressed"]
