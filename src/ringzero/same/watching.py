"""What is noted while a program trains: at each step of an optimizer its gradients, at the end of a call the
parameters.

A note is plain data and holds samples of tensors: up to ``MOST`` elements of each, the same ones in every run. Sums,
means and multiples of samples are the samples of sums, means and multiples.
"""

import contextlib
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

from ringzero.same.program import Feed, replaced

MOST = 2048  # elements of a tensor
FORWARDS = 8  # whose input is noted
Tensors = dict[str, torch.Tensor]


class Enough(BaseException):
    """Enough steps were seen: the program, which may train for hours, ends here."""


class Drawn:
    """Whether random numbers are drawn between two notes: ``name`` says of which module, or is empty."""

    def __init__(self) -> None:
        self.name, self.last = "", None  # type: str, list | None

    def forget(self) -> None:
        self.last = None

    def note(self) -> None:
        states: list[tuple[str, Any]] = [
            ("torch", torch.get_rng_state().numpy().tobytes()),
            ("random", random.getstate()),
        ]
        if "numpy" in sys.modules:
            states.append(("numpy.random", str(sys.modules["numpy"].random.get_state())))
        if self.last is not None and not self.name:
            self.name = next((name for (name, old), (_, new) in zip(self.last, states, strict=False) if old != new), "")
        self.last = states


