"""What all ways of compressing gradients share: errors that are kept, and three ways in.

| way                                                               | messages go through                        |
|-------------------------------------------------------------------|--------------------------------------------|
| ``ringzero``'s ``DistributedDataParallel(compressor=compressor)`` | the model's own process group              |
| its ``register_comm_hook(compressor, compressed)``                | ``compressor.group``, or the default group |
| ``register_comm_hook(compressor, compressed)`` of torch's DDP     | the same                                   |

The work runs beside the backward pass (``data_parallel.executor``), in the order in which buckets leave. All three send
the same messages and add in the same order, so for the same buckets their results are equal bit for bit. (torch's DDP
has other buckets in its first backward pass.)
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from weakref import ref
from zlib import crc32

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future
from torch.nn import Module
from torch.utils.weak import WeakIdKeyDictionary

from ringzero.data_parallel.executor import Done, queue_of
from ringzero.data_parallel.hooked import replica_of
from ringzero.data_parallel.in_order import Wait
from ringzero.data_parallel.replica import Replica
from ringzero.unsynced.end_to_end import joined, views


@dataclass(frozen=True)
class Exchange:
    """One exchange between the ranks: of the gradients of ``parameters``, which lie end to end.

    ``ranks``  by how many a sum is divided; fewer than the group has where some are out of data (``join``)
    ``step``   backward passes before this one; ``index``, the place of these gradients in the pass
    """

    parameters: tuple[Tensor, ...]
    group: dist.ProcessGroup
    ranks: int
    step: int
    index: int

    def random(self, device: torch.device, *seed: int) -> torch.Generator:
        """A source of random numbers of this exchange alone: the same on ranks that give the same ``seed``."""
        return torch.Generator(device).manual_seed(crc32(repr((self.step, self.index, *seed)).encode()))


class Compressor(ABC):
    """How gradients become their mean over the ranks, with fewer bytes. Give each model a compressor of its own.

    With ``error_feedback`` each rank adds to a gradient what it has not sent of the earlier ones: Seide et al., "1-Bit
    Stochastic Gradient Descent" (2014); why it works: Karimireddy et al., "Error Feedback Fixes SignSGD" (2019). These
    errors stay with their parameters when buckets are cut anew. They differ by rank, so each rank saves its own
    ``state_dict``.

    Gradients of half precision are compressed, sent and kept as fp32; float64 stays float64. A gradient that is
    infinite or NaN on one rank makes part of the result so on every rank. Loss scaling skips such a step, so errors
    stay as they were. Errors are kept in the loss scale of their step: after a change of the scale they are off once.

    ``group``  of the messages of a communication hook; by default all ranks
    ``steps``  backward passes so far

    A hook with ``find_unused`` loses errors: a parameter that no rank used gets no gradient, so its error is added to
    nothing. ``compressor=`` refuses that.
    """

    def __init__(self, error_feedback: bool, group: dist.ProcessGroup | None = None):
        self.group, self.error_feedback = group, error_feedback
        self.reset()

    def __repr__(self) -> str:
        options = {
            name: value for name, value in vars(self).items() if name[0] != "_" and name not in ("group", "steps")
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in options.items())})"

    @abstractmethod
    def mean(self, values: Tensor, exchange: Exchange) -> Tensor:
        """The mean of 1-D ``values`` over the ranks, as far as it is known; the same bits on all ranks.

        In ``values`` is then what this rank has not sent.
        """

    def reset(self) -> None:
        """Forget all errors, and begin at step 0. All ranks must do it at the same place."""
        self.steps = 0
        self._kept = {"errors": WeakIdKeyDictionary()}  # kind -> parameter -> what is kept of it
        self._model: Any = None  # that has this one: a weak reference to its replica, or its process group

    # ---- ways in

    def start(self, bucket: Any, group: dist.ProcessGroup, ranks: int) -> Wait:
        """Begin to replace the gradients of ``bucket`` by their mean. Returns what waits for it.

        Raises ValueError for gradients that are sparse or no real numbers, for a parameter whose shape has changed
        since its error was kept, and for a compressor that another model has.
        """
        replica = replica_of(next(iter(bucket.parameters())))
        model = group if replica is None else ref(replica)  # a group may serve another model when its own is gone
        if self._model is not None and self._model != model:
            raise ValueError(
                f"this {type(self).__name__} has the errors of another model; make one for each model, or call its "
                "reset() first, on every rank"
            )
        self._model = model
        return self._begin(bucket, group, ranks).result

    def _begin(self, bucket: Any, group: dist.ProcessGroup, ranks: int, result: Future | None = None) -> Done:
        """Begin to replace the bucket's gradients by their mean, beside the caller. ``result`` gets the mean, too."""
        buffer = self._checked(bucket)
        exchange = Exchange(tuple(bucket.parameters()), group, ranks, self.steps, bucket.index())
        if bucket.is_last():
            self.steps += 1
        self._check_shapes(exchange.parameters)
        return queue_of(group, buffer.device).submit(partial(self._replace, buffer, exchange, result))

    def _checked(self, bucket: Any) -> Tensor:
        """The bucket's gradients, 1-D."""
        buffer, name = bucket.buffer(), type(self).__name__
        sparse = bucket.sparse() if hasattr(bucket, "sparse") else []
        if buffer.is_sparse:  # torch's DDP has buckets of a single sparse gradient
            sparse = [f"a parameter of shape {tuple(buffer.shape)}"]
        if sparse:
            raise ValueError(
                f"the gradient of {', '.join(sparse)} is sparse, and {name} compresses dense ones; make its layer with "
                "sparse=False"
            )
        if not buffer.is_floating_point():
            raise ValueError(f"gradients are {buffer.dtype}, and {name} compresses real floating-point numbers")
        return buffer

    def _replace(self, buffer: Tensor, exchange: Exchange, result: Future | None) -> None:
        try:
            if self.error_feedback:
                before = self._errors_of(exchange.parameters, buffer)
                values = before + buffer
                buffer.copy_(self.mean(values, exchange))
                # All ranks have the same mean, so all keep new errors or none does.
                after = torch.where(buffer.isfinite().all(), values, before)
                for parameter, error in zip(exchange.parameters, views(after, exchange.parameters), strict=True):
                    self._kept["errors"][parameter] = error
            else:
                buffer.copy_(self.mean(buffer.to(precision(buffer), copy=True), exchange))
            if result is not None:
                result.set_result(buffer)
        except Exception as error:
            if result is not None:  # torch's DDP waits for this alone
                result.set_exception(error)
            raise

    def _errors_of(self, parameters: Sequence[Tensor], gradient: Tensor) -> Tensor:
        """Those of ``parameters``, end to end, as their ``gradient`` is; zeros at first."""
        errors = (self._kept["errors"].get(parameter) for parameter in parameters)
        known = [torch.zeros(p.shape) if error is None else error for p, error in zip(parameters, errors, strict=True)]
        return joined(known, precision(gradient), gradient.device)

    def _check_shapes(self, parameters: Sequence[Tensor]) -> None:
        for parameter in parameters:
            error = self._kept["errors"].get(parameter)
            if error is not None and error.shape != parameter.shape:
                raise ValueError(
                    f"the error kept is that of a parameter of shape {tuple(error.shape)}, whose shape is "
                    f"{tuple(parameter.shape)} now; call reset() on every rank, which forgets all errors"
                )

    # ---- what is saved

    def state_dict(self, module: Module) -> dict[str, Any]:
        """This rank's errors, by the names of the parameters of ``module``, and the number of steps.

        ``module`` is what was trained, wrapped or not; names are those of the module inside.
        """
        named = dict(_inside(module).named_parameters())
        kinds = {
            kind: {name: kept[parameter].clone() for name, parameter in named.items() if parameter in kept}
            for kind, kept in self._kept.items()
        }
        return {"steps": self.steps, **kinds}

    def load_state_dict(self, state: Mapping[str, Any], module: Module) -> None:
        """Go on from a ``state_dict`` of this rank. Raises ValueError for a name or a shape that ``module`` lacks."""
        parameters = dict(_inside(module).named_parameters())
        loaded = []
        for kind in self._kept:
            for name, tensor in state[kind].items():
                if name not in parameters:
                    raise ValueError(f"the state has {kind} of {name}, and the module has no parameter of that name")
                self._check_shape(kind, name, tensor, parameters[name])
                loaded.append((kind, parameters[name], tensor))
        self.reset()
        self.steps = state["steps"]
        for kind, parameter, tensor in loaded:
            self._kept[kind][parameter] = tensor.to(parameter.device, copy=True)

    def _check_shape(self, kind: str, name: str, tensor: Tensor, parameter: Tensor) -> None:
        if tensor.shape != parameter.shape:
            raise ValueError(
                f"the state's {kind} of {name} have the shape {tuple(tensor.shape)}, and the parameter has "
                f"{tuple(parameter.shape)}; load the state of the same module"
            )


