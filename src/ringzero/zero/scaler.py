"""Loss scaling: float16 has no numbers below 6e-8, so losses are scaled up, and gradients down again before a step.

Micikevicius et al., "Mixed Precision Training", ICLR 2018.
"""

from typing import Any

import torch

from ringzero.zero.model import ZeroModel


class GradScaler(torch.amp.GradScaler):
    """torch's ``GradScaler`` for a ``ZeroModel`` in the optimizer's place, and for plain optimizers.

        scaler.scale(loss).backward()
        scaler.unscale_(model)  # before clipping
        scaler.step(model)
        scaler.update()

    A rank sees the gradients of its shard alone. Where they overflow on one rank, all must leave the step out.
    """

    def _unscale_grads_(self, optimizer: Any, inv_scale: torch.Tensor, *args: Any) -> dict:
        if not isinstance(optimizer, ZeroModel):
            return super()._unscale_grads_(optimizer, inv_scale, *args)
        all_finite = optimizer.unscale_(inv_scale.item())
        return {inv_scale.device: torch.full((), float(not all_finite), device=inv_scale.device)}
