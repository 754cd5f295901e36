"""The user's file on a rank: what it calls a step, where its samples come from, and what is changed around it.

What is changed, so that N ranks and one process do the same arithmetic: dropout keeps every unit,
``init_process_group``
does nothing where the group is there, and a ``DataLoader`` hands out what the run says.
"""

import contextlib
import importlib.util
import itertools
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.utils import data

STEPS = ("step", "train_step", "training_step")  # what a Trainer-like object may call it
DATA = ("batches", "loader", "dataset", "data", "batch")  # where a file's samples are, in this order
END = "the end of a pass over a loader"  # among the batches that were taken
BATCH = 16  # samples of a whole batch that is cut from a dataset


class ProgramError(ValueError):
    """The program cannot be compared; the text says why, and what would help."""


def load(path: str, seed: int) -> ModuleType:
    """Run the file as a module, with random numbers of its own on each rank, as processes have that nobody seeded."""
    random.seed(seed)
    torch.manual_seed(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(seed)
    name = Path(path).stem
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # what the file defines can be pickled, by a DataLoader's workers
    sys.path.insert(0, str(Path(path).parent))
    specification.loader.exec_module(module)
    return module


def step_of(module: ModuleType, name: str) -> Callable:
    """What the file calls ``name``, as a function: of a batch, or of nothing if it takes its batches itself.

    A class is made, and a function of no arguments that returns a function is called: it makes the step.
    Raises ProgramError saying what the name is instead.
    """
    found = vars(module).get(name)
    if found is None:
        names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise ProgramError(f"there is no {name!r} in the file; it has {', '.join(names) or 'no functions'}")
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise ProgramError(
                f"{name} is a class, and {name}() fails: {error}. Name a function or an object"
            ) from None
    for method in STEPS if not _is_function(found) else ():
        if callable(getattr(found, method, None)):
            return getattr(found, method)
    if not callable(found):
        what = type(found).__name__
        raise ProgramError(f"{name} is a {what}, no step; name a function, or an object with a method {STEPS[0]!r}")
    return found


def _is_function(value):
    return callable(value) and not isinstance(value, torch.nn.Module) and not any(hasattr(value, m) for m in STEPS)


def samples_of(module: ModuleType, name: str | None) -> Any:
    """Where the file's batches are: a list of whole batches, a dataset, or a DataLoader of each rank's own.

    Raises ProgramError if there is none.
    """
    for each in (name,) if name else DATA:
        if each in vars(module):
            found = vars(module)[each]
            return found() if callable(found) and not isinstance(found, data.Dataset) else found
    said = f"{name!r} is not in the file" if name else f"the file has none of {', '.join(DATA)}"
    raise ProgramError(f"the step takes a batch, and {said}: give it a list 'batches' of whole batches, or a 'loader'")


class Feed:
    """Hands out batches and keeps them: the program's own, or those that another run said.

    ``given``: the batches to hand out, one after another, whatever the program's loaders would read.
    """

    def __init__(self, given: list | None = None):
        self.given, self.taken = given, []  # type: list | None, list
        self.passes: list[dict] = []  # over loaders; ``batches`` are the places of theirs in ``taken``
        self.loaded: list[int] = []  # which of the batches a loader handed out
        self.random: torch.Tensor | None = None  # the loaders' own state: what they draw is not what the step draws

    def next(self, own: Callable[[], Any]) -> Any:
        """The next batch: what was given, or what ``own()`` says. Raises StopIteration where there are no more."""
        if self.given is None:
            batch = own()
        elif len(self.taken) == len(self.given):
            raise StopIteration
        else:
            batch = self.given[len(self.taken)]
        self.taken.append(batch)
        return batch

    def loader(self, iterate: Callable) -> Callable:
        """In place of ``DataLoader.__iter__``."""

        def batches_of(loader: data.DataLoader) -> Iterator:
            begun = self._note_pass(loader)
            with self._own_random():
                own = iterate(loader)

            def following() -> Any:
                with self._own_random():
                    return next(own, END)

            # A program may ask its loader's batches for more than plain data has, as batch.to(...).
            like = following()
            with contextlib.suppress(StopIteration):
                if self.given is not None:
                    while not isinstance(batch := self.next(following), str):
                        yield as_one_of(like, batch)
                    return
                while True:
                    self.loaded.append(len(self.taken))
                    self.taken.append(plain(like))
                    if isinstance(like, str):
                        begun["ended"] = True
                        return
                    begun["batches"].append(len(self.taken) - 1)
                    yield like
                    like = following()

        return batches_of

    @contextlib.contextmanager
    def _own_random(self) -> Iterator[None]:
        before = torch.get_rng_state()
        torch.set_rng_state(before if self.random is None else self.random)
        try:
            yield
        finally:
            self.random = torch.get_rng_state()
            torch.set_rng_state(before)

    def _note_pass(self, loader):
        sampler, batch_sampler = loader.sampler, loader.batch_sampler
        while batch_sampler is not None:  # accelerate's holds another one
            sampler = getattr(batch_sampler, "sampler", sampler)
            batch_sampler = getattr(batch_sampler, "batch_sampler", None)
        begun = {"batches": [], "ended": False, "distributed": isinstance(sampler, data.DistributedSampler)}
        if begun["distributed"]:
            begun |= {
                "epoch": sampler.epoch, "shuffle": sampler.shuffle, "seed": sampler.seed,
                "samples": sampler.num_samples, "padding": max(sampler.total_size - len(sampler.dataset), 0),
            }  # fmt: skip
        if not getattr(sampler, "replacement", False):  # which draws a sample twice on purpose
            self.passes.append(begun)
        return begun


def batches(samples: Any, feed: Feed, rank: int, ranks: int) -> Iterator:
    """This rank's batches of ``samples``: of whole batches its part, of a loader what it says, again and again."""
    if isinstance(samples, data.DataLoader):
        for epoch in itertools.count():
            if isinstance(samples.sampler, data.DistributedSampler):
                samples.sampler.set_epoch(epoch)
            before = len(feed.taken)
            yield from samples  # which the feed hands out
            if len(feed.taken) <= before + 1:  # nothing but its end
                return
    cut = (part(whole, rank, ranks) for _ in itertools.count() for whole in whole_batches(samples, ranks))
    with contextlib.suppress(StopIteration):
        while True:
            yield feed.next(lambda: next(cut))


def whole_batches(samples: Any, ranks: int) -> Iterator:
    if isinstance(samples, data.Dataset):
        size = max(BATCH // ranks, 1) * ranks
        for start in range(0, len(samples) - size + 1, size):  # type: ignore[arg-type]
            yield data.default_collate([samples[i] for i in range(start, start + size)])
    elif isinstance(samples, torch.Tensor) or (isinstance(samples, (tuple, dict)) and _samples(samples)):
        yield samples  # one batch
    else:
        yield from samples


def part(whole: Any, rank: int, ranks: int) -> Any:
    """The rank's samples of a whole batch: every ``ranks``-th part along the first dimension, all of equal size."""
    count = _samples(whole)
    if count < ranks:
        raise ProgramError(f"a batch has {count} samples, fewer than the {ranks} ranks: give larger ones")
    each = count // ranks

    def cut(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() and len(value) == count:
            return value[rank * each : (rank + 1) * each]
        if isinstance(value, (tuple, list)) and not any(
            isinstance(v, (torch.Tensor, tuple, list, dict)) for v in value
        ):
            return value[rank * each : (rank + 1) * each] if len(value) == count else value
        return _each(value, cut)

    return cut(whole)


def joined(parts: list) -> Any:
    """The batches of all ranks as one."""
    first = parts[0]
    if isinstance(first, str):
        return first
    if isinstance(first, torch.Tensor):
        return torch.cat(parts) if first.dim() and len({p.shape[1:] for p in parts}) == 1 else first
    if isinstance(first, dict):
        return {key: joined([p[key] for p in parts]) for key in first}
    if isinstance(first, (list, tuple)):
        if any(isinstance(v, (torch.Tensor, list, tuple, dict)) for v in first):
            return type(first)(joined([p[i] for p in parts]) for i in range(len(first)))
        return type(first)(v for p in parts for v in p)
    return first


def plain(batch: Any) -> Any:
    """A batch as it can be handed to another process: dictionaries and tuples of other types become plain ones."""
    if isinstance(batch, torch.Tensor):
        return batch.detach()
    if hasattr(batch, "items"):
        return {key: plain(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return (tuple if isinstance(batch, tuple) else list)(plain(value) for value in batch)
    return batch


def as_one_of(like: Any, batch: Any) -> Any:
    """The plain ``batch`` as one of the type of ``like``: a named tuple, a dictionary with methods of its own."""
    if type(like) is type(batch):
        return batch
    if hasattr(like, "_fields"):
        return type(like)(*batch)
    return type(like)(batch) if hasattr(like, "items") or isinstance(like, (list, tuple)) else batch


def converted(batch: Any, dtype: torch.dtype | None) -> Any:
    """With the floating-point numbers of this type."""
    if isinstance(batch, torch.Tensor):
        return batch.to(dtype) if dtype and batch.dtype == torch.float32 else batch
    return _each(batch, lambda value: converted(value, dtype))


def _each(value, function):
    if isinstance(value, dict):
        return {key: function(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return as_one_of(value, (tuple if isinstance(value, tuple) else list)(map(function, value)))
    return value


def _samples(batch):
    """How many samples a batch has: the length of its first tensor."""
    if isinstance(batch, torch.Tensor):
        return len(batch) if batch.dim() else 0
    inside = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    return next((n for n in map(_samples, inside) if n), 0)


@contextlib.contextmanager
def replaced(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """While inside, each ``(holder, name, value)`` is so."""
    before = [(holder, name, getattr(holder, name)) for holder, name, _ in changes]
    try:
        for holder, name, new in changes:
            setattr(holder, name, new)
        yield
    finally:
        for holder, name, old in before:
            setattr(holder, name, old)


@contextlib.contextmanager
def changed(feed: Feed, dropped: list) -> Iterator[None]:
    """While the program runs. ``dropped`` gets the state of the random numbers at each call of dropout."""

    def keep_all(tensor: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        rate = options.get("p", args[0] if args else 0.5)
        training = options.get("training", args[1] if len(args) > 1 else True)
        if training and rate:
            dropped.append(zlib.crc32(torch.get_rng_state().numpy().tobytes()))
        return tensor

    def no_group(*_args: Any, **_options: Any) -> None:
        pass

    functional = torch.nn.functional
    names = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
    changes = [(functional, name, keep_all) for name in names] + [
        (dist, "init_process_group", no_group),
        (dist, "destroy_process_group", no_group),
        (data.DataLoader, "__iter__", feed.loader(data.DataLoader.__iter__)),
    ]
    attention = functional.scaled_dot_product_attention

    def attend(*args: Any, **options: Any) -> torch.Tensor:
        args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
        return attention(*args, **options | ({"dropout_p": 0.0} if "dropout_p" in options else {}))

    with replaced([*changes, (functional, "scaled_dot_product_attention", attend)]):
        yield
