"""On what ranks compute and through what they talk: the one place that decides it.

| device                   | ranks compute on | and talk through                                  |
|--------------------------|------------------|---------------------------------------------------|
| "cpu"                    | the CPU          | gloo                                              |
| "cuda"                   | a GPU each       | NCCL                                              |
| "cuda:0"                 | one GPU for all  | gloo, since NCCL takes one rank a GPU             |
| "strict", "strict:SEED"  | the CPU          | gloo by NCCL's rules (``ringzero.strict``)        |
| "auto"                   | "cuda" where there are enough GPUs, else "cpu"                       |
"""

from collections.abc import Callable
from typing import Any

from ringzero.processes import box

STRICT = "strict"
CHOICES = '"auto", "cpu", "cuda", "strict", or one GPU for all ranks such as "cuda:0"'


def resolve(device: str, world_size: int) -> str:
    """``device`` for this machine and number of ranks, without "auto". Raises ValueError for one that cannot be."""
    name, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    numbered = name in ("cuda", "strict") and number.isdigit()
    if name not in ("auto", "cpu", "cuda", "strict") or (":" in device and not numbered):
        raise ValueError(f"device is {device!r}; it is {CHOICES}")
    if name in ("cpu", "strict"):
        return device
    gpus = _gpus()
    have = f"this machine has {gpus or 'none'}"
    if numbered:
        if int(number) >= gpus:
            raise ValueError(f'device="{device}" is not there: {have}; use device="cpu"')
        return device
    if device == "cuda" and gpus < world_size:
        instead = f'device="cuda:0" (all ranks share that GPU, over gloo), world_size={gpus} or ' if gpus else ""
        raise ValueError(
            f'device="cuda" needs a GPU for each of {world_size} ranks and {have}; use {instead}device="cpu"'
        )
    return "cuda" if gpus >= world_size else "cpu"


def of_a_check(device: str, ranks: int) -> str:
    """The device of a lab's check that needs so many ``ranks``, where the lab's is ``device``.

    On a node with two GPUs or more, "auto" is NCCL for as many ranks as there are GPUs, and the CPU for more: checks
    that compare with NCCL's rules make such calls besides. On any other machine "auto" is the CPU, whatever the number
    of ranks: one answer for the whole lab. "cuda" is the same on such a node, and elsewhere stays what it is:
    ``resolve`` refuses it where GPUs are missing. One rank has nobody to talk to, so "strict" is the CPU for it.
    """
    if is_strict(device) and ranks == 1:
        return "cpu"
    if device not in ("auto", "cuda"):
        return device
    gpus = _gpus()
    if gpus < 2:
        return "cpu" if device == "auto" else device
    return "cuda" if ranks <= gpus else "cpu"


def in_words(device: str) -> str:
    """Backend and device, such as "gloo, CPU"."""
    if is_strict(device):
        return "NCCL's rules, CPU"
    return {"cpu": "gloo, CPU", "cuda": "NCCL, a GPU each"}.get(device, f"gloo, {device}")


def _gpus():
    """How many GPUs this process's ranks can use; in a box none, unless the box has them."""
    import torch

    asked = box.asked_for()
    return torch.cuda.device_count() if asked is None or asked.gpus else 0


def is_strict(device: str) -> bool:
    """Whether ranks talk by NCCL's rules on the CPU."""
    return device.startswith("strict")


def backend(device: str) -> str:
    """The backend of the ranks' process group: "gloo", "nccl" or "strict"."""
    return "nccl" if device == "cuda" else "strict" if is_strict(device) else "gloo"


def can_record(device: str) -> bool:
    """Whether what ranks communicate can be recorded: not where they share a GPU."""
    return not device.startswith("cuda:")


def records_always(device: str) -> bool:
    """Whether it is recorded whether asked for or not, so that a hang can be explained. On GPUs only when asked for."""
    return not device.startswith("cuda")


def enter(device: str, local_rank: int) -> None:
    """Make this process's tensors lie where ``device`` says, for rank ``local_rank`` of its machine."""
    if device.startswith("cuda"):
        import torch

        gpu = torch.device("cuda", local_rank) if device == "cuda" else torch.device(device)
        torch.cuda.set_device(gpu)
        torch.set_default_device(gpu)


def creator(device: str) -> Callable[..., Any] | None:
    """What makes the process groups of a device that is not torch's own: of the strict one, whose seed it has."""
    if not is_strict(device):
        return None
    from ringzero.strict import group

    return group.creator(int(device.partition(":")[2] or 0))


def leave(device: str) -> None:
    """The ranks' function is over: wait for what it started. Raises StrictError if it left something undone."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()
    if is_strict(device):
        from ringzero.strict import watching

        watching.finish()
