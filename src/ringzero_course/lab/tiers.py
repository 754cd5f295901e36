"""Two memories on one CPU, a device's and the host's, with a link between them and a clock of their own.

    with Tiers(bytes_per_second=1000) as tiers:
        x = tiers.on_device(torch.ones(4))  # its memory counts as the device's
        y = tiers.link.to_host(x)           # a copy in the host's memory: 16 bytes, 0.016 s
        x + y                               # RuntimeError: an operation works in one memory, as with a GPU
        tiers.held["device"]                # 16 bytes

Inside, every storage belongs to a tier. What an operation makes is in the tier of what it was given; what it makes from
nothing is in the host's, as torch does it. A tensor with one element and no dimension may meet tensors of both. All
bytes are counted, with their highest number, from the operation that makes them until nothing refers to them.

Only the link gets a tensor from one tier to the other. Nothing here takes real time: ``now`` is a simulated clock. A
computation (``compute``), a step of an optimizer, and ``wait`` on a copy move it on. So times and the order of events
are the same on every machine.
"""

import math
import weakref
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

DEVICE, HOST = "device", "host"


class Event(NamedTuple):
    """Something that began at ``begin`` on the simulated clock and ended at ``end``, on ``numel`` numbers.

    ``kind`` is "to_host" or "to_device" for a copy, "wait to_host" or "wait to_device" for waiting for one, "step" for
    the step of an optimizer, or what ``compute`` was told.
    """

    kind: str
    numel: int
    begin: float
    end: float


class Copy:
    """A copy that was begun. ``wait`` returns the tensor that it makes, once."""

    def __init__(self, tiers: "Tiers", source: torch.Tensor, made: torch.Tensor, event: Event):
        self._tiers, self._event = tiers, event
        self._made: torch.Tensor | None = made
        self._source, self._version = weakref.ref(source), source._version

    def wait(self) -> torch.Tensor:
        """The copied tensor, when it is there. Raises RuntimeError if its source was changed meanwhile."""
        tiers, source, event = self._tiers, self._source(), self._event
        if self._made is None:
            raise RuntimeError("this copy was waited for before: keep the tensor that wait() returns")
        if source is not None and source._version != self._version:
            raise RuntimeError("a tensor was changed while it was copied: change it after wait()")
        began, made = tiers.now, self._made
        tiers.advance(event.end - began)
        tiers.events.append(Event(f"wait {event.kind}", event.numel, began, tiers.now))
        del self._made
        self._made = None
        return made


class Link:
    """Copies tensors between the tiers of ``tiers``, and counts ``bytes_to_host`` and ``bytes_to_device``.

    Copies of one direction follow each other; those of the other direction do not slow them down, as on PCIe.
    """

    def __init__(self, tiers: "Tiers", bytes_per_second: float):
        self._tiers, self.bytes_per_second = tiers, bytes_per_second
        self.bytes_to_host = self.bytes_to_device = 0
        self._free_at = {DEVICE: 0.0, HOST: 0.0}

    def start_to_host(self, x: torch.Tensor) -> Copy:
        """Begin to copy ``x``, in device memory, to new memory of the host. It arrives as the type it has."""
        self.bytes_to_host += x.nbytes
        return self._start(x, HOST)

    def start_to_device(self, x: torch.Tensor) -> Copy:
        """Begin to copy ``x``, in host memory, to new memory of the device. It arrives as the type it has."""
        self.bytes_to_device += x.nbytes
        return self._start(x, DEVICE)

    def to_host(self, x: torch.Tensor) -> torch.Tensor:
        """A copy of ``x`` in host memory."""
        return self.start_to_host(x).wait()

    def to_device(self, x: torch.Tensor) -> torch.Tensor:
        """A copy of ``x`` in device memory."""
        return self.start_to_device(x).wait()

    def _start(self, x, to):
        tiers = self._tiers
        if tiers.tier_of(x) == to:
            raise RuntimeError(f"the tensor to copy to the {to} is in the {to}'s memory already")
        begin = max(tiers.now, self._free_at[to])
        end = self._free_at[to] = begin + x.nbytes / self.bytes_per_second
        event = Event(f"to_{to}", x.numel(), begin, end)
        tiers.events.append(event)
        return Copy(tiers, x, tiers.copied(x, to, end), event)


