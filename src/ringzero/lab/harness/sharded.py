"""Sharded training for checks: some steps on every rank, with every byte they hold and send counted.

What is trained is a ``training.Model`` of ten layers, eight of one size. ``train(make, **case)`` calls ``make(layers)``
on every rank and trains with what that returns: an object with ``flats``, ``gradients`` (this rank's shard of each
flat's mean gradient), ``reduce()`` after the backward pass, and ``step()``. ``alone`` says what it should come to, from
torch's AdamW in one process.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist

from ringzero.lab.harness import found, training
from ringzero.record import recorder
from ringzero.record.memory import MemoryTimeline, label
from ringzero.record.operation import bytes_sent

HIDDEN = (33,) * 9
# A usual eps, 1e-8, would let rounding decide the sign of a step whose gradient is nearly 0.
ADAMW: dict[str, Any] = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-5, "weight_decay": 0.01}
NUMBERS = ("exp_avg", "exp_avg_sq")  # AdamW's, for each parameter
NOT_COUNTED = 4_000  # bytes that may be kept in other things than tensors


def network(seed: int, hidden: tuple = HIDDEN, double: tuple = ()) -> training.Model:
    module = training.Model(seed, hidden, double)
    for i in double:
        module.layers[i] = _Turned(*module.layers[i])
    return module


class _Turned(torch.nn.Module):
    """The layers of a ``Sequential``, registered the other way round: the first parameter gets its gradient early."""

    def __init__(self, *layers: torch.nn.Module):
        super().__init__()
        self.layers = torch.nn.ModuleList(reversed(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in reversed(self.layers):
            x = layer(x)
        return x


def numbers(shape: tuple, seed: int) -> torch.Tensor:
    """Random numbers, the same in every process, on the CPU."""
    return torch.randn(shape, generator=torch.Generator("cpu").manual_seed(seed), device="cpu")


def train(
    make: Callable, *, seed: int, steps: int = 2, passes: int = 1, hidden: tuple = HIDDEN, double: tuple = (),
    beside: bool = False, then: Callable | None = None,
) -> dict:  # fmt: skip
    """On a rank: ``steps`` steps of ``passes`` backward passes each, and what there is to report of them.

    With ``beside`` another model is trained in turn with this one, and not reported. Reported are the ``gradients`` of
    the first step (shards), the states after the ``first`` and the ``last`` (see ``_state``), an ``output`` of the
    model then, the bytes ``sent``, the ``memory`` of the last step (see ``_phases``) with the whole ``history``, and
    what ``Between`` saw. ``then(module, zero)`` is called afterwards; what it returns is "then".
    """
    warnings.filterwarnings("ignore", "Full backward hook is firing")  # at the first layer, in stage 3
    rank, ranks = dist.get_rank(), dist.get_world_size()
    module = network(seed, hidden, double)
    report, before = {}, len(recorder.recorded())
    between, other = Between(module), _Other(make, seed + 1, hidden) if beside else None
    with MemoryTimeline(module) as memory:
        zero = make(list(module.layers))
        if other is not None:
            other.make()
        _must_be_their_own(zero)
        for flat in zero.flats:
            must_have_memory(flat.shard)
        memory.mark("made")
        for step in range(steps):
            memory.mark("start")
            for i in range(passes):
                with plainly("forward"):
                    loss = training.loss_of(module, seed + 100 * step + i, rank, ranks)
                between.note("forward", "its end")
                module.seen.clear()
                if other is not None:
                    other.forward(step, i)
                memory.mark("forward")
                _must_be_counted(module, zero)
                with plainly("backward"):
                    loss.backward()
                between.note("backward", "its end")
                memory.mark("backward")
                if other is not None:
                    other.backward()
            del loss
            _must_be_counted(module, zero)
            zero.reduce()
            _must_be_reduced(zero.gradients)
            if step == 0:
                report["gradients"] = _plain(zero.gradients)
            _label(zero.gradients, "gradients")
            memory.mark("reduced")
            zero.step()
            if other is not None:
                other.zero.reduce()
                other.zero.step()
            report["not_let_go"] = [i for i, gradient in enumerate(zero.gradients) if gradient is not None]
            _must_be_tensors(zero.states)
            _label([number for state in zero.states for number in state.values()], "optimizer")
            memory.mark("step")
            if step == 0:
                report["first"] = _state(module, zero)
        history = memory.history()
    report["sent"] = bytes_sent(recorder.recorded()[before:])
    report |= {"whole": between.whole, "late": between.late}
    report["then"] = then(module, zero) if then else None
    report["last"] = _state(module, zero)
    with torch.no_grad():
        report["output"] = module(training.batch(seed)[0])
    return report | {"memory": _phases(history), "history": [history.bytes, history.seconds, history.marks]}


class Between(dict):
    """Looks at a model where a pass comes to a layer, before the layer's own hooks, and at the end of the pass.

    ``whole`` says for each pass, "forward" and "backward", when at first some layer had its memory then, and which (the
    last layer may have it between the passes);
    ``late`` in the same way which layer after that had a ``.grad`` still. It is the model's dict ``begun``.
    """

    def __init__(self, module: training.Model):
        super().__init__()
        self.layers, module.begun = list(module.layers), self
        self.whole: dict[str, list] = {}
        self.late: list = []
        for i, layer in enumerate(self.layers):
            layer.register_forward_pre_hook(lambda *_, i=i: self.note("forward", f"layer {i}"))

    def __setitem__(self, i: int, when: float) -> None:
        super().__setitem__(i, when)
        self.note("backward", f"layer {i}")

    def note(self, which: str, place: str) -> None:
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            parameters = list(layer.parameters())
            stays = i == last and (which, place) in (("forward", "its end"), ("backward", f"layer {last}"))
            if all(map(_is_there, parameters)) and not stays:
                self.whole.setdefault(which, [i, place])
            if which == "backward" and all(p.grad is not None for p in parameters) and not self.late:
                self.late = [i, place]


class _Other:
    """Another model that is trained in turn with one."""

    def __init__(self, make: Callable, seed: int, hidden: tuple):
        self._make, self._seed, self._module = make, seed, network(seed, hidden)

    def make(self) -> None:
        self.zero = self._make(list(self._module.layers))

    def forward(self, step: int, i: int) -> None:
        self._loss = training.loss_of(self._module, self._seed + 100 * step + i, dist.get_rank(), dist.get_world_size())

    def backward(self) -> None:
        self._loss.backward()
        del self._loss


def _must_be_counted(module, zero):
    """Raise if a student keeps NumPy arrays, bytes or lists, which nobody counts, where ``zero`` or the model leads."""
    if (size := found.uncounted(zero, module)) > NOT_COUNTED:
        raise RuntimeError(f"{size:,} bytes are kept in NumPy arrays, bytes or lists: keep tensors, which are counted")


def train_and_save(checkpoint: Callable, *stages: Callable, stage: int, **case: Any) -> dict:
    """``train`` with one of the three stages, over the layers in reverse order; then a checkpoint, by name and key.

    That is "saved" in the report's "then", and "changed" there is what the checkpoint did not leave as it was.
    """

    def make(layers):
        return stages[stage - 1](layers[::-1])

    def save(module, zero):
        before = _contents(module, zero)
        saved = checkpoint(module, zero)
        after = _contents(module, zero)
        changed = [what for what, value in before.items() if not _equal(value, after.get(what))]
        live = {x.untyped_storage().data_ptr() for x in (*module.parameters(), *_numbers(zero)) if _is_there(x)}
        for name, tensors in saved.items():
            for key, value in tensors.items():
                if value.untyped_storage().data_ptr() in live:
                    raise RuntimeError(f"{key} of {name} lies in the memory of the model, which the next step changes")
        copies = {name: {key: value.clone() for key, value in tensors.items()} for name, tensors in saved.items()}
        if not changed and _memory_of(saved) & _memory_of(checkpoint(module, zero)):
            raise RuntimeError("a second checkpoint has the tensors of the first: it is to be made anew")
        return {"saved": copies, "changed": changed}

    return train(make, then=save, **case)


def alone(
    ranks: int, *, seed: int, steps: int = 2, passes: int = 1, hidden: tuple = HIDDEN, double: tuple = (), **_: Any
) -> dict:
    """What ``train`` comes to in one process that does the parts of all ranks, by the parameters' names.

    ``gradients`` of the first step, parameters after the ``first`` and the ``last``, AdamW's ``NUMBERS``, ``output``.
    """
    module = network(seed, hidden, double)
    optimizer = torch.optim.AdamW(module.parameters(), **ADAMW)
    report: dict[str, Any] = {}
    for step in range(steps):
        for i in range(passes):
            for rank in range(ranks):
                (training.loss_of(module, seed + 100 * step + i, rank, ranks) / ranks).backward()
        report.setdefault("gradients", {name: p.grad for name, p in module.named_parameters()})
        optimizer.step()
        optimizer.zero_grad()
        report.setdefault("first", {name: p.detach().clone() for name, p in module.named_parameters()})
    report["last"] = {name: p.detach() for name, p in module.named_parameters()}
    for number in NUMBERS:
        report[number] = {name: optimizer.state[p][number] for name, p in module.named_parameters()}
    return report | {"output": module(training.batch(seed)[0]).detach()}


def _memory_of(saved):
    """Where the tensors of a checkpoint are."""
    return {value.untyped_storage().data_ptr() for tensors in saved.values() for value in tensors.values()} - {0}


def _contents(module, zero):
    """Copies of all that a model and its stage hold, by what it is in words."""
    there = {f"the parameter {name}": p.detach() for name, p in module.named_parameters() if _is_there(p)}
    shards = {f"flats[{i}].shard": flat.shard for i, flat in enumerate(zero.flats)}
    states = {f"states[{i}][{key!r}]": value for i, state in enumerate(zero.states) for key, value in state.items()}
    return {
        what: value.clone() if isinstance(value, torch.Tensor) else value
        for what, value in (there | shards | states).items()
    }


def _equal(one, other):
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    return one == other


def _numbers(zero):
    """AdamW's numbers, and shards."""
    numbers = [number for state in zero.states for number in state.values() if isinstance(number, torch.Tensor)]
    return [*numbers, *(flat.shard for flat in zero.flats)]


