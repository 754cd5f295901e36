"""Checkpoints that all ranks write at once, each its shard: safetensors files, and a manifest that makes them a set.

    save(model, "checkpoint", extra={"step": 100})
    extra = load(model, "checkpoint")  # on any number of ranks, in any stage, with any buckets

    saving = save(model, "checkpoint", asynchronous=True)  # a thread writes what was copied; training goes on
    saving.wait()

A new file never takes the place of an old one. Once all new files are on the disk, a new manifest, which says their
sizes and hashes, replaces the old manifest. So whichever rank dies at whatever moment, the manifest names a complete
set: the old one or the new one. A file holds pieces of flattened parameters and of their optimizer states. To load, a
rank reads the pieces that it owns now from the files that have them. All ranks must see the directory.
"""

import json
import os
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from safetensors import SafetensorError
from safetensors.torch import save_file

from ringzero.data_parallel.executor import Done, queue_of
from ringzero.zero import state
from ringzero.zero.model import ZeroModel
from ringzero.zero.optimizers import is_sharded
from ringzero.zero.saved_set import MANIFEST, SHARDS, SavedSet, number_of, read_manifest, remove_others, write_file
from ringzero.zero.together import together


class Saving:
    """A set that is being written beside training."""

    def __init__(self, result: Done):
        self._result, self._raised = result, False

    def wait(self) -> None:
        """Wait until the set is whole and the last one's files are gone. Raises, on every rank, what went wrong."""
        self._raised = True
        self._result.result()

    def end(self) -> None:
        """Wait, and raise what went wrong if no ``wait`` did."""
        try:
            self._result.result()
        except Exception:
            if not self._raised:
                raise


_savings: WeakKeyDictionary[ZeroModel, Saving] = WeakKeyDictionary()  # the last one of each model
_writers: WeakKeyDictionary[dist.ProcessGroup, dict[tuple[int, ...], dist.ProcessGroup]] = WeakKeyDictionary()


def save(
    model: ZeroModel, directory: str | os.PathLike, extra: Any = None, *, asynchronous: bool = False
) -> Saving | None:
    """Write ``model`` and ``extra``, anything that JSON takes, into ``directory``; then remove the set that was there.

    All ranks must call it. Raises OSError, on every rank, if one cannot write, and TypeError for ``extra`` that JSON
    does not take; the set that was there stays. States that are in files (``File``) are read into memory for it, all of
    a rank's at once.

    If it is ``asynchronous`` it copies all of it into the host's memory, and returns a ``Saving`` while a thread
    writes. Call its ``wait()`` before the program ends: what is not whole by then does not count. The next ``save`` or
    ``load`` of the model waits for it, too, and raises what went wrong if no ``wait()`` did.
    """
    _end_last_saving(model)
    model.heed_data()
    directory, rank = Path(directory), model.group.rank()

    def next_number() -> int:
        json.dumps(extra)
        directory.mkdir(parents=True, exist_ok=True)
        return 1 + max([0, *map(number_of, directory.glob(SHARDS))])

    number, *_ = together(model.group, next_number)
    _check_tensors(model)
    tensors, about = _untrained(model), ""

    def collect() -> None:
        nonlocal about
        tensors.update(_shards(model))
        if asynchronous:
            for name, value in tensors.items():
                tensors[name] = value.detach().to("cpu", copy=True)
        about = "" if rank else json.dumps(_manifest(model, extra))

    together(model.group, collect)
    write = partial(_write_set, directory, number, model.shard_group.size(), tensors, about)
    if not asynchronous:
        write(model.group)
        return None
    group = _writers_of(model.group)  # the model's own has the messages of training
    _savings[model] = saving = Saving(queue_of(group, torch.device("cpu")).submit(partial(write, group)))
    return saving


def _end_last_saving(model):
    last = _savings.pop(model, None)
    if last is not None:
        together(model.group, last.end)  # some ranks may have waited, and not others


def _writers_of(group: dist.ProcessGroup) -> dist.ProcessGroup:
    """A group of the same ranks that talks through the host's memory. It serves all their models in turn."""
    world, ranks = dist.group.WORLD, tuple(dist.get_process_group_ranks(group))
    assert world is not None
    made = _writers.setdefault(world, {})
    if ranks not in made:
        made[ranks] = dist.new_group(
            list(ranks), backend="gloo", timeout=timedelta(days=1), use_local_synchronization=True
        )
    return made[ranks]


def _write_set(directory, number, ranks, tensors, about, group):
    """Write the files of a set, of which ``ranks`` have one, and then the manifest, that says what is ``about`` it."""
    rank = group.rank()
    path = directory / f"shard-{number}-{rank}-of-{ranks}.safetensors"
    is_copy = rank >= ranks  # where nodes have the same shards, the first writes them
    files = together(group, lambda: None if is_copy else write_file(path, lambda part: save_file(tensors, part)))

    def write_manifest() -> Any:
        manifest = json.dumps(json.loads(about) | {"files": files[:ranks]})
        return write_file(directory / MANIFEST, lambda part: part.write_text(manifest))

    together(group, lambda: rank or write_manifest())
    together(group, lambda: rank or remove_others(directory, number))


