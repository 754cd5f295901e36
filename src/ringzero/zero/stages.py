"""The three stages of ZeRO: which of optimizer states, gradients and parameters a rank keeps whole.

Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020.
"""

import sys
from collections.abc import Iterable
from typing import Any, cast

import torch
from torch.nn import Module, Parameter

from ringzero.record.eager import not_compiled
from ringzero.zero.gather import Gatherer
from ringzero.zero.model import ZeroModel
from ringzero.zero.units import default_units, in_words, parameters_of


class ZeroStage1(ZeroModel):
    """Optimizer states are sharded: a rank keeps those of its shard of the parameters, and steps that shard alone.

    To step a shard takes its gradient only, so where data parallelism all-reduces a reduce-scatter is enough; after the
    step an all-gather hands the new parameters round. Both send what the all-reduce sent, 2 Psi (N-1)/N elements.
    """

    keeps_whole = ("gradients", "parameters")


class ZeroStage2(ZeroModel):
    """Gradients are sharded too: a vector's are reduced to shards and freed while the backward pass goes on.

    There is no whole gradient to add to, so ``no_sync`` changes nothing: every backward pass is reduced, and shards add
    up.
    """

    keeps_whole = ("parameters",)


class ZeroStage3(ZeroModel):
    """Parameters are sharded too: they are empty except while their unit computes.

    A unit's parameters are gathered before it computes, in the forward and again in the backward pass, while the unit
    before it still does, and freed after. With the gradients' reduce-scatter that sends 3 Psi (N-1)/N elements, and
    none after the step. As ``fully_shard``: Zhao et al., "PyTorch FSDP", VLDB 16 (2023).

    ``units``     modules whose parameters are gathered and freed together; by default the module's children, or what a
                  container among them holds; of a child with a stack of blocks inside, the blocks. What is in no unit,
                  or in several, is whole during the whole pass
    ``prefetch``  how many units are gathered ahead
    ``window``    the same, as how many units are whole at a time: one more. With ``home=Host(parameters=True)`` that is
                  a window of layers that slides over a model in the host's memory (Sun et al., "STRONGHOLD", SC 2022)

    Rank 0 says on stderr which units were taken by default.

    A parameter may be used only inside the ``forward`` of its unit; elsewhere that is a RuntimeError which names it.
    Frozen ones are sharded, too: gathered and freed with their unit's others, in a backward pass only where one comes
    through the unit. Buffers stay whole, and what is ``unused``. All ranks gather in one order, so with ``find_unused``
    they may use different units, but gradients then stay whole until the last gather; a unit that is used twice all
    must use twice. Activations may be recomputed by torch's checkpoint. ``torch.compile`` units before the model is
    sharded, or call their ``compile()``.
    """

    keeps_whole = ()

    def __init__(self, module: Module, optimizer: type[torch.optim.Optimizer], *,
                 units: Iterable[Module] | None = None, prefetch: int = 1, window: int | None = None,
                 **options: Any):  # fmt: skip
        if not isinstance(module, Module):
            raise TypeError("ZeroStage3 gathers parameters when the forward of a module runs; give the module")
        chosen = list(default_units(module) if units is None else units)
        if window is not None and not 1 <= window <= len(chosen):
            raise ValueError(f"window is {window}, and there are {len(chosen)} units; give 1 to {len(chosen)}")
        if prefetch < 0:
            raise ValueError(f"prefetch is {prefetch}; give a number of units, 0 or more")
        super().__init__(module, optimizer, units=chosen, **options)
        self.prefetch = prefetch if window is None else window - 1
        self._make_gatherer()
        if units is None and self.group.rank() == 0:
            print(f"ZeroStage3 gathers, by units and their parameters: {in_words(self._parts())}", file=sys.stderr)

    def _parts(self) -> dict[Module, dict[str, Parameter]]:
        named = self.trained | self.frozen_shards.parameters
        return parameters_of(cast(list, self.units), self.module, named)

    def _make_gatherer(self) -> None:
        vectors = [*self.vectors(), *self.frozen_shards.vectors]
        self.gatherer = Gatherer(self.module, self._parts(), vectors, self.group, self.prefetch, self.find_unused)

    def add_param_group(self, group: dict) -> None:
        super().add_param_group(group)
        cast(Gatherer, self.gatherer).leave()
        self._make_gatherer()

    def join(self, *_args: Any, **_options: Any) -> Any:
        """Refused: a rank without data makes no forward pass, in which all ranks gather parameters."""
        raise TypeError(
            "ZeroStage3 has no join: all ranks gather in every forward pass; take stage 1 or 2, or even data"
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        cast(Gatherer, self.gatherer).compiled.gather_outside()
        return super().forward(*args, **kwargs)

    # Whoever compiles the whole model finds its parameters empty. A unit that was compiled before stays compiled.
    not_compiled(forward, what_it_calls_too=True)


STAGES = {1: ZeroStage1, 2: ZeroStage2, 3: ZeroStage3}