def _label(values, kind):
    for value in values:
        if isinstance(value, torch.Tensor):
            label(value, kind)


def _state(module, zero):
    """Parameters by name, those that are there, and the shard of each flat."""
    there = {name: p for name, p in module.named_parameters() if _is_there(p)}
    return {
        "parameters": dict(zip(there, _plain(there.values()), strict=True)),
        "shards": _plain(flat.shard for flat in zero.flats),
        "comes_and_goes": all(hasattr(flat, "free") for flat in zero.flats),
    }


def _plain(tensors):
    """As lists, which are no tensors held."""
    return [None if tensor is None else tensor.tolist() for tensor in tensors]


def _is_there(parameter):
    return parameter.untyped_storage().nbytes() >= parameter.nbytes


def must_have_memory(shard: torch.Tensor) -> None:
    """Raise RuntimeError, in words for a student, if the memory of a shard was freed with the whole vector."""
    if shard.untyped_storage().nbytes() < shard.nbytes:
        raise RuntimeError("the shard has lost its memory: it is a view of the vector that was freed, not a copy")


@contextmanager
def plainly(what: str) -> Iterator[None]:
    """Say in a student's words what torch says of storages without memory, met in the ``what`` pass."""
    try:
        yield
    except RuntimeError as error:
        if "storage of size 0" not in str(error) and "not allocated yet" not in str(error):
            raise
        why = "uses parameters whose memory was freed, and not gathered again into the same storage"
        raise RuntimeError(f"the {what} pass {why}") from error


