"""What happened on a rank: every operation and every byte held, as data that outlives the rank.

A program says what it computes (``computing``); what it communicates is recorded by itself, in every call of
``ringzero.launch`` on the CPU and with ``trace=True`` on GPUs. Both become ``Operation``s. So does a prediction.
"""

from ringzero.record.operation import Operation, bytes_sent, calls, pairs
from ringzero.record.recorder import computing, recorded

__all__ = ["Operation", "bytes_sent", "calls", "computing", "pairs", "recorded"]