class Watch:
    """Notes what a program does. ``events`` are the notes, in order; ``start`` is what the models held at first."""

    def __init__(self, steps: int, feed: Feed, refuse_if_too_large: Callable[[int], None]):
        self.steps, self.feed, self.refuse_if_too_large = steps, feed, refuse_if_too_large
        self.events: list[dict] = []
        self.drawn = Drawn()
        self.start: Tensors = {}
        self.roots: list[nn.Module] = []  # modules that the program calls, none of them inside another
        self.depth, self.stepping = 0, 0  # calls of modules, and of optimizers, in one another
        self.types: set[str] = set()  # of what modules return
        self.backward: list[float] = []  # what backward passes began from, since the last step
        self.left: Tensors = {}  # gradients as the last backward pass left them
        self.raw: Tensors | None = None  # gradients before they were clipped
        self.clips: list[list[float]] = []
        self.inputs: list[list[int]] = []  # of the first forward passes: how many samples, and a checksum
        self.forward = False  # since the last backward pass
        self.unsynced, self.gathered, self.normalises = False, False, False
        self.busy, self.idle = False, False  # optimizers that had gradients, and that had none while the model had

    # What the program calls

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        hooks = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, always_call=True),
            optimizers.register_optimizer_step_pre_hook(self._before_step),
            optimizers.register_optimizer_step_post_hook(self._after_step),
        ]
        utils = nn.utils
        changes: list[tuple[Any, str, Callable]] = [
            (torch.Tensor, "backward", self._backward(torch.Tensor.backward)),
            (utils, "clip_grad_norm_", self._clip(utils.clip_grad_norm_)),
            (utils.clip_grad, "clip_grad_norm_", self._clip(utils.clip_grad.clip_grad_norm_)),
            (dist, "all_gather", self._gather(dist.all_gather)),
            (dist, "all_gather_into_tensor", self._gather(dist.all_gather_into_tensor)),
        ]
        try:
            with replaced(changes):
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def _enter(self, module: nn.Module, args: Any) -> None:
        if self.depth == 0 and torch.is_grad_enabled() and next(module.parameters(), None) is not None:
            self._note_forward(module, args)
        if (
            self.depth == 0
            and not any(module is root for root in self.roots)
            and next(module.parameters(), None) is not None
        ):
            inside = {id(m) for root in self.roots for m in root.modules()}
            self.roots = [r for r in self.roots if not any(r is m for m in module.modules())]
            if id(module) not in inside:
                self.roots.append(module)
            self.refuse_if_too_large(sum(p.numel() * p.element_size() for _, p in self._named()))
            if not self.events and not _gathers(module) and self.roots[-1] is module:
                self.start |= {_name(module, len(self.roots) - 1, n): sampled(p) for n, p in module.named_parameters()}
        self.depth += 1

    def _note_forward(self, module: nn.Module, args: Any) -> None:
        self.forward = True
        self.unsynced = not getattr(module, "require_backward_grad_sync", True)
        self.normalises = self.normalises or any(map(_normalises, module.modules()))
        tensor = next((arg for arg in args if type(arg) is torch.Tensor and arg.dim()), None)
        dense = tensor is not None and tensor.layout == torch.strided and tensor.device.type == "cpu"
        if tensor is not None and dense and len(self.inputs) < FORWARDS:
            self.inputs.append([len(tensor), checksum(tensor)])

    def _leave(self, _module: nn.Module, _args: Any, output: Any) -> None:
        self.depth -= 1
        if isinstance(output, torch.Tensor) and output.is_floating_point():
            self.types.add(_name_of(output.dtype))

    def _backward(self, real: Callable) -> Callable:
        def backward(loss: torch.Tensor, *args: Any, **options: Any) -> Any:
            if loss.numel() == 1:
                self.backward.append(loss.detach().item())
            self.unsynced |= not all(getattr(root, "require_backward_grad_sync", True) for root in self.roots)
            real(loss, *args, **options)
            self.forward = False
            if not any(map(_gathers, self.roots)):  # whose gradients are in shards
                self.left = {name: sampled(p.grad) for name, p in self._named() if _is_plain(p.grad)}

        return backward

    def _clip(self, real: Callable) -> Callable:
        def clip_grad_norm_(parameters: Any, max_norm: float, *args: Any, **options: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            if self.raw is None:
                self.raw = self.gradients(parameters)
            norm = real(parameters, max_norm, *args, **options)
            self.clips.append([float(whole(norm)), float(max_norm)])
            return norm

        return clip_grad_norm_

    def _gather(self, real: Callable) -> Callable:
        def gather(*args: Any, **options: Any) -> Any:
            tensors = [value for value in (*args, *options.values()) if isinstance(value, torch.Tensor)]
            features = all(tensor.dim() > 1 and tensor.is_floating_point() for tensor in tensors)
            self.gathered |= self.forward and bool(tensors) and features  # between a forward and a backward pass
            return real(*args, **options)

        return gather

    # What is noted

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.stepping += 1
        if self.stepping > 1:  # inside another optimizer's step: of the part that this rank has
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if len(self.events) >= self.steps:
            raise Enough
        trained = any(p.grad is not None for p in parameters)
        self.busy |= trained
        if not trained and not any(map(_gathers, self.roots)):
            self.idle |= any(p.grad is not None for _, p in self._named())
        if not any(p.numel() for p in parameters) or _is_shard(parameters, self.names()):
            return
        self.drawn.note()
        final = self.gradients(parameters)
        self.events.append({
            "kind": "step", "final": final, "raw": self.raw if self.raw is not None else final, "clips": self.clips,
            "backward": self.backward, "unsynced": self.unsynced, "gathered": self.gathered,
            "rates": [float(group["lr"]) for group in optimizer.param_groups if "lr" in group],
            "state": self._state(optimizer, parameters), "taken": len(self.feed.taken), "left": self.left,
            "held": [name for name, _ in self._held(parameters)],
        })  # fmt: skip
        self.raw, self.clips, self.backward, self.left, self.gathered = None, [], [], {}, False

    def _after_step(self, *_: Any) -> None:
        self.stepping -= 1

    def after_call(self, loss: Any) -> None:
        """The end of one call of the program's step."""
        value = _scalar(loss)
        self.events.append({
            "kind": "call", "loss": value, "parameters": self.parameters(), "buffers": self.buffers(),
            "backward": self.backward, "taken": len(self.feed.taken),
        })  # fmt: skip
        if not any(event["kind"] == "step" for event in self.events):
            self.backward = []

    def names(self) -> dict[int, str]:
        """``{id of a parameter: its name}`` in the models that the program calls."""
        return {id(p): _name(root, i, name) for i, root in enumerate(self.roots) for name, p in root.named_parameters()}

    def gradients(self, parameters: list[torch.Tensor]) -> Tensors:
        return {name: sampled(p.grad) for name, p in self._held(parameters) if p.grad is not None}

    def _held(self, parameters: list[torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
        names = self.names()
        return [(names.get(id(p), f"parameter {i} of the optimizer"), p) for i, p in enumerate(parameters)]

    def parameters(self) -> Tensors:
        found: Tensors = {}
        for i, root in enumerate(self.roots):
            if _gathers(root):  # a model of ``ringzero.zero``: its parameters are not whole in between
                trained = {name.removeprefix("module.") for name, _ in root.named_parameters()}
                state = {_name(root, i, name): value for name, value in root.state_dict().items() if name in trained}
                found |= {name: sampled(value) for name, value in state.items()}
            else:
                found |= {_name(root, i, name): sampled(p) for name, p in root.named_parameters()}
        return found

    def buffers(self) -> Tensors:
        return {
            _name(root, i, name): sampled(b) for i, root in enumerate(self.roots) for name, b in root.named_buffers()
        }

    def _state(self, optimizer, parameters):
        return {
            f"{key} of {name}": sampled(torch.as_tensor(value))
            for name, p in self._held(parameters)
            for key, value in optimizer.state.get(p, {}).items()
            if isinstance(value, (torch.Tensor, int, float))
        }

    def facts(self) -> dict:
        """What is so of the whole program, as plain data."""
        wrapped = [root for root in self.roots if isinstance(root, nn.parallel.DistributedDataParallel)]
        bare = [
            m.module
            for m in _alive(nn.parallel.DistributedDataParallel)
            if any(m.module is root for root in self.roots)
        ]
        return {
            "batch_norm": self.normalises, "wrapped": bool(wrapped), "past_the_wrapper": bool(bare),
            "idle_optimizer": self.idle and not self.busy,
            "types": sorted(self.types | {_name_of(p.dtype) for _, p in self._named()}) or ["float32"],
        }  # fmt: skip

    def _named(self):
        return [(_name(root, i, name), p) for i, root in enumerate(self.roots) for name, p in root.named_parameters()]


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Of a sharded tensor of FSDP2 all of it, which every rank must ask for; of others themselves."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes())


def sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Up to ``MOST`` elements at fixed places, in float64."""
    with torch.no_grad():
        flat = whole(tensor.detach())
        flat = (flat.to_dense() if flat.layout != torch.strided else flat).flatten()
        if flat.numel() > MOST:
            flat = flat[torch.arange(MOST, device=flat.device) * (flat.numel() - 1) // (MOST - 1)]
        return flat.to("cpu", torch.complex128 if flat.is_complex() else torch.float64).clone()


def _normalises(module):
    """With the statistics of a rank's own batch."""
    norms, sync = nn.modules.batchnorm._BatchNorm, nn.SyncBatchNorm
    return module.training and isinstance(module, norms) and not isinstance(module, sync)


def _is_plain(gradient):
    return gradient is not None and not hasattr(gradient, "full_tensor")  # a shard's whole would be a collective


def _name_of(dtype):
    return str(dtype).removeprefix("torch.")


def _gathers(module):
    return hasattr(module, "sharded_keys")


def _is_shard(parameters, names):
    """Whether none of an optimizer's parameters is one of a model's: it works on shards, whose owner steps it."""
    return bool(names) and not any(id(p) in names for p in parameters)


def _alive(kind):
    import gc

    return [value for value in gc.get_objects() if type(value) is kind]


def _name(root, index, name):
    """Without a wrapper's prefix; of models behind the first, with their number."""
    return name.removeprefix("module.") + f" of model {index + 1}" * bool(index)


def _scalar(loss):
    if isinstance(loss, dict):
        loss = loss.get("loss")
    if isinstance(loss, (tuple, list)) and loss:
        loss = loss[0]
    if isinstance(loss, torch.Tensor):
        return float(loss.detach()) if loss.numel() == 1 else None
    return float(loss) if isinstance(loss, (int, float)) else None