class Tiers(TorchDispatchMode):
    """The two tiers, inside a ``with``. See the module's docstring.

    ``bytes_per_second`` is the link's rate in each direction, ``steps_per_second`` how many parameters an optimizer
    steps. ``held`` and ``peak`` are bytes by tier; ``arrived`` and ``most_arrived`` count the tensors that the link
    brought to the device and that are still there.
    """

    def __init__(self, bytes_per_second: float = math.inf, steps_per_second: float = math.inf):
        super().__init__()
        self.now, self.events = 0.0, list[Event]()
        self.link, self.steps_per_second = Link(self, bytes_per_second), steps_per_second
        self.held, self.peak = {DEVICE: 0, HOST: 0}, {DEVICE: 0, HOST: 0}
        self.most_arrived = 0
        self._storages: dict[int, tuple[str, int, weakref.ref]] = {}  # by address: tier, bytes, the storage
        self._arrived: set[int] = set()  # storages that the link brought to the device
        self._flying: list[tuple[float, torch.Tensor]] = []  # what is copied is there until its copy ends
        self._making: str | None = None  # the tier of what the link makes

    @property
    def arrived(self) -> int:
        return len(self._arrived)

    def __enter__(self) -> "Tiers":
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        self._hook = register_optimizer_step_pre_hook(self._before_step)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self._hook.remove()
        self._flying.clear()
        super().__exit__(*error)

    @classmethod
    def _should_skip_dynamo(cls):  # else torch imports its compiler, which takes seconds in a fresh rank
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        places = {self.tier_of(x) for x in _tensors((args, kwargs)) if x.dim() or self.tier_of(x) == DEVICE}
        if len(places) > 1:
            name = func.overloadpacket.__name__
            raise RuntimeError(
                f"{name} was given a tensor in device memory and one in host memory; an operation works in one memory, "
                "so copy one of them through the link first"
            )
        result = func(*args, **(kwargs or {}))
        for x in _tensors(result):
            self._see(x, self._making or (DEVICE if DEVICE in places else HOST))
        return result

    def on_device(self, x: torch.Tensor) -> torch.Tensor:
        """Count the memory of ``x``, which is new, as the device's. Nothing is copied; returns ``x``."""
        self._see(x, DEVICE)
        address = x.untyped_storage()._cdata
        tier, size, storage = self._storages[address]
        if tier == HOST:
            self._storages[address] = DEVICE, size, storage
            self._hold(HOST, -size)
            self._hold(DEVICE, size)
        return x

    def tier_of(self, x: torch.Tensor) -> str:
        """Where ``x`` is: "device" or "host"."""
        return self._see(x, HOST)

    def compute(self, kind: str, numel: int, seconds: float) -> None:
        """Note a computation of so many ``seconds`` on ``numel`` parameters, which begins now."""
        begin = self.now
        self.events.append(Event(kind, numel, begin, begin + seconds))
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock on, by 0 if ``seconds`` are below."""
        self.now += max(0.0, seconds)
        self._flying = [(end, x) for end, x in self._flying if end > self.now]

    def copied(self, x: torch.Tensor, to: str, end: float) -> torch.Tensor:
        """A copy of ``x`` in the tier ``to``; ``x`` is kept until its copy is over at ``end``."""
        self._making = to
        try:
            made = x.detach().clone()
        finally:
            self._making = None
        if to == DEVICE:
            self._arrived.add(made.untyped_storage()._cdata)
            self.most_arrived = max(self.most_arrived, len(self._arrived))
        if end > self.now:
            self._flying.append((end, x.detach()))
        return made

    def start_peaks(self) -> None:
        """Begin anew with ``peak`` and ``most_arrived``."""
        self.peak, self.most_arrived = dict(self.held), self.arrived

    def _see(self, x, tier):
        """The tier of the memory of ``x``, which is ``tier`` if it is new."""
        storage = x.untyped_storage()
        address = storage._cdata
        if address not in self._storages:
            self._storages[address] = tier, storage.nbytes(), weakref.ref(storage, partial(self._gone, address))
            self._hold(tier, storage.nbytes())
        return self._storages[address][0]

    def _gone(self, address, _):
        tier, size, _ = self._storages.pop(address)
        self._arrived.discard(address)
        self.held[tier] -= size

    def _hold(self, tier, size):
        self.held[tier] += size
        self.peak[tier] = max(self.peak[tier], self.held[tier])

    def _before_step(self, optimizer, args, kwargs):
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        numel = sum(p.numel() for p in parameters)
        self.compute("step", numel, numel / self.steps_per_second)


def _tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
