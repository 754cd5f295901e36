"""1-bit Adam: Adam while its variance settles, then momentum of which one bit a value travels.

Tang et al., "1-bit Adam: Communication Efficient Large-Scale Training with Adam's Convergence Speed" (2021). Adam is
not linear in the gradient, so errors of a compressed gradient would not add up to what was lost. The variance soon
changes little. Once it is frozen, Adam is momentum SGD with a learning rate for each coordinate, which is linear.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.optim.adam import adam

from ringzero.collectives import all_reduce
from ringzero.unsynced.compression.signs import chunks_of_bytes, mean_by_signs
from ringzero.unsynced.end_to_end import joined, write_back


class OneBitAdam(torch.optim.Optimizer):
    """Adam whose ``step`` averages over the ranks; the gradients that it finds are those of its own rank.

    So train the module itself, from the same parameters on all ranks, or a ``DistributedDataParallel`` in ``no_sync``.

    ``warmup_steps``  steps of ``torch.optim.Adam`` on the mean gradient, bit for bit: a ring all-reduce, after which
                      ``.grad`` is the mean. Then the variance stays as it is, and the momentum is averaged by its
                      signs, with errors kept on each rank and on the rank that owns a chunk. See
                      ``costs.compression.one_bit_adam_bytes``
    ``group``         by default all ranks

    A coordinate whose variance is 0 after the warm-up moves no more. Errors differ by rank, so each rank saves its own
    ``state_dict``. A gradient that is infinite or NaN on one rank makes parameters NaN on all.

    Raises ValueError for ``warmup_steps`` below 1 and for parameters that are neither fp32 nor fp64. ``step`` raises
    RuntimeError for a parameter without a gradient, and if a ``GradScaler`` calls it, which looks at one rank alone;
    ValueError for a sparse gradient, and for errors that were saved on another number of ranks.
    """

    _step_supports_amp_scaling = True  # so that a GradScaler calls ``step``, which refuses it

    def __init__(self, params: Iterable, lr: float = 1e-3, warmup_steps: int = 100,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
                 group: dist.ProcessGroup | None = None):  # fmt: skip
        if not (isinstance(warmup_steps, int) and warmup_steps >= 1):
            raise ValueError(f"warmup_steps is {warmup_steps!r}; give at least 1 step, in which the variance is found")
        if not (lr >= 0 and eps >= 0 and weight_decay >= 0 and all(0 <= beta < 1 for beta in betas)):
            raise ValueError(
                f"lr is {lr}, eps {eps}, weight_decay {weight_decay}, betas {betas}; give betas from 0 to below 1, the "
                "others from 0"
            )
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.warmup_steps, self._ranks = warmup_steps, cast(dist.ProcessGroup, group or dist.group.WORLD)

    def add_param_group(self, param_group: dict) -> None:
        if any(state["step"] for state in self.state.values()):
            raise ValueError("OneBitAdam has begun its warm-up; give it all parameters before the first step")
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1]["params"]:
            if parameter.dtype not in (torch.float32, torch.float64):
                raise ValueError(
                    f"a parameter of shape {tuple(parameter.shape)} is {parameter.dtype}, too coarse for a momentum; "
                    "keep masters in fp32 and give those"
                )
            self.state[parameter] = {
                name: torch.zeros_like(parameter, memory_format=torch.contiguous_format)
                for name in ("exp_avg", "exp_avg_sq", "error")
            } | {"step": torch.zeros((), device="cpu")}

    @torch.no_grad()
    def step(self, closure: Callable | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._check_gradients()
        is_warm = self._of(self._parameters(), "step")[0].item() >= self.warmup_steps
        if is_warm:
            self._update_momenta()
        for alike in self._vectors():
            (self._average_momenta if is_warm else self._average_gradients)(alike)
        for group in self.param_groups:
            (self._move if is_warm else self._move_as_adam)(group)
        return loss

    # ---- warm-up

    def _average_gradients(self, parameters: list[torch.Tensor]) -> None:
        gradients = [cast(torch.Tensor, parameter.grad) for parameter in parameters]
        write_back(all_reduce(joined(gradients), "avg", group=self._ranks), gradients)

    def _move_as_adam(self, group: dict) -> None:
        parameters, (beta1, beta2) = group["params"], group["betas"]
        momenta, variances, steps = (self._of(parameters, name) for name in ("exp_avg", "exp_avg_sq", "step"))
        adam(
            parameters, [p.grad for p in parameters], momenta, variances, [], steps, amsgrad=False, maximize=False,
            beta1=beta1, beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"], eps=group["eps"],
        )  # fmt: skip

    # ---- with the variance frozen

    def _update_momenta(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad.add(parameter, alpha=group["weight_decay"])
                self.state[parameter]["exp_avg"].lerp_(gradient, 1 - group["betas"][0])

    def _average_momenta(self, parameters: list[torch.Tensor]) -> None:
        momenta, errors, variances = (self._of(parameters, name) for name in ("exp_avg", "error", "exp_avg_sq"))
        values = joined(momenta) + joined(errors)
        mine = chunks_of_bytes(values, self._ranks.size())[self._ranks.rank()]
        owed = self.state[parameters[0]].setdefault("owner_error", torch.zeros_like(mine))
        if owed.numel() != mine.numel():
            raise ValueError(
                f"the error of this rank's chunk has {owed.numel()} values, and the chunk has {mine.numel()}; the "
                "state was saved on another number of ranks: remove owner_error from it"
            )
        mean = mean_by_signs(values, owed, self._ranks, self._ranks.size())
        write_back(mean * (joined(variances) != 0), momenta)  # nothing may be divided by a variance of 0
        write_back(values, errors)

    def _move(self, group: dict) -> None:
        beta1, beta2 = group["betas"]
        for parameter in group["params"]:
            state = self.state[parameter]
            state["step"] += 1
            deviation = state["exp_avg_sq"].div(1 - beta2**self.warmup_steps).sqrt_()
            rate = group["lr"] / (1 - beta1 ** state["step"].item())
            parameter.addcdiv_(state["exp_avg"], deviation.add_(group["eps"]), value=-rate)

    # ---- what it steps

    def _parameters(self) -> list[torch.Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _vectors(self) -> list[list[torch.Tensor]]:
        """The parameters that travel together: those of one type and device."""
        alike: dict[tuple, list[torch.Tensor]] = {}
        for parameter in self._parameters():
            alike.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        return list(alike.values())

    def _of(self, parameters: Iterable[torch.Tensor], name: str) -> list[torch.Tensor]:
        return [self.state[parameter][name] for parameter in parameters]

    def _check_gradients(self) -> None:
        if self.__dict__.pop("found_inf", None) is not None:
            raise RuntimeError(
                "OneBitAdam takes no GradScaler, which looks for overflows on one rank; train in bfloat16 or fp32"
            )
        for number, parameter in enumerate(self._parameters()):
            which = f"parameter {number}, of shape {tuple(parameter.shape)},"
            if parameter.grad is None:
                raise RuntimeError(f"{which} has no gradient; leave it out of OneBitAdam, or give it one on every rank")
            if parameter.grad.is_sparse:
                raise ValueError(
                    f"the gradient of {which} is sparse, and OneBitAdam compresses dense ones; make its layer with "
                    "sparse=False"
                )