def _must_be_their_own(zero):
    for part in (zero, *zero.flats):
        if type(part).__module__.startswith(("ringzero", "torch")):
            raise RuntimeError(f"{type(part).__module__}.{type(part).__name__} is not to be used: write it yourself")


def _must_be_reduced(gradients):
    missing = [i for i, gradient in enumerate(gradients) if gradient is None]
    if not missing:
        return
    why = f"gradients[{missing[0]}] is None after the backward pass and reduce(): nothing reduced that layer"
    if missing == list(range(len(gradients) - 1)):
        why += ". Hooks made in a loop all see its last i, unless they keep it: lambda p, i=i: ..."
    raise RuntimeError(why)


def _must_be_tensors(states):
    for i, state in enumerate(states):
        for name, number in state.items():
            if not isinstance(number, (torch.Tensor, int, float)):
                kind = f"{type(number).__module__}.{type(number).__name__}".removeprefix("builtins.")
                raise RuntimeError(f"states[{i}][{name!r}] is a {kind}: keep tensors, whose memory can be counted")


def _phases(history):
    """For the last mark of each name: bytes "held" then, and the "peak" of the phase that it ended.

    What autograd keeps for the backward pass, activations, is left out.
    """
    held = [total - kept for total, kept in zip(history.totals, history.bytes["activations"], strict=True)]
    phases = {}
    for (_, begin), (name, end) in pairwise([("", 0), *history.marks]):
        phases[name] = {"held": held[end], "peak": max(held[begin : end + 1])}
    return phases