@torch.no_grad()
def load(model: ZeroModel, directory: str | os.PathLike) -> Any:
    """Take over the set in ``directory``, and return its ``extra``. All ranks must call it.

    Raises ValueError, on every rank and with nothing changed, if a file is missing or is not what was written, or if
    the set is of another model or optimizer; FileNotFoundError if there is no set.
    """
    _end_last_saving(model)
    _check_tensors(model)
    directory, group = Path(directory), model.group
    manifest, *others = together(group, lambda: read_manifest(directory))
    for rank, other in enumerate(others, 1):
        if other != manifest:
            raise ValueError(
                f"rank {rank} reads another checkpoint in {directory} than rank 0; all must see one directory"
            )
    saved = SavedSet(directory, manifest)
    damaged = together(group, lambda: saved.damages(group.rank(), group.size()))  # each file is looked at by one rank
    if any(damaged):
        raise ValueError(f"the checkpoint in {directory} is damaged: {'; '.join(sum(damaged, []))}")
    state.check_fit(_description(model), manifest["model"])
    aliases = state.trained_aliases(model) | state.frozen_aliases(model)
    untrained = {key: value.shape for key, value in state.here(model).items() if key not in aliases}
    names, frozen, whole, shards = state.names(model), model.frozen_shards.vectors, {}, {}

    def read_untrained() -> None:
        for key, shape in untrained.items():
            whole[key] = saved.untrained(key, names.get(key)).view(shape)
        for vector in frozen:
            shards[vector] = state.shard(vector, lambda name, *piece: saved.untrained(name, name, *piece))

    together(group, read_untrained)
    state.load_groups(model.optimizer, manifest["groups"])  # the first change
    for key, value in whole.items():
        state.take_untrained(model, key, value)
    for vector, value in shards.items():
        vector.take(value)
    errors = []

    def take(vector):
        try:
            states = saved.shards(vector)
        except (OSError, SafetensorError) as error:
            errors.append(f"{error}; only a part of the checkpoint was taken over, so load one again")
            return
        vector.master.copy_(states.pop("parameter"))
        model.optimizer.state[vector.master] = states

    model.change(take)
    together(group, lambda: _raise(errors))
    return manifest["extra"]


def _raise(errors):
    if errors:
        raise OSError(errors[0])


def _check_tensors(model):
    """Raise TypeError for extra states of modules that are no tensors."""
    values = state.here(model).items()
    if other := [f"{key} is a {type(value).__name__}" for key, value in values if not isinstance(value, torch.Tensor)]:
        raise TypeError(
            f"{', '.join(other)}, and files hold tensors; have get_extra_state return one, or save model.state_dict()"
        )


def _description(model):
    """What a set and the model that takes it over must have in common: ``{what: shape or name}``."""
    trained, aliases = state.trained_shapes(model), state.trained_aliases(model)
    untrained = {name: value for name, value in state.here(model).items() if name not in aliases}
    sharded, frozen = state.frozen_aliases(model), state.frozen_shapes(model)
    shapes = {f"parameter/{name}": list(shape) for name, shape in trained.items()}
    shapes |= {
        f"whole/{key}": list(frozen[sharded[key]] if key in sharded else value.shape)
        for key, value in untrained.items()
    }
    return {"optimizer": type(model.optimizer).__name__, **shapes}


def _manifest(model, extra):
    """All but the files' sizes and hashes: ``[file, start, stop]`` of each piece of each parameter, flattened.

    Also which states there are, and the optimizer's options.
    """
    pieces = {}
    for vector in (*model.vectors(), *model.frozen_shards.vectors):
        for rank in range(model.shard_group.size()):
            for name, start, stop in vector.layout.pieces(rank):
                pieces.setdefault(name, []).append([rank, start, stop])
    states = {
        key: "sharded" if is_sharded(value) else "one"
        for vector in model.vectors()
        for key, value in _states(vector, model).items()
    }
    groups = [{key: value for key, value in each.items() if key != "params"} for each in model.optimizer.param_groups]
    about = {"model": _description(model), "states": states, "groups": groups, "pieces": pieces}
    return about | {"extra": extra}


def _states(vector, model):
    states = model.optimizer.state.get(vector.master, {})
    for key, value in states.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(
                f"the state {key!r} of {type(model.optimizer).__name__} is {value!r}, and files hold tensors; have the "
                "optimizer keep it as one, such as torch.tensor(0.0), or save optimizer_state_dict()"
            )
    return {"parameter": vector.master.detach(), **states}


def _shards(model):
    """What this rank writes of what is sharded: ``{"state/parameter": 1-D piece or scalar}``."""
    tensors = {}
    for vector in (*model.vectors(), *model.frozen_shards.vectors):
        begin = 0
        with vector.home.loaded(vector):
            for name, start, stop in vector.layout.pieces(vector.group.rank()):
                for key, value in _states(vector, model).items():
                    piece = value[begin : begin + stop - start] if is_sharded(value) else value.clone()
                    tensors[f"{key}/{name}"] = piece
                begin += stop - start
    return tensors


def _untrained(model):
    """What rank 0 writes of what is not sharded, and the others nothing. All ranks must call it together."""
    aliases = state.trained_aliases(model) | state.frozen_aliases(model)
    untrained = state.untrained(model, sharded=False)
    if model.group.rank() != 0:
        return {}
    # Those that are tied share memory, which safetensors does not take.
    copied = {f"whole/{name}": value.detach().clone() for name, value in untrained.items() if name not in aliases}
    return {name: value.contiguous() for name, value in copied.items()}
