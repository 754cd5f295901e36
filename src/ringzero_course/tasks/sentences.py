"""The BERT of chapter 6 as a task like ``characters``: which part of Python's library does a sentence describe?

>>> task = Sentences("book/examples/bert.py")     # doctest: +SKIP
>>> task.loss(task.Model(), task.batch(step=0, rank=1, world_size=4)).backward()     # doctest: +SKIP
"""

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

LENGTH, VOCABULARY, HIDDEN, HEADS, LAYERS = 24, 1500, 48, 4, 2
SAMPLES = 64  # of one step, of all ranks together


@dataclass(frozen=True)
class Sentences:
    """``program`` is the file of the example; a sentence is (LENGTH,) numbers of words and the number of its part."""

    program: str

    def Model(self) -> nn.Module:  # noqa: N802  (as in ``characters``)
        bert = _loaded(self.program)
        return bert.Bert(VOCABULARY, LENGTH, len(bert.PARTS), HIDDEN, HEADS, LAYERS, dropout=0.0)

    def batch(self, step: int, rank: int = 0, world_size: int = 1, seed: int = 0) -> tuple[Tensor, Tensor]:
        """This rank's share of a step's samples: ``(tokens, parts)``."""
        if SAMPLES % world_size:
            raise ValueError(f"{world_size} ranks cannot share {SAMPLES} samples equally; take a divisor")
        tokens, parts = _samples(self.program)[0]
        draw = torch.Generator().manual_seed(seed * 1_000_003 + step)
        mine = torch.randint(len(tokens), (SAMPLES,), generator=draw)[rank::world_size]
        return tokens[mine], parts[mine]

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Mean cross-entropy, in nats a sentence."""
        return cross_entropy(model(batch[0]), batch[1])

    @torch.no_grad()
    def held_out_loss(self, model: nn.Module, every: int = 4) -> float:
        """The loss on sentences that were not trained on."""
        tokens, parts = _samples(self.program)[1]
        return self.loss(model, (tokens[::every], parts[::every])).item()


@functools.cache
def _loaded(program: str) -> ModuleType:
    if not Path(program).is_file():
        raise ValueError(f"{program} is not there; give the path of the course's book/examples/bert.py")
    spec = importlib.util.spec_from_file_location("bert", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def _samples(program: str) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    return _loaded(program).samples(LENGTH, VOCABULARY)
