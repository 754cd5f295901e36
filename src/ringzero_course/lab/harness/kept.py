"""What a student's function keeps from one call to the next, wherever it keeps it: tensors, NumPy arrays, lists."""

import gc
import tracemalloc
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ringzero.record.memory import MemoryTimeline


class Kept:
    """Counts, inside a ``with``, bytes of the tensors that are made there, and bytes of Python's own memory.

    After it, ``tensors`` and ``in_python`` are what is still there. NumPy's arrays are in Python's memory.
    """

    def __enter__(self) -> "Kept":
        self._timeline = MemoryTimeline(torch.nn.Module())
        gc.collect()
        tracemalloc.start()
        self._before, _ = tracemalloc.get_traced_memory()
        self._timeline.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        gc.collect()
        self._timeline.mark("end")
        self.tensors = self._timeline.at("end").total
        self._timeline.__exit__(*error)
        del self._timeline
        self.in_python = tracemalloc.get_traced_memory()[0] - self._before
        tracemalloc.stop()


def bytes_of(tree: Any) -> int:
    """Bytes of the tensors in a tree of dicts, lists and tuples, each storage counted once."""
    storages = [leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
