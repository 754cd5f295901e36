"""Which GPU this is, and with what software: ``python -m ringzero.measure.gpu.card`` prints it as JSON.

Asked in a process of its own, so that the one that runs the parts has nothing on the GPU.
"""

import json
import platform
import subprocess
import warnings
from typing import Any


def read() -> dict[str, Any]:
    """The card and the versions, or ``{"missing": sentence}`` where there is no GPU."""
    import torch
    import torch.distributed as dist

    with warnings.catch_warnings(record=True) as warned:  # torch says so when the driver is too old
        warnings.simplefilter("always")
        there = torch.cuda.is_available()
    if torch.version.cuda is None:
        return {"missing": (
            f"it needs an NVIDIA GPU, and torch {torch.__version__} here is built without CUDA; on a machine with a "
            "GPU install torch's build for its driver"
        )}  # fmt: skip
    if not there:
        heard = "".join(f" ({' '.join(str(each.message).split())})" for each in warned[:1])
        return {"missing": (
            f"it needs an NVIDIA GPU, and torch {torch.__version__} finds none here{heard}; nvidia-smi and "
            "CUDA_VISIBLE_DEVICES say why"
        )}  # fmt: skip
    card = torch.cuda.get_device_properties(0)
    return {
        "card": card.name,
        "memory_bytes": card.total_memory,
        "capability": f"{card.major}.{card.minor}",
        "gpus": torch.cuda.device_count(),
        "driver": driver(),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "nccl": _nccl() if dist.is_nccl_available() else None,
        "python": platform.python_version(),
    }


def driver() -> str | None:
    """The version of NVIDIA's driver; None where nvidia-smi does not say."""
    ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _nccl() -> str:
    from torch.cuda import nccl

    return ".".join(map(str, nccl.version()))


if __name__ == "__main__":
    print(json.dumps(read()))
