"""Which parameters lie together in a vector, and by which optimizer's options each vector is stepped."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

import torch
from torch.nn import Parameter
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ringzero.data_parallel.buckets import assign
from ringzero.zero.host import Kept
from ringzero.zero.matrices import uncut
from ringzero.zero.muon import Muon
from ringzero.zero.optimizers import Groups, by_kind, parameter_groups, to_add
from ringzero.zero.units import parameters_of
from ringzero.zero.vector import ShardedVector


def grouped(model: Any, groups: Iterable[dict] | None, trained: Mapping[str, Parameter]) -> Groups:
    """Parameter groups as they were given; for Muon, matrices and the rest apart."""
    found = parameter_groups(groups, trained)
    if model.optimizer_of.func is not Muon:
        return found
    return by_kind(found, model.module, trained, model.optimizer_of.keywords.get("others_names", ()))


def vectors_of(model: Any, trained: dict[str, Parameter], groups: Groups) -> list[ShardedVector]:
    """Vectors of the ``trained`` parameters, the last layer's first: so their gradients come."""
    parts = [trained] if model.units is None else parameters_of(model.units, model.module, trained).values()
    cap = 0 if model.find_unused else model.bucket_cap_mb if model.units is None else inf
    vectors = []
    for part in reversed(list(parts)):
        for names, own in groups:
            named = {name: part[name] for name in reversed(part) if name in names}
            if own.get("kind") == "muon" and model.optimizer_of.keywords.get("exchange") == "owner":
                for together, owner in uncut(named, model.shard_group.size(), each_alone=model.find_unused):
                    vectors.append(_vector(model, [named[name] for name in together], owner))
            else:
                vectors += [_vector(model, members) for members in assign(list(named.values()), cap)]
    return vectors


def _vector(model: Any, parameters: Iterable[Parameter], owner: int | None = None) -> ShardedVector:
    return ShardedVector(
        {model._names[p]: p for p in parameters},
        model.reduces.owned_by(owner),
        model.gathers.owned_by(owner),
        model.home,
        dtype=model.mixed_precision,
        own_shard="parameters" not in model.keeps_whole,
        ranks=model.group.size(),
        owner=owner,
    )


def frozen_to_shard(model: Any) -> dict[str, Parameter]:
    """The frozen parameters of a model that keeps none whole. One of a class that is no plain memory stays whole."""
    frozen = set(model._frozen)
    return {
        name: p
        for name, p in model.module.named_parameters()
        if p in frozen and p.layout is torch.strided and p.numel() and not is_traceable_wrapper_subclass(p)
    }


def frozen_vectors(model: Any, frozen: Mapping[str, Parameter]) -> list[ShardedVector]:
    """Vectors of ``frozen`` parameters: of each unit, those of one type."""
    names, vectors = {p: name for name, p in frozen.items()}, []
    for part in parameters_of(model.units, model.module, frozen).values():
        for members in assign(part.values(), inf, inf):
            dtype = model.mixed_precision if members[0].is_floating_point() else None
            vector = ShardedVector(
                {names[p]: p for p in members},
                model.reduces,
                model.gathers,
                Kept(model.home),
                dtype=dtype,
                own_shard=True,
                ranks=model.group.size(),
                trained=False,
            )
            vectors.append(vector)
    return vectors


def masters(names: Iterable[str], vectors: Iterable[ShardedVector]) -> list[Parameter]:
    """What an optimizer steps in place of the parameters of these ``names``."""
    return [vector.master for vector in vectors if not vector.parameters.keys().isdisjoint(names)]


def add_param_group(model: Any, group: dict) -> None:
    """Train more of the module's parameters, such as what was unfrozen. All ranks must call it, between steps.

    ``group`` is a parameter group as torch's optimizers take it. Raises ValueError for a parameter that is not in
    the module, is frozen, or is trained already, and where states are in files.
    """
    model._check_usable()
    model.home.check_takes_more()
    new = to_add(group, model.module, model.trained)
    added = grouped(model, [group], new)
    if model.frozen is not None:
        model.frozen.give_back(set(new))  # so that the optimizer's copy is as precise as the others
    model.frozen_shards.give_back(set(new))
    model._train(new)
    model.groups += added
    vectors = vectors_of(model, new, added)
    model.in_order.add(vectors)
    for of_group, own in added:
        add = type(model.optimizer).add_param_group
        add(model.optimizer, own | {"params": masters(of_group, vectors)})
    model.attach()
