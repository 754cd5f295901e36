"""One vector's part of the file of ``File``: how its master and states lie in a record, and how they come and go."""

from itertools import accumulate
from typing import Any

import torch

from ringzero.zero.records import aligned
from ringzero.zero.vector import ShardedVector


class Stored:
    """``vector`` in the record number ``place``: its master, the optimizer's states ``keys`` of it, end to end.

    Behind them are the parameters, if they are ``elsewhere`` than on the device and of another type than the master.
    """

    def __init__(
        self, vector: ShardedVector, place: int, optimizer: torch.optim.Optimizer, keys: list[str], elsewhere: bool
    ):
        self.vector, self.place, self._optimizer, self._keys, self._elsewhere = (
            vector,
            place,
            optimizer,
            keys,
            elsewhere,
        )
        kind, elements = vector.master.dtype, vector.owned.stop - vector.owned.start
        self.parts: dict[str, tuple[torch.dtype, int]] = dict.fromkeys(
            ("master", *keys), (kind, elements * kind.itemsize)
        )
        if elsewhere and vector.whole.dtype != kind:
            self.parts["parameters"] = vector.whole.dtype, elements * vector.whole.dtype.itemsize
        ends = list(accumulate(nbytes for _, nbytes in self.parts.values()))
        self._ends, self.nbytes = dict(zip(self.parts, ends, strict=True)), aligned(ends[-1])

    def bytes_of(self, name: str) -> tuple[int, int]:
        """Where in the record a part begins and ends."""
        return self._ends[name] - self.parts[name][1], self._ends[name]

    @property
    def name_of_parameters(self) -> str:
        return "parameters" if "parameters" in self.parts else "master"

    def view(self, memory: torch.Tensor, name: str) -> torch.Tensor:
        """A part of a record in ``memory``."""
        begin, end = self.bytes_of(name)
        return memory[begin:end].view(self.parts[name][0])

    @property
    def _states(self) -> dict[str, Any]:
        return self._optimizer.state.get(self.vector.master, {})

    def show(self, memory: torch.Tensor) -> None:
        """Let the optimizer find the vector's master, and its states if it has been stepped, in ``memory``."""
        self.vector.master.data = self.view(memory, "master")
        states = self._states
        states.update({key: self.view(memory, key) for key in self._keys if key in states})

    def store(self, memory: torch.Tensor) -> None:
        """Have ``memory`` hold what the optimizer may have put elsewhere: new states, and the parameters' type."""
        states = self._states
        for key in self._keys:
            if key in states:
                place = self.view(memory, key)
                if states[key].dtype != place.dtype:
                    raise TypeError(
                        f"{key} is {states[key].dtype}; states in files have the type of the masters, {place.dtype}"
                    )
                if states[key].data_ptr() != place.data_ptr():
                    place.copy_(states[key])
        self.store_parameters(memory, self.vector.master.detach())

    def store_parameters(self, memory: torch.Tensor, master: torch.Tensor) -> None:
        if "parameters" in self.parts:
            self.view(memory, "parameters").copy_(master)

    def put_away(self) -> None:
        """The memory of the vector's master and states belongs to others now."""
        nothing, states = self.vector.master.new_empty(0), self._states
        self.vector.master.data = nothing
        states.update({key: self.vector.master.new_empty(0) for key in self._keys if key in states})
        if self._elsewhere:
            self.vector.shard = self.vector.shard.new_empty(0)

    # ---- what is not sharded: the optimizer's step counts

    def counts(self) -> dict[str, float] | None:
        """``{name: number}`` of the states that are one number, or None if the vector has not been stepped."""
        states = self._states
        return {key: float(value) for key, value in states.items() if key not in self._keys} if states else None

    def set_counts(self, given: dict[str, float] | None) -> None:
        self._optimizer.state.pop(self.vector.master, None)
        if given is not None:
            away = {key: self.vector.master.new_empty(0) for key in self._keys}
            numbers = {key: torch.tensor(value) for key, value in given.items()}
            self._optimizer.state[self.vector.master] = away | numbers
