"""Bytes of a training step on this rank, by what they are for: measured, every storage once, on a CPU or a GPU.

    with MemoryTimeline(model, optimizer) as memory:
        loss = model(x).sum()
        memory.mark("forward")
        loss.backward()
        memory.mark("backward")
        optimizer.step()
        memory.mark("step")
    print(memory)                        # a table: what was held at each mark, and at the peak
    memory.at("forward")["activations"]  # bytes
    memory.peak().total, memory.peak("activations").phase

A storage is counted from the operation that creates it, or first uses it, until nothing refers to it. Views, tied
parameters and tensors saved twice share one, which counts once. It is of one kind: ``parameters`` of the module,
their ``gradients``, what only the ``optimizer`` has (states, fp32 copies), ``activations`` while autograd has them
saved. A communication buffer looks like any other tensor, so the code that allocates ``buckets`` or shards names them
with ``label``. The rest is ``other``: inputs, temporary results, what torch's own checkpoint computes again. A storage
that another thread creates is counted when this thread uses it or labels it. Sizes are what tensors ask for; CUDA's
allocator gives more.

torch's ``MemTracker`` counts all that a forward pass creates as activations, has no kind for buckets, and keeps a peak
but no history.
"""

import contextlib
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from unittest import mock  # patch.object can also undo the override of an inherited method

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

# A storage of two kinds counts as the first of them.
KINDS = ("parameters", "gradients", "optimizer", "buckets", "activations", "other")
PLAIN = torch.Tensor.__torch_dispatch__
_running: list["MemoryTimeline"] = []
before_marks: list[Callable[[], None]] = []  # called before each mark: ``strict`` releases finished tensors there


def label(tensor: torch.Tensor, kind: str) -> None:
    """Tell every running ``MemoryTimeline`` the ``kind`` of ``tensor``; without one, do nothing."""
    for timeline in _running:
        timeline.label(tensor, kind)


@dataclass(frozen=True)
class Snapshot:
    """``bytes`` of each kind after a change, ``seconds`` after the start, in the ``phase`` that the next mark ends."""

    phase: str
    change: int
    seconds: float
    bytes: dict[str, int]

    def __getitem__(self, kind: str) -> int:
        return self.bytes[kind]

    @property
    def total(self) -> int:
        """Bytes of all kinds together."""
        return sum(self.bytes.values())


@dataclass(frozen=True)
class History:
    """Bytes of each kind after every change (an allocation, a release, a mark), and the marks as ``(name, change)``."""

    bytes: dict[str, list[int]]
    seconds: tuple[float, ...]
    marks: tuple[tuple[str, int], ...]

    @property
    def totals(self) -> list[int]:
        """Bytes of all kinds together after every change."""
        return [sum(held) for held in zip(*self.bytes.values(), strict=True)]


@dataclass
class _Holding:
    """A stretch of a storage's life with one size and one purpose. ``born`` and ``died`` are numbers of changes."""

    size: int
    born: int = 0
    kind: str = "other"
    told: bool = False  # whether ``label`` named the kind, which then stays
    saved: int = 0  # how often autograd has it saved now
    died: int | None = None


class _Saved:
    """What autograd holds in place of a tensor: when autograd drops it, the timeline is told."""

    def __init__(self, timeline, tensor):
        self.timeline, self.storages = timeline, [storage._cdata for storage in _storages(tensor)]
        self.tensor = tensor.detach()  # else a cycle: the tensor refers to the graph, and the graph to this object

    def __del__(self):
        del self.tensor
        for address in self.storages:
            self.timeline._release(address)


