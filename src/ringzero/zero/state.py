"""The whole ``state_dict`` of a sharded module and of its optimizer, as one process would have them.

Both load into a plain module and torch optimizer, and theirs load here. All ranks must call these functions together,
and each rank gets all of the state.
"""

import copy
from functools import partial

import torch

from ringzero.collectives import all_gather, broadcast
from ringzero.collectives.run import device_of
from ringzero.zero.gone import readable
from ringzero.zero.optimizers import is_sharded
from ringzero.zero.together import together

EXTRA = "_extra_state"  # the last part of a key of what a module's get_extra_state returns


def state_dict(model):
    """The module's ``state_dict``, whole on every rank, trained parameters in the precision they are stepped in."""
    _check_own_ways(
        model, "saves", ("_state_dict_pre_hooks", "_state_dict_hooks"), ("state_dict", "_save_to_state_dict")
    )
    model.heed_data()
    trained = trained_values(model)
    aliases = trained_aliases(model)
    return {key: trained[aliases[key]] if key in aliases else value for key, value in untrained(model).items()}


def _check_own_ways(model, does, hooks, methods):
    """Raise TypeError where the program has a hook or a method of its own that is not called here."""
    for name, module in model.module.named_modules():
        own = [each for of_kind in hooks for each in getattr(module, of_kind).values()]
        own += [getattr(type(module), method) for method in methods]
        if odd := [each for each in own if not each.__module__.startswith(("torch.", "ringzero."))]:
            what = getattr(odd[0], "__name__", "a hook")
            raise TypeError(
                f"{name or 'the module'}, a {type(module).__name__}, {does} its state by {what}, which needs whole "
                f"parameters, and a {type(model).__name__} has shards; inside `with model.whole_parameters("
                f"{'write=True' * (does == 'loads')}):` call the {methods[0]} of model.module"
            )


def untrained(model, sharded=True):
    """The module's own ``state_dict``, in which frozen parameters are what was given.

    Trained ones may be empty, and without ``sharded`` so may frozen ones that are.
    """
    given = dict(model.frozen.values()) if model.frozen is not None else {}
    names = _names(model, given)
    if sharded:
        names |= frozen_aliases(model)
        given |= dict(model.frozen_shards.values())
    return {key: given[names[key]] if key in names else value for key, value in here(model).items()}


def take_untrained(model, key, value):
    """Have what is not trained and whole, a buffer, a frozen parameter or an extra state, be ``value``."""
    if model.frozen is not None:
        model.frozen.take(_names(model, model.frozen.names).get(key), value)
    owner, _, name = key.rpartition(".")
    if name == EXTRA:  # which a module makes anew when it is asked
        model.module.get_submodule(owner).set_extra_state(value)
    else:
        here(model)[key].copy_(value)


def here(model):
    """The module's own ``state_dict``, in which parameters may be empty."""
    with readable():
        return model.module.state_dict()


def trained_values(model):
    """``{name: tensor}`` of the trained parameters, whole, in the precision they are stepped in."""
    trained = {}
    for vector in model.vectors():
        with model.home.loaded(vector):
            trained |= whole(vector, vector.master.detach())
    return trained


