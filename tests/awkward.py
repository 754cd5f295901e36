"""Models that catch what a plain MLP forgives: tied, frozen, unused, odd-sized parameters, mixed types, buffers.

Every model takes a batch of token numbers, shape (batch, 6), below 10, and returns (batch, 3).
"""

import torch
from torch import nn


class Tied(nn.Module):
    """The output layer's weight is the embedding's."""

    def __init__(self):
        super().__init__()
        self.embedding, self.middle = nn.Embedding(10, 7), nn.Linear(7, 7)
        self.head, self.last = nn.Linear(7, 10, bias=False), nn.Linear(10, 3)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.last(self.head(torch.tanh(self.middle(self.embedding(tokens).mean(1)))))


class Frozen(nn.Module):
    """A frozen layer in the middle and a buffer, both random: they must be rank 0's on every rank."""

    def __init__(self):
        super().__init__()
        self.first, self.frozen, self.last = nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 3)
        self.frozen.requires_grad_(False)
        self.register_buffer("scale", torch.rand(5))

    def forward(self, tokens):
        return self.last(torch.tanh(self.frozen(self.first(tokens.float() / 10)) * self.scale))


class Unused(nn.Module):
    """``never`` is in no graph; ``sometimes`` only where the batch has a token 9."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 5), nn.Linear(5, 3)
        self.never, self.sometimes = nn.Linear(4, 4), nn.Linear(5, 3)

    def forward(self, tokens):
        hidden = torch.tanh(self.first(tokens.float() / 10))
        has_nine = (tokens == 9).any(1, keepdim=True)
        output = self.last(hidden)
        return output + has_nine * self.sometimes(hidden) if has_nine.any() else output


class OddSizes(nn.Module):
    """Sizes that no number of ranks divides, a scalar, and layers used in another order than registered."""

    def __init__(self):
        super().__init__()
        self.last, self.first, self.scalar = nn.Linear(13, 3), nn.Linear(6, 13), nn.Parameter(torch.rand(()))
        self.bias = nn.Parameter(torch.rand(1, 13))

    def forward(self, tokens):
        return self.last(torch.tanh(self.first(tokens.float() / 10) * self.scalar + self.bias))


class MixedTypes(nn.Module):
    """float64 in the middle of float32."""

    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(6, 5), nn.Linear(5, 5).double(), nn.Linear(5, 3)

    def forward(self, tokens):
        return self.last(torch.tanh(self.middle(self.first(tokens.float() / 10).double())).float())


def mlp(seed=0, width=8, layers=4):
    """The plain MLP, of linear layers from ``width`` to ``width`` numbers."""
    torch.manual_seed(seed)
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))


MODELS = {model.__name__: model for model in (Tied, Frozen, Unused, OddSizes, MixedTypes)}


def model_of(name, seed=0):
    torch.manual_seed(seed)
    return MODELS[name]()


def batch(step, size=24):
    """The whole batch of a step: ``(tokens, targets)``."""
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randint(0, 10, (size, 6), generator=generator), torch.randn(size, 3, generator=generator)


def loss_of(model, tokens, targets):
    return (model(tokens) - targets).square().mean()


def error_of(work):
    """What ``work`` raises, as text; it must raise on every rank, or the next collective hangs."""
    try:
        work()
    except (ValueError, TypeError, RuntimeError) as error:
        return str(error)
    return "nothing was raised"
