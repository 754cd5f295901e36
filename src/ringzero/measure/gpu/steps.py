"""A data-parallel step of one rank beside torch's DDP and beside the module alone: what the wrapping itself costs."""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel as OfTorch

from ringzero.data_parallel import DistributedDataParallel
from ringzero.measure.gpu.alone import one_rank
from ringzero.measure.gpu.clocks import returned_and_done
from ringzero.measure.turns import in_turns

MODELS = {"200 tensors of 768 x 768": (768, 100, 8), "24 layers of 2048 x 2048": (2048, 24, 512)}  # width, layers, rows
TRIES = 41


def rows(device: str, models: dict[str, tuple[int, int, int]] = MODELS, tries: int = TRIES) -> Iterator[dict[str, Any]]:
    """A row for each model and wrapping: medians of a forward and backward pass, in turns.

    ``host_seconds`` until the calls returned, ``seconds`` until the device was done. ``ratio`` is the median, over
    turns, of torch's seconds over these; above 1 is faster than torch's.
    """
    with one_rank(device):
        for name, (width, layers, batch) in models.items():
            passes = {which: one_pass(which, width, layers, batch, device) for which in ("ours", "torch", "alone")}
            both = both_in_turns(passes, device, tries)
            host, whole = ({which: [each[i] for each in both[which]] for which in passes} for i in (0, 1))
            for which in passes:
                pairs = zip(whole["torch"], whole[which], strict=True)
                yield {
                    "model": name,
                    "wrapping": which,
                    "host_seconds": statistics.median(host[which]),
                    "seconds": statistics.median(whole[which]),
                    "ratio": statistics.median(theirs / this for theirs, this in pairs),
                }


def one_pass(which: str, width: int, layers: int, batch: int, device: str) -> Callable[[], None]:
    """A function that makes a forward and a backward pass. Both wrappings have gradients that are views of buckets."""
    torch.manual_seed(0)
    module: torch.nn.Module = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers))).to(device)
    x = torch.randn(batch, width, device=device)
    if which == "ours":
        module = DistributedDataParallel(module)
    elif which == "torch":
        module = OfTorch(module, gradient_as_bucket_view=True)

    def there_and_back() -> None:
        module.zero_grad()
        module(x).square().mean().backward()

    return there_and_back


def both_in_turns(
    passes: dict[str, Callable[[], None]], device: str, tries: int
) -> dict[str, list[tuple[float, float]]]:
    """Of each pass, the seconds until it returned and until the device was done."""
    return in_turns(passes, lambda which: returned_and_done(passes[which], device), tries, warm_up=3)