@torch.no_grad()
def load_state_dict(model, state, strict=True, assign=False):
    """Take over a module's ``state_dict``. Raises ValueError, and changes nothing, where it does not fit.

    Raises TypeError for what torch's may do and this does not: leave some as they are, or assign new parameters.
    """
    if assign:
        raise TypeError(
            f"assign is {assign}, and the parameters of a {type(model).__name__} lie in vectors that are sharded; "
            "leave it out, and the values are copied there"
        )
    if not strict:
        raise TypeError(f"strict is {strict}, and all ranks take over all; give model.state_dict() | state")
    _check_own_ways(
        model,
        "loads",
        ("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
        ("load_state_dict", "_load_from_state_dict"),
    )
    shapes, ours = trained_shapes(model) | frozen_shapes(model), here(model)
    aliases = trained_aliases(model) | frozen_aliases(model)
    fits = {key: shapes[aliases[key]] if key in aliases else _shape(key, value) for key, value in ours.items()}
    together(model.group, lambda: check_fit(fits, {key: _shape(key, value) for key, value in state.items()}))
    for key in ours.keys() - aliases:
        take_untrained(model, key, state[key])

    def read(name, start, stop):
        return state[name].reshape(-1)[start:stop]

    for vector in model.frozen_shards.vectors:
        vector.take(shard(vector, read))
    model.change(lambda vector: vector.master.copy_(shard(vector, read)))


def optimizer_state_dict(model):
    """The optimizer's ``state_dict``, whole on every rank, as of one process, numbered group after group."""
    number, states = _numbers(model), {}
    for vector in model.vectors():
        with model.home.loaded(vector):
            for key, value in model.optimizer.state.get(vector.master, {}).items():
                values = whole(vector, value) if is_sharded(value) else of_each(vector, value)
                for name in vector.parameters:
                    states.setdefault(number[name], {})[key] = values[name]
    groups = [
        {key: value for key, value in group.items() if key != "params"} | {"params": [number[name] for name in names]}
        for group, (names, _) in zip(model.optimizer.param_groups, model.groups, strict=True)
    ]
    return {"state": dict(sorted(states.items())), "param_groups": groups}


@torch.no_grad()
def load_optimizer_state_dict(model, state):
    """Take over an ``optimizer_state_dict``, or one of a plain optimizer over the same parameters.

    Raises ValueError, and changes nothing, where it does not fit.
    """
    number, keys = _numbers(model), model.sharded_keys
    if not state["state"]:  # of an optimizer that has not made a step
        keys = dict.fromkeys(keys, set())
    due = [name for name in number if not model.find_unused or state["state"].get(number[name])]
    ours = {
        f"{key} of {name}": shape for name, shape in trained_shapes(model).items() if name in due for key in keys[name]
    }
    given = {
        f"{key} of {name}": tuple(state["state"][i][key].shape)
        for name, i in number.items()
        for key in keys[name] & state["state"].get(i, {}).keys()
    }
    together(model.group, lambda: check_fit(ours, given))
    load_groups(model.optimizer, state["param_groups"])

    def take(vector):
        states = _states_of(
            vector, keys[next(iter(vector.parameters))], lambda name: state["state"].get(number[name], {})
        )
        model.optimizer.state[vector.master] = states

    model.home.update(model.vectors(), take)


def of_each(vector, value):
    """A state that is no shard, such as a step count, as that of each parameter."""
    return {name: copy.deepcopy(value) for name in vector.parameters}


def _states_of(vector, keys, given):
    def read(key, name, start, stop):
        return given(name)[key].reshape(-1)[start:stop]

    first = given(next(iter(vector.parameters)))
    return {k: shard(vector, partial(read, k)) if k in keys else copy.deepcopy(v) for k, v in first.items()}


def whole(vector, shard):
    """``{name: tensor of the parameter's shape}`` from every rank's shard of a vector, where the shard is.

    A shard on the host goes by way of the GPU where the group sends from nowhere else.
    """
    on_the_way = shard.device if shard.is_cuda else device_of(vector.group)
    everyones = shard.new_empty(vector.layout.numel, device=on_the_way)
    everyones[vector.owned] = shard
    if vector.layout.owner is not None:
        everyones = broadcast(everyones, vector.layout.owner, group=vector.group)
    else:
        everyones = all_gather(everyones, group=vector.group)
    return vector.layout.views(everyones.to(shard.device))


def shard(vector, read):
    """This rank's shard, put together from what ``read(name, start, stop)`` gives of each flattened parameter."""
    pieces = [read(*piece).to(vector.master) for piece in vector.layout.pieces(vector.group.rank())]
    return torch.cat([vector.master.new_empty(0), *pieces])


def trained_shapes(model):
    return {name: shape for vector in model.vectors() for name, shape in vector.layout.parameters}


def frozen_shapes(model):
    return {name: shape for vector in model.frozen_shards.vectors for name, shape in vector.layout.parameters}


def frozen_aliases(model):
    """``{key of the module's state_dict: name}`` of frozen parameters that are sharded and still in the module."""
    names = {parameter: name for name, parameter in model.frozen_shards.parameters.items()}
    return {key: names[p] for key, p in model.module.named_parameters(remove_duplicate=False) if p in names}


def trained_aliases(model):
    """``{key of the module's state_dict: name}`` of trained parameters; a tied one has several keys."""
    return _names(model, model.trained)


def names(model):
    """``{key of the module's state_dict: name}`` of all parameters."""
    return _names(model, dict(model.module.named_parameters()))


def _names(model, named):
    """``{key of the module's state_dict: name}`` of parameters that have one of the names ``named``."""
    names = {parameter: name for name, parameter in model.module.named_parameters() if name in named}
    return {key: names[p] for key, p in model.module.named_parameters(remove_duplicate=False) if p in names}


def _shape(key, value):
    """As far as it must fit: an extra state is the module's own affair."""
    return "there" if key.rpartition(".")[2] == EXTRA else tuple(value.shape)


def load_groups(optimizer, groups):
    """Take the options of parameter groups over, their parameters aside."""
    check_fit({"parameter groups": len(optimizer.param_groups)}, {"parameter groups": len(groups)})
    for group, given in zip(optimizer.param_groups, groups, strict=True):
        options = {key: value for key, value in given.items() if key != "params"}
        group.update({key: tuple(value) if isinstance(value, list) else value for key, value in options.items()})


def check_fit(ours, given):
    """Raise ValueError, which names the first differences, unless both dicts say the same."""
    if wrong := [key for key in {**ours, **given} if ours.get(key) != given.get(key)]:
        differences = "; ".join(
            f"{key} is {given.get(key, 'missing')}, here {ours.get(key, 'unknown')}" for key in wrong[:5]
        )
        raise ValueError(f"the state does not fit this model: {differences}")


def _numbers(model):
    return {name: i for i, name in enumerate(name for names, _ in model.groups for name in names)}
