"""A character-level language model: which character follows these?

>>> batch = characters.batch(step=0, rank=1, world_size=4)     # doctest: +SKIP
>>> characters.loss(characters.Model(), batch).backward()     # doctest: +SKIP

The text is 200 kB of Herman Melville's "Moby-Dick" (1851, in the public domain), in small letters. The last tenth is
held out. The model looks at the last ``CONTEXT`` characters: Bengio et al., "A neural probabilistic language model",
JMLR 3 (2003). It learns on a CPU core in seconds.
"""

import functools
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

CONTEXT, SAMPLES = 16, 128  # characters that the model sees; samples of one step, of all ranks together
EMBEDDING, HIDDEN = 16, 128


class Batch(NamedTuple):
    """``contexts`` are (samples, CONTEXT) and ``following`` (samples,): numbers of characters, int64."""

    contexts: Tensor
    following: Tensor


class Model(nn.Module):
    """Numbers of characters (samples, CONTEXT) to scores of what follows (samples, characters)."""

    def __init__(self, hidden: int = HIDDEN):
        super().__init__()
        characters = len(alphabet())
        self.embedding = nn.Embedding(characters, EMBEDDING)
        self.layers = nn.Sequential(
            nn.Linear(CONTEXT * EMBEDDING, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, characters),
        )

    def forward(self, contexts: Tensor) -> Tensor:
        return self.layers(self.embedding(contexts).flatten(1))


@functools.cache
def text() -> str:
    """All of it, paragraphs joined by line ends."""
    raw = Path(__file__).with_name("moby_dick.txt").read_text().lower()
    return "\n".join(" ".join(paragraph.split()) for paragraph in raw.split("\n\n"))


@functools.cache
def alphabet() -> tuple[str, ...]:
    """The characters of the text, by number."""
    return tuple(sorted(set(text())))


@functools.cache
def _numbers() -> Tensor:
    whole, letters = (
        torch.frombuffer(bytearray("".join(each), "ascii"), dtype=torch.uint8) for each in (text(), alphabet())
    )
    return torch.searchsorted(letters, whole)


def _samples(last: Tensor) -> Batch:
    """Samples whose following character has the places ``last`` in the text."""
    numbers = _numbers()
    batch = numbers[last[:, None] - CONTEXT + torch.arange(CONTEXT, device="cpu")], numbers[last]
    return Batch(*(tensor.to(torch.get_default_device()) for tensor in batch))


def batch(step: int, rank: int = 0, world_size: int = 1, seed: int = 0, samples: int = SAMPLES) -> Batch:
    """This rank's share of the ``samples`` of a step: every N-th. N ranks together have what one rank alone would have.

    Raises ValueError where ``samples`` does not divide by ``world_size``.
    """
    if samples % world_size:
        raise ValueError(f"samples is {samples}, and {world_size} ranks cannot share it equally; give a multiple")
    with torch.device("cpu"):
        draw = torch.Generator().manual_seed(seed * 1_000_003 + step)
        last = torch.randint(CONTEXT, _first_tested(), (samples,), generator=draw)
    return _samples(last[rank::world_size])


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy, in nats a character."""
    return cross_entropy(model(batch.contexts), batch.following)


@torch.no_grad()
def held_out_loss(model: nn.Module, every: int = 4) -> float:
    """The loss on text that was not trained on, of every ``every``-th character there."""
    with torch.device("cpu"):
        places = torch.arange(_first_tested() + CONTEXT, len(_numbers()), every)
    return loss(model, _samples(places)).item()


def _first_tested() -> int:
    return len(_numbers()) * 9 // 10