class Mean(Future):
    """What a communication hook returns. ``job`` makes the mean."""

    job: Done | None = None

    def wait(self) -> Any:
        if self.job is not None:
            self.job.result()  # raises what the job raised; the caller's stream waits for that of the job
        return super().wait()


def compressed(state: Compressor, bucket: dist.GradBucket) -> Future[Tensor]:
    """The communication hook of a compressor, ``register_comm_hook(TopK(0.01), compressed)``: here, or in torch's DDP.

    Raises TypeError if ``state`` is no compressor, else as ``Compressor.start``.
    """
    if not isinstance(state, Compressor):
        raise TypeError(f"the hook compressed got {state!r}; register_comm_hook(TopK(0.01), compressed) gives it one")
    buffer, group = bucket.buffer(), cast(dist.ProcessGroup, state.group or dist.group.WORLD)
    mean = Mean(devices=[buffer.device] if buffer.is_cuda else None)
    mean.job = state._begin(bucket, group, group.size(), mean)
    return mean


def precision(gradient: Tensor) -> torch.dtype:
    """The type in which a gradient is compressed and sent."""
    return torch.float64 if gradient.dtype == torch.float64 else torch.float32


def _inside(module: Module) -> Module:
    """The module that a wrapper holds."""
    wrapped = isinstance(module, Replica | torch.nn.parallel.DistributedDataParallel)
    return cast(Module, module.module) if wrapped else module
