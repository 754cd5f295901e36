"""Local SGD and DiLoCo: ranks train alone for H steps, then bring their models together.

Local SGD (Stich, "Local SGD converges fast and communicates little", 2019) averages the parameters every H steps.
DiLoCo (Douillard et al., "DiLoCo: distributed low-communication training of language models", 2023) takes what a rank
has changed in H steps for a gradient, the *outer gradient*, and steps the parameters that all ranks share with the mean
of it by an *outer optimizer*:

    D = mean over the ranks of (shared - local);   shared <- outer optimizer(shared, D);   local <- shared

Its streaming form (Douillard et al., "Streaming DiLoCo with overlapping communication", 2025) spreads this out: the
layers are cut into fragments, each with its own turn in the H steps; a fragment's outer gradient travels while the next
``delay`` steps compute; and it travels in fewer bits. ``costs.local.outer_step_bytes`` has the bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module, Parameter

from ringzero.collectives.formats import Blocks, Float, Format, chunks_of, encoded, to_all, to_owners
from ringzero.collectives.schedule import is_number, is_whole
from ringzero.data_parallel.in_order import Wait
from ringzero.unsynced.end_to_end import joined, write_back
from ringzero.unsynced.own_copy import OwnCopy

FORMATS: dict[int, Format | None] = {32: None, 16: Float(torch.bfloat16), 8: Blocks(8), 4: Blocks(4)}  # by bits
Outer = Callable[[list[Tensor]], torch.optim.Optimizer]
NESTEROV = partial(torch.optim.SGD, lr=0.7, momentum=0.9, nesterov=True)  # the outer optimizer of the paper


class LocalSGD(OwnCopy):
    """``module`` and ``optimizer`` as in ``OwnCopy``; the parameters are averaged after every ``every``-th step.

    ``finish()`` averages them once more, unless that was just done. ``algorithm`` is one of ringzero's all-reduces by
    name, or None for the backend's own. Parameters travel as fp32; those in fp64 as fp64. With ``every=1`` and an
    optimizer that is linear in the gradients, such as SGD with momentum, this is data parallelism within rounding.

    Raises ValueError for an ``every`` below 1, and as ``OwnCopy``.
    """

    def __init__(self, module: Module, optimizer: torch.optim.Optimizer, every: int, *, algorithm: str | None = None,
                 group: dist.ProcessGroup | None = None):  # fmt: skip
        _check_steps(every)
        super().__init__(module, optimizer, group, algorithm, every=every)
        self.every = every

    def step(self) -> None:
        super().step()
        self.optimizer.step()
        if self.steps % self.every == 0:
            self._average()

    def finish(self) -> None:
        if self.steps % self.every:
            self._average()

    def _average(self) -> None:
        for parameters in _by_width(self.trained.values()):
            flat = _wide(parameters)
            self._sum(flat)
            write_back(flat / self.group.size(), parameters)


class DiLoCo(OwnCopy):
    """``module`` and ``optimizer`` as in ``OwnCopy``; outer steps of each fragment every ``every`` steps.

    ``outer``      makes the outer optimizer of a list of tensors; it must treat each number on its own. By default SGD
                   with Nesterov momentum, as in the paper
    ``fragments``  into how many parts of about the same size the layers are cut, in their order (the paper prefers
                   every P-th layer). Fragment p of P is synchronised p H/P steps after fragment 0
    ``delay``      for how many steps an outer gradient travels while training goes on
    ``mixing``     local <- (1 - mixing) local + mixing shared, after an outer step; 1 - alpha of the paper
    ``bits``       32, 16 (bf16), 8 or 4 for each number of an outer gradient that travels
    ``algorithm``  the all-reduce for 32 bits: one of ringzero's by name, or None for the backend's own

    With ``outer=partial(torch.optim.SGD, lr=1.0)``, one fragment and 32 bits this is ``LocalSGD``, within rounding. The
    shared parameters, a copy beside the module's own, have the same bits on all ranks.

    ``finish()`` merges what is on its way. Steps since then are this rank's own: take ``average()``.

    Raises ValueError for an ``every`` below 1, a ``delay`` that is not below it, more fragments than layers, a
    ``mixing`` outside (0, 1] and other ``bits``; and as ``OwnCopy``.
    """

    def __init__(self, module: Module, optimizer: torch.optim.Optimizer, every: int, *, outer: Outer = NESTEROV,
                 fragments: int = 1, delay: int = 0, mixing: float = 1.0, bits: int = 32,
                 algorithm: str | None = None, group: dist.ProcessGroup | None = None):  # fmt: skip
        _check_steps(every)
        _check_options(every, delay, mixing, bits)
        layers = layers_of(module)
        if not is_whole(fragments) or not 1 <= fragments <= max(1, len(layers)):
            raise ValueError(
                f"fragments is {fragments!r}; the {len(layers)} layers that are trained make 1 to that many"
            )
        settings = {"every": every, "fragments": fragments, "delay": delay, "mixing": mixing, "bits": bits}
        super().__init__(module, optimizer, group, algorithm, **settings)
        self.every, self.delay, self.mixing, self.bits = every, delay, mixing, bits
        self.fragments = [
            Fragment([p for layer in part for p in layer], turn * every // fragments, outer)
            for turn, part in enumerate(cut(layers, fragments))
        ]

    def step(self) -> None:
        super().step()
        self.optimizer.step()
        for fragment in self.fragments:
            if (self.steps - fragment.offset) % self.every == 0:
                fragment.start(self.steps, self._begin_mean)
        for fragment in self.fragments:
            if fragment.started == self.steps - self.delay:
                fragment.merge(self.mixing)
        self._own.in_use = any(fragment.started is not None for fragment in self.fragments)

    def finish(self) -> None:
        for fragment in sorted(self.fragments, key=lambda fragment: fragment.started or 0):
            if fragment.started is not None:
                fragment.merge(self.mixing)
        self._own.in_use = False

    def _begin_mean(self, vector: Tensor) -> Wait:
        """Begin to make ``vector`` the mean over the ranks."""
        return self._beside(partial(self._make_mean, vector))

    def _make_mean(self, vector: Tensor) -> None:
        format = FORMATS[self.bits]
        if format is None:
            self._all_reduce(vector)
            vector.div_(self.group.size())
        elif self.group.size() > 1:
            mean_in(format, vector, self.group)


class Fragment:
    """Parameters that are synchronised together, ``offset`` steps after those of the first fragment.

    ``shared``   the parameters that all ranks share, end to end; ``outer`` is their optimizer
    ``started``  the step after which the outer gradient left that is on its way, or None
    """

    def __init__(self, parameters: list[Parameter], offset: int, outer: Outer):
        self.parameters, self.offset = parameters, offset
        self.shared = _wide(parameters)
        self.outer = outer([self.shared])
        self.started: int | None = None

    def start(self, step: int, begin_mean: Callable[[Tensor], Wait]) -> None:
        """Send off the outer gradient, shared - local, in fp32."""
        self._gradient = (self.shared - _wide(self.parameters)).float()
        self._arrived, self.started = begin_mean(self._gradient), step

    def merge(self, mixing: float) -> None:
        """Wait for the mean of the outer gradients, step ``shared`` with it, and mix that in."""
        self._arrived()
        self.shared.grad = self._gradient.to(self.shared.dtype)
        self.outer.step()
        self.started = self.shared.grad = None
        del self._gradient, self._arrived
        write_back(self.shared if mixing == 1 else _wide(self.parameters).lerp_(self.shared, mixing), self.parameters)


def mean_in(format: Format, vector: Tensor, group: dist.ProcessGroup) -> None:
    """Make ``vector``, 1-D and fp32, the mean over the ranks, with numbers in ``format`` on the wire.

    Each rank sums all ranks' parts of one chunk, its own part exact. The mean of the chunk goes to all in ``format``
    again.
    """
    rank, chunks = group.rank(), chunks_of(vector, group.size())
    mine = chunks[rank]
    for sender, row in enumerate(to_owners(encoded(format, chunks), group)):
        if sender != rank:
            mine.add_(format.decode(row, mine.numel()))
    mine.div_(group.size())
    to_all(format, chunks, group)


# ---- layers and fragments


def layers_of(module: Module) -> list[list[Parameter]]:
    """The trained parameters of each part of ``module`` that has some itself, such as a Linear, in its order.

    A tied one belongs to the first part that has it.
    """
    seen: set[Parameter] = set()
    layers = []
    for part in module.modules():
        own = [p for p in part.parameters(recurse=False) if p.requires_grad and p not in seen]
        seen.update(own)
        if own:
            layers.append(own)
    return layers


def cut(layers: Sequence[list[Parameter]], fragments: int) -> list[list[list[Parameter]]]:
    """``layers`` in so many parts of consecutive ones, none empty, of about the same number of elements."""
    total, filled = sum(p.numel() for layer in layers for p in layer), 0
    parts: list[list[list[Parameter]]] = [[]]
    for place, layer in enumerate(layers):
        to_begin = fragments - len(parts)
        is_full = filled >= total * len(parts) / fragments
        if parts[-1] and to_begin and (is_full or len(layers) - place == to_begin):
            parts.append([])
        parts[-1].append(layer)
        filled += sum(p.numel() for p in layer)
    return parts


def _by_width(parameters: Iterable[Parameter]) -> list[list[Parameter]]:
    """Those that are summed as fp32, and those that are summed as fp64, if there are any."""
    parameters = list(parameters)
    wide = [p for p in parameters if p.dtype == torch.float64]
    return [some for some in ([p for p in parameters if p.dtype != torch.float64], wide) if some]


def _wide(parameters: Sequence[Parameter]) -> Tensor:
    """Their values end to end: fp32, or fp64 if one of them is."""
    return joined(parameters, torch.float64 if any(p.dtype == torch.float64 for p in parameters) else torch.float32)


# ---- checks


def _check_steps(every: int) -> None:
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(f"every is {every!r}; give a whole number of steps H between averages, from 1")


def _check_options(every: int, delay: int, mixing: float, bits: int) -> None:
    if isinstance(delay, bool) or not isinstance(delay, int) or not 0 <= delay < every:
        raise ValueError(f"delay is {delay!r}; give 0 to {every - 1} steps: the next turn comes every {every}")
    if not is_number(mixing) or not 0 < mixing <= 1:
        raise ValueError(f"mixing is {mixing!r}; give the weight of the shared parameters, above 0 and up to 1")
    if bits not in FORMATS:
        raise ValueError(f"bits is {bits!r}; take one of {', '.join(map(str, FORMATS))}")