class MemoryTimeline(TorchDispatchMode):
    """Measures inside a ``with``, each time from the beginning; operations take longer there.

    ``module`` and ``optimizer`` are those of the training step. With a ``device`` ("cpu", "cuda") only the storages
    there count.
    """

    def __init__(
        self, module: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None, device: str | None = None
    ):
        super().__init__()
        self.module, self.optimizer, self.device = module, optimizer, device
        self._live: dict[int, _Holding] = {}  # by the address of the storage
        self._alive: dict[int, weakref.ref] = {}  # to the storage, by its address
        self._holdings: list[_Holding] = []
        self._seconds: list[float] = []  # of each change
        self._marks: list[tuple[str, int]] = []  # name, change
        self._begin = time.perf_counter()

    def __enter__(self):
        self.__init__(self.module, self.optimizer, self.device)
        with contextlib.ExitStack() as stack:
            stack.enter_context(saved_tensors_hooks(self._save, lambda saved: saved.tensor))
            stack.enter_context(_resizes_noticed())
            for parameter in self.module.parameters():
                if parameter.requires_grad:  # count a gradient before the program can remove it
                    stack.callback(parameter.register_hook(self._see_gradient).remove)
            if self.optimizer is not None:
                stack.callback(self.optimizer.register_step_pre_hook(lambda *_: self._look_up()).remove)  # gradients
                stack.callback(self.optimizer.register_step_post_hook(lambda *_: self._look_up()).remove)  # and states
            _running.append(self)
            stack.callback(_running.remove, self)
            self._exits = stack.pop_all()
        self._look_up()
        for holding in self._holdings:  # what existed before is held from change 0 on
            holding.born = 0
        self._seconds = [0.0]
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._look_up()
        self._alive.clear()
        self._live.clear()
        self._exits.close()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(kind.__torch_dispatch__ is not PLAIN for kind in types):
            return NotImplemented  # such as a DTensor: the operations on its local tensors come next
        for tensor in _tensors((args, kwargs)):
            self._see(tensor, "parameters" if id(tensor) in self._own else "other")
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            self._see(tensor)
        return result

    @classmethod
    def _should_skip_dynamo(cls):  # else torch imports its compiler, which takes seconds in a fresh rank
        return False

    def mark(self, name: str) -> None:
        """Remember this moment as the end of phase ``name``."""
        for catch_up in before_marks:
            catch_up()
        self._look_up()
        self._marks.append((name, self._tick()))

    def label(self, tensor: torch.Tensor, kind: str) -> None:
        """Set the kind of ``tensor``'s storage, from its beginning on. Raises ValueError for an unknown kind."""
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}; it is one of {', '.join(KINDS)}")
        for holding in self._see(tensor):
            holding.kind, holding.told = kind, True

    def history(self) -> History:
        """The ``History`` so far: what a figure draws."""
        held = {kind: [0] * len(self._seconds) for kind in KINDS}
        for holding in self._holdings:
            held[holding.kind][holding.born] += holding.size
            if holding.died is not None:
                held[holding.kind][holding.died] -= holding.size
        added_up = {kind: list(accumulate(changes)) for kind, changes in held.items()}
        return History(added_up, tuple(self._seconds), tuple(self._marks))

    def at(self, name: str) -> Snapshot:
        """The ``Snapshot`` at the last mark of this name. Raises ValueError if there is none."""
        marks = dict(self._marks)  # the last of each name
        if name not in marks:
            raise ValueError(f"no mark {name!r}; there is {', '.join(marks)}")
        return self._snapshot(self.history(), marks[name])

    def peak(self, kind: str | None = None) -> Snapshot:
        """The first ``Snapshot`` with the most bytes, of all kinds together or of one."""
        history = self.history()
        held = history.totals if kind is None else history.bytes[kind]
        return self._snapshot(history, max(range(len(held)), key=held.__getitem__))

    def table(self) -> tuple[list[str], list[list]]:
        """``(head, rows)``: bytes of each kind at every mark and at the peak, totals last."""
        history, peak = self.history(), self.peak()
        shots = [self._snapshot(history, change) for _, change in self._marks] + [peak]
        head = ["bytes", *(name for name, _ in self._marks), f"peak, in {peak.phase}"]
        rows = [[kind, *(shot[kind] for shot in shots)] for kind in KINDS]
        return head, [*rows, ["all", *(shot.total for shot in shots)]]

    def __repr__(self):
        head, rows = self.table()
        text = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in (head, *rows)]
        widths = [max(map(len, column)) for column in zip(*text, strict=True)]
        return "\n".join("  ".join(map(str.rjust, row, widths)) for row in text)

    def _snapshot(self, history, change):
        phase = next((name for name, at in history.marks if at >= change), "the end")
        held = {kind: held[change] for kind, held in history.bytes.items()}
        return Snapshot(phase, change, self._seconds[change], held)

    def _tick(self):
        self._seconds.append(time.perf_counter() - self._begin)
        return len(self._seconds) - 1

    def _see(self, tensor, kind="other"):
        return [self._see_storage(storage, kind) for storage in _storages(tensor, self.device)]

    def _see_gradient(self, gradient):  # as a hook it must return nothing
        self._see(gradient, "gradients")

    def _see_storage(self, storage, kind="other"):
        address, size = storage._cdata, storage.nbytes()
        if address not in self._live:
            self._alive[address] = weakref.ref(storage, partial(self._gone, address))
            self._hold(address, _Holding(size))
        elif self._live[address].size != size:
            self._hold(address, replace(self._live[address], size=size))
        holding = self._live[address]
        if not holding.told:
            holding.kind = min(holding.kind, kind, key=KINDS.index)
        return holding

    def _hold(self, address, holding):
        """Begin a stretch of a storage's life, and end the one before if there is one."""
        holding.born = self._tick()
        if address in self._live:
            self._live[address].died = holding.born
        self._live[address] = holding
        self._holdings.append(holding)

    def _gone(self, address, _):
        del self._alive[address]
        self._live.pop(address).died = self._tick()

    def _save(self, tensor):
        for holding in self._see(tensor, "activations"):
            holding.saved += 1
        return _Saved(self, tensor)

    def _release(self, address):
        holding = self._live.get(address)  # None: the storage is gone, or measuring is over
        if holding is None:
            return
        holding.saved -= 1
        if not holding.saved and holding.kind == "activations" and not holding.told:
            self._hold(address, replace(holding, kind="other"))

    def _look_up(self):
        """Count parameters, gradients and the optimizer's own tensors as they are now."""
        parameters, optimizer = list(self.module.parameters()), self.optimizer
        self._own = {id(parameter) for parameter in parameters}
        stepped = [p for group in optimizer.param_groups for p in group["params"]] if optimizer else []
        for parameter in [*parameters, *stepped]:
            self._see(parameter, "parameters" if id(parameter) in self._own else "optimizer")
            if parameter.grad is not None:
                self._see(parameter.grad, "gradients")
        for state in _tensors(list(optimizer.state.values())) if optimizer else []:
            self._see(state, "optimizer")


def _tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _storages(tensor, device=None):
    """The storages behind a tensor, on ``device`` if given; those of its parts if it is one made of tensors."""
    if is_traceable_wrapper_subclass(tensor):
        parts = _tensors([getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]])
        return [storage for part in parts for storage in _storages(part, device)]
    wanted = tensor.layout == torch.strided and device in (None, tensor.device.type)
    return [tensor.untyped_storage()] if wanted else []


@contextlib.contextmanager
def _resizes_noticed():
    """Count what ``UntypedStorage.resize_`` frees and allocates, which torch does not dispatch as an operation.

    Sharded training frees and restores parameters with it.
    """
    original = torch.UntypedStorage.resize_

    def resize_(storage, size):
        result = original(storage, size)
        for timeline in _running:
            if storage._cdata in timeline._live:
                timeline._see_storage(storage)
        return result

    with mock.patch.object(torch.UntypedStorage, "resize_", resize_):
        yield
