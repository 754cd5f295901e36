"""Models to train, functions that train one for a step, and such steps in turns and recorded."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

FEWEST, SECONDS = 5, 40.0  # turns; past SECONDS only the fewest are made


def stack(width: int, layers: int) -> Any:
    """So many square layers without biases, the same on all ranks."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers)))


def encoder(width: int, layers: int) -> Any:
    """A transformer encoder of so many layers."""
    from torch import nn

    block = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=4 * width, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(block, num_layers=layers, enable_nested_tensor=False)


def step_of(model: Any, batch: Any) -> Callable[[], None]:
    """A function that trains a model of ZeRO one step."""

    def step() -> None:
        model(batch).float().square().mean().backward()
        model.step()
        model.zero_grad()

    return step


def seconds_in_turns(
    trainers: Mapping[str, Callable[[], object]], steps: int, group: Any, peers: Sequence[str] = ()
) -> dict[str, list[float]]:
    """On each rank: ``{which: seconds of each step}``, of the slowest rank, of ``trainers``, which make a step each.

    ``peers`` are those of them that are not ours.
    """
    from ringzero.measure import turns

    return turns.seconds_in_turns(trainers, steps, group, peers, fewest=FEWEST, limit=SECONDS)


def records_of(step: Callable[[], object]) -> list[Any]:
    """On each rank: what it records in one ``step``, after two in which states and buckets come to be."""
    from ringzero.record import recorded

    for _ in range(2):
        step()
    before = len(recorded())
    step()
    return recorded()[before:]
