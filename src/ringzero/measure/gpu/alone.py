"""A process group of one rank in this process, for parts that train: as ``launch`` makes it, with no rank to fork."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist


@contextmanager
def one_rank(device: str) -> Iterator[None]:
    """Inside, there is a default group of this process alone, NCCL's where ``device`` is "cuda"."""
    with tempfile.TemporaryDirectory(prefix="rz-gpu-") as folder:
        if device == "cuda":
            torch.cuda.set_device(0)
        store = dist.FileStore(str(Path(folder, "store")), 1)
        dist.init_process_group("nccl" if device == "cuda" else "gloo", store=store, rank=0, world_size=1)
        try:
            yield
        finally:
            dist.destroy_process_group()
