"""The third tier: masters, the optimizer's states and, if asked for, parameters in files.

    model = ZeroStage3(module, torch.optim.AdamW, lr=1e-3, home=File("/nvme/run"))

Rajbhandari et al., "ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep Learning", SC 2021. The
optimizer steps one vector after another: while one is stepped, the next is read, and the one before is written. So
memory holds three vectors' masters and states, and not those of the model.
"""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

from ringzero.data_parallel.executor import Done
from ringzero.zero import state
from ringzero.zero.host import Host, step_one
from ringzero.zero.records import Records, aligned, aligned_memory
from ringzero.zero.stored import Stored
from ringzero.zero.together import together
from ringzero.zero.vector import ShardedVector

IN_MEMORY = 3  # vectors: one is read, one is stepped, one is written


class File(Host):
    """Masters and states are in a file of each rank in ``folder``; gradients, and the step, are on the host.

    ``parameters``  the parameters' shards are there, too, and are read when they are gathered. For stage 3
    ``resume``      take over what is there: the last step that all ranks completed; ``steps`` is its number
    Others as for ``Host``. Schedulers, and the place in the data, are the program's to bring to that step. Buffers of
    the module are kept, and frozen parameters are not. Writes to ``data`` of a parameter are lost; use
    ``whole_parameters(write=True)``.

    A step counts once all ranks have written it. If one cannot, OSError is raised on all, and the model is as it was
    before the step: with its gradients, so that ``step`` can be called again. Whoever is killed finds the last complete
    step. That takes twice the room; a folder that is full is refused before training.

    Raises OSError, on every rank, for a folder that is missing, full, read-only, or in use without ``resume``;
    ValueError for states that do not fit the model.
    """

    def __init__(self, folder: str | os.PathLike, *, parameters: bool = False, resume: bool = False,
                 bytes_per_second: float | None = None, memory_bytes: float | None = None):  # fmt: skip
        super().__init__(parameters=parameters, bytes_per_second=bytes_per_second, memory_bytes=memory_bytes)
        self.folder, self.resume, self.steps = Path(folder), resume, 0
        self._model: Any = None
        self._records: Records  # of ``attach``
        self._stored: dict[ShardedVector, Stored] = {}  # by record; the buffers' comes after them
        self._reader, self._writer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._free: SimpleQueue[torch.Tensor] = SimpleQueue()  # memory for records

    def check(self, model: Any, elements: int) -> None:
        super().check(model, elements)
        self._model = model
        together(model.group, self._check_folder)

    def _check_folder(self) -> None:
        if not self.folder.is_dir():
            raise FileNotFoundError(
                f"{self.folder} is no folder; make it before, on the disk that the states should use"
            )
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{self.folder} cannot be written to")

    def _bytes_per_element(self, model: Any, like: torch.Tensor) -> float:
        return (model.mixed_precision or like.dtype).itemsize  # the gradient's; records in memory are a few vectors'

    def heed(self, vector: ShardedVector) -> None:
        """No rank can change a file alone."""

    def shard(self, part: torch.Tensor, own: bool) -> torch.Tensor:
        return part.clone() if self.parameters_elsewhere or own else part

    def master(self, original: torch.Tensor, shard: torch.Tensor) -> torch.nn.Parameter:
        return torch.nn.Parameter(original.cpu())  # until it is in the file: see ``attach``

    def attach(self, vectors: list[ShardedVector], optimizer: torch.optim.Optimizer) -> None:
        group, keys = self._model.group, self._model.sharded_keys
        self._stored = {
            vector: Stored(
                vector, place, optimizer, sorted(keys[next(iter(vector.parameters))]), self.parameters_elsewhere
            )
            for place, vector in enumerate(vectors)
        }
        self._buffers = [buffer for _, buffer in self._model.module.named_buffers()]
        sizes = [stored.nbytes for stored in self._stored.values()]
        sizes.append(aligned(sum(buffer.nbytes for buffer in self._buffers)))
        path = self.folder / f"states-{group.rank()}-of-{group.size()}.bin"
        self._records = Records(path, sizes, header_bytes=1024 + 256 * len(vectors))
        for _ in range(IN_MEMORY):
            self._free.put(aligned_memory(max(sizes), self._device.type == "cuda"))
        (self._take_over if self.resume else self._begin)(path.with_suffix(".json"))

    def check_takes_more(self) -> None:
        raise ValueError("a model with its states in files takes no more parameters; wrap it anew in a new folder")

    @property
    def memory_for_records(self) -> int:
        """Bytes of host memory for the vectors that are read, stepped and written."""
        return IN_MEMORY * max(self._records.sizes)

    @property
    def file_bytes(self) -> int:
        """Bytes of this rank's records, headers aside."""
        return 2 * sum(self._records.sizes)

    def _description(self) -> dict[str, Any]:
        """What a file and the model that takes it over must have in common."""
        described = {f"vector {stored.place}": str(vector.layout) for vector, stored in self._stored.items()}
        described |= {f"record {stored.place}": str(stored.parts) for stored in self._stored.values()}
        described["buffers"] = str([(tuple(buffer.shape), str(buffer.dtype)) for buffer in self._buffers])
        return described | {"optimizer": type(self._model.optimizer).__name__}

    def _begin(self, description: Path) -> None:
        """New files: generation 0 has the masters that the model was given."""
        made = []

        def begin() -> None:
            if description.exists():
                raise FileExistsError(f"{self.folder} has states; take them over with resume=True, or remove them")
            self._records.create()
            made.append(self._records.path)
            description.write_text(json.dumps(self._description()))
            made.append(description)

        try:
            together(self._model.group, begin)
        except OSError:
            for path in made:
                path.unlink()
            raise
        masters = {vector: vector.master.detach() for vector in self._stored}

        def write_first(stored: Stored, memory: torch.Tensor) -> None:
            stored.view(memory, "master").copy_(masters[stored.vector])
            stored.store_parameters(memory, masters[stored.vector])

        together(self._model.group, partial(self._rewrite, 0, write_first, read=False))
        together(self._model.group, partial(self._commit, 0))

    def _take_over(self, description: Path) -> None:
        """Files that are there: the last step that all ranks have."""
        records, group = self._records, self._model.group

        def last() -> int:
            if not description.exists():
                raise FileNotFoundError(
                    f"{self.folder} has no states of rank {group.rank()} of {group.size()} to resume"
                )
            state.check_fit(self._description(), json.loads(description.read_text()))
            records.open()
            return max(records.headers(), default=-1)

        self.steps = min(together(group, last))
        if self.steps < 0:
            raise ValueError(f"{self.folder} has no complete step; remove its files, and begin anew")
        self._set_counts(records.headers()[self.steps]["counts"])
        self._bring_all_back()
        memory = aligned_memory(records.sizes[-1])
        records.read(len(self._stored), self.steps, memory)
        begins = accumulate((buffer.nbytes for buffer in self._buffers), initial=0)
        for buffer, begin in zip(self._buffers, begins, strict=False):
            buffer.copy_(memory[begin : begin + buffer.nbytes].clone().view(buffer.dtype).view(buffer.shape))
        self._model.share()

    # ---- one pass over all vectors

    def step(self, optimizer: torch.optim.Optimizer, vectors: list[ShardedVector]) -> None:
        self.wait()
        self.update(vectors, lambda vector: step_one(optimizer, vector, vector.reduced))

    @torch.no_grad()
    def update(self, vectors: list[ShardedVector], of_vector: Callable[[ShardedVector], None]) -> None:
        group, generation, before = self._model.group, self.steps + 1, self._counts()

        def act(stored: Stored, memory: torch.Tensor) -> None:
            stored.show(memory)
            of_vector(stored.vector)
            stored.store(memory)

        try:
            together(group, partial(self._rewrite, generation, act))
            together(group, partial(self._commit, generation))
        except Exception as error:
            self._go_back(generation, before)
            if not isinstance(error, OSError):
                raise
            raise OSError(
                f"{error}; step {generation} was undone on every rank, and gradients are still there: make room in "
                f"{self.folder}, and call step() again"
            ) from None
        self.steps = generation

    def _rewrite(self, generation: int, act: Callable[[Stored, torch.Tensor], None], read: bool = True) -> None:
        """Write ``generation`` from the one before: while ``act`` changes a vector, others are read and written.

        After an error it goes on to the end: what steps a vector may wait for the other ranks.
        """
        vectors, writing = list(self._stored.values()), []
        errors: list[Exception | None] = []
        reading = self._reader.submit(self._read_next, vectors[0], read)
        for stored, following in zip(vectors, [*vectors[1:], None], strict=True):
            memory, error = reading.result()
            errors.append(error)
            if following is not None:
                reading = self._reader.submit(self._read_next, following, read)
            try:
                act(stored, memory)
            except Exception as raised:
                errors.append(raised)
            copying, vector = None, stored.vector
            if not self.parameters_elsewhere and read:
                master = stored.view(memory, "master")
                copying = self._copying[vector] = self._queue.submit(partial(self.link.to_device, vector.shard, master))
            stored.put_away()
            writing.append(self._writer.submit(self._write, stored, generation, memory, copying))
        errors += [each.result() for each in writing]
        if found := [error for error in errors if error is not None]:
            raise found[0]
        memory = aligned_memory(self._records.sizes[-1])
        kept = [buffer.detach().cpu().reshape(-1).view(torch.uint8) for buffer in self._buffers]
        if kept:
            memory[: sum(map(len, kept))] = torch.cat(kept)
        self._records.write(len(vectors), generation, memory)
        self._records.sync()

    def _read_next(self, stored: Stored, read: bool) -> tuple[torch.Tensor, OSError | None]:
        memory = self._free.get()
        try:
            if read:
                self._records.read(stored.place, self.steps, memory[: stored.nbytes])
        except OSError as error:
            return memory, error
        return memory, None

    def _write(self, stored: Stored, generation: int, memory: torch.Tensor, copying: Done | None) -> OSError | None:
        try:
            self._records.write(stored.place, generation, memory[: stored.nbytes])
        except OSError as error:
            return error
        finally:
            self._wait_here(copying)
            self._free.put(memory)
        return None

    def _wait_here(self, copying: Done | None) -> None:
        """Have this thread, and not only a stream of its device, wait for a copy."""
        if copying is not None:
            with torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext():
                copying.result()
                self.wait()

    def _commit(self, generation: int) -> None:
        self._records.commit(generation, {"counts": self._counts()})

    def _go_back(self, generation: int, before: list) -> None:
        """Have the model, and the file, be as before ``generation``."""
        self._records.forget(generation)
        self._set_counts(before)
        self._copying.clear()
        self._bring_all_back()

    def _bring_all_back(self) -> None:
        """Have the device's shards, if it has any, say what the file says."""
        for vector in () if self.parameters_elsewhere else self._stored:
            with self.loaded(vector):
                self.link.to_device(vector.shard, vector.master.detach())
                self.wait()

    # ---- one vector

    @contextmanager
    def loaded(self, vector: ShardedVector) -> Iterator[None]:
        stored = self._stored[vector]
        memory = aligned_memory(stored.nbytes)  # of its own: who read may keep it
        self._records.read(stored.place, self.steps, memory)
        stored.show(memory)
        try:
            yield
        finally:
            stored.put_away()

    def load_shard(self, vector: ShardedVector, into: torch.Tensor) -> None:
        if not self.parameters_elsewhere:
            super().load_shard(vector, into)
            return
        stored = self._stored[vector]
        name = stored.name_of_parameters
        memory = self._records.read_part(stored.place, self.steps, *stored.bytes_of(name))
        self.link.to_device(into, memory.view(stored.parts[name][0]))

    def write_back(self, vector: ShardedVector) -> None:
        copying = self._copying.pop(vector, None)
        if copying is not None:
            copying.result()

    def _counts(self) -> list[dict[str, float] | None]:
        """Of each vector, the optimizer's step counts."""
        return [stored.counts() for stored in self._stored.values()]

    def _set_counts(self, counts: list[dict[str, float] | None]) -> None:
        for stored, given in zip(self._stored.values(), counts, strict=True):
            stored.set_counts(given)
