"""Which optimizers a shard can be given to, their parameter groups, and which optimizers are refused."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from types import MethodType
from typing import Any
from weakref import ref

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ringzero.data_parallel.hooked import replica_of
from ringzero.record.eager import not_compiled
from ringzero.zero.matrices import embeddings_of, split
from ringzero.zero.muon import Muon

_NAMES = (
    "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD",
)  # fmt: skip
Groups = list[tuple[tuple[str, ...], dict]]  # names of parameters, and their options
ELEMENTWISE = {name: getattr(torch.optim, name) for name in _NAMES}


def check_optimizer(optimizer: type[torch.optim.Optimizer], vouched: bool) -> None:
    """Raise ValueError unless ``optimizer`` is known, or ``vouched`` for, to treat each element on its own.

    Raises TypeError if it is no class of optimizers.

    A shard has no rows and columns, which Adafactor and torch's Muon need, and does not show the other parameters,
    which LBFGS needs.
    """
    if not (isinstance(optimizer, type) and issubclass(optimizer, torch.optim.Optimizer)):
        raise TypeError(f"optimizer is {optimizer!r}; give a class, such as torch.optim.AdamW, and its options")
    if optimizer is torch.optim.Muon:
        raise ValueError("torch.optim.Muon needs whole matrices, and a rank has a shard; take ringzero.zero.Muon")
    if optimizer not in (*ELEMENTWISE.values(), Muon) and not vouched:
        raise ValueError(
            f"{optimizer.__name__} is not known to treat each element on its own, and a rank has only a shard of each "
            f"parameter; take one of {', '.join(ELEMENTWISE)}, or vouch for it with elementwise=True"
        )


def members_of(group: dict) -> list:
    """The parameters of a group, which may have one, a list, or an iterator."""
    members = group["params"]
    return [members] if isinstance(members, torch.Tensor) else list(members)


def as_module(
    given: torch.nn.Module | Iterable, groups: Iterable[dict] | None
) -> tuple[torch.nn.Module, Iterable[dict] | None]:
    """A module that holds the parameters, and their groups, if a list of parameters or of groups was given."""
    if isinstance(given, torch.nn.Module):
        return given, groups
    parameters = list(given)
    if parameters and isinstance(parameters[0], dict):
        groups = [group | {"params": members_of(group)} for group in parameters]
        parameters = [parameter for group in groups for parameter in group["params"]]
    for each in parameters:
        if not isinstance(each, torch.nn.Parameter):
            raise TypeError(f"give a module or its parameters, not a {type(each).__name__}")
    return torch.nn.ParameterList(parameters), groups


def parameter_groups(groups: Iterable[dict] | None, trained: Mapping[str, torch.nn.Parameter]) -> Groups:
    """``[(names, options)]`` of parameter groups as torch takes them: dicts with "params" and options.

    None is one group of all ``trained`` parameters. Raises ValueError unless each of them is in one group.
    """
    if groups is None:
        return [(tuple(trained), {})]
    names: dict[torch.Tensor, str] = {parameter: name for name, parameter in trained.items()}
    found: Groups = []
    for group in groups:
        members = members_of(group)
        options = {key: value for key, value in group.items() if key != "params"}
        found.append((tuple(names[p] for p in members if p in names), options))
    listed = [name for members, _ in found for name in members]
    if wrong := [name for name in trained if listed.count(name) != 1]:
        raise ValueError(f"groups must hold each trained parameter once; it does not for {', '.join(wrong)}")
    return found


def by_kind(
    groups: Groups, module: torch.nn.Module, trained: Mapping[str, torch.nn.Parameter], others_names: Collection[str]
) -> Groups:
    """Groups for ``Muon``: those that do not say their "kind" are split into one of matrices and one of the rest."""
    found: Groups = []
    for names, options in groups:
        named = {name: trained[name] for name in names}
        if "kind" in options:
            found.append((names, options))
            continue
        kinds = zip(("muon", "adamw"), split(named, embeddings_of(module, named), others_names), strict=True)
        found += [(tuple(of_kind), options | {"kind": kind}) for kind, of_kind in kinds if of_kind]
    return found


def to_add(group: dict, module: torch.nn.Module, trained: Mapping[str, torch.nn.Parameter]) -> dict[str, Any]:
    """``{name: parameter}`` of a group to add. Raises ValueError, which names the first that cannot be."""
    members = members_of(group)
    named: dict[torch.Tensor, str] = {parameter: name for name, parameter in module.named_parameters()}
    for parameter in members:
        if parameter not in named:
            raise ValueError(f"a parameter to add, of shape {tuple(parameter.shape)}, is not in the module")
        if named[parameter] in trained:
            raise ValueError(f"{named[parameter]} is trained already")
        if not parameter.requires_grad:
            raise ValueError(f"{named[parameter]} is frozen; call its requires_grad_() first")
    return {named[parameter]: parameter for parameter in members}


def sharded_keys(make: Callable[[list[dict]], torch.optim.Optimizer], group: dict) -> set[str]:
    """Names of the states of a ``group`` that have a number for each element: Adam's ``exp_avg``, not its ``step``.

    ``group`` has the options of a parameter group. Found out by a step of two elements, but for ``Muon``, which knows.
    """
    vector = torch.nn.Parameter(torch.zeros(2))
    vector.grad = torch.zeros(2)
    optimizer = make([group | {"params": [vector]}])
    if isinstance(optimizer, Muon):
        return optimizer.sharded_states(optimizer.param_groups[0])
    optimizer.step()
    return {key for key, value in optimizer.state[vector].items() if is_sharded(value)}


def is_sharded(state: Any) -> bool:
    """Whether a state of an optimizer has a number for each element; others are tensors of one number, or numbers."""
    return isinstance(state, torch.Tensor) and state.dim() > 0


@cache
def refuse_other_optimizers(sharded: type) -> None:
    """From now on raise RuntimeError where an optimizer of the program's own steps parameters of a ``sharded`` model.

    It would find no gradients, and do nothing.
    """

    def check(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            owner = replica_of(group["params"][0]) if group["params"] else None
            if isinstance(owner, sharded):
                raise RuntimeError(
                    f"this {type(optimizer).__name__} steps parameters that a {type(owner).__name__} has sharded, and "
                    "finds no gradients; give the model the optimizer's class, and call model.step()"
                )

    register_optimizer_step_pre_hook(check)


def check_same(optimizer: torch.optim.Optimizer, group: dist.ProcessGroup) -> None:
    """Raise ValueError, on every rank, naming the first option of parameter groups in which ranks differ.

    Each rank steps its own shards, so they would be stepped in different ways.
    """
    mine = {"the optimizer": type(optimizer).__name__}
    for place, own in enumerate(optimizer.param_groups):
        values = {key: value.tolist() if isinstance(value, torch.Tensor) else value for key, value in own.items()}
        plain = {key: value for key, value in values.items() if isinstance(value, int | float | str | tuple | list)}
        mine |= {f"{key} of parameter group {place}": repr(value) for key, value in plain.items() if key != "params"}
    everyone: list[dict[str, str]] = [{}] * group.size()
    dist.all_gather_object(everyone, mine, group=group)
    for rank, theirs in enumerate(everyone):
        for key in {**everyone[0], **theirs}:
            if theirs.get(key) != everyone[0].get(key):
                raise ValueError(
                    f"{key} is {everyone[0].get(key)} on rank 0 and {theirs.get(key)} on rank {rank}, and each rank "
                    "steps its own shards; have a schedule decide alike on every rank, such as by the mean of the "
                    "ranks' losses"
                )


MODELS = {  # methods that a program calls of the optimizer -> those of the model that it means
    "step": "step",
    "zero_grad": "zero_grad",
    "add_param_group": "add_param_group",
    "state_dict": "optimizer_state_dict",
    "load_state_dict": "load_optimizer_state_dict",
}


def call_model_instead(optimizer: torch.optim.Optimizer, model: Any) -> None:
    """Have those methods of ``optimizer``, over a model's shards, call the model's, unless the model calls them."""
    weak = ref(model)

    def method(name: str) -> MethodType:
        def call(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            model = weak()
            if model is None:
                raise RuntimeError(
                    f"the ZeRO model whose shards this {type(optimizer).__name__} steps is gone; keep the model"
                )
            if model.steps_now:
                return getattr(type(optimizer), name)(optimizer, *args, **kwargs)
            return getattr(model, MODELS[name])(*args, **kwargs)

        not_compiled(call, what_it_calls_too=True)
        return MethodType(call, optimizer)  # as schedulers expect of ``step``, which they wrap

    for name in MODELS:
        setattr(optimizer, name, method(name))
    optimizer.state = StatesOfShards(optimizer.state)


class StatesOfShards(defaultdict):
    """What an optimizer keeps for shards: who asks by a parameter of the module is told that it is not there."""

    def __init__(self, states: Mapping):
        super().__init__(dict, states)

    def __missing__(self, key: object) -> dict:
        owner = replica_of(key) if isinstance(key, torch.nn.Parameter) else None
        if owner is not None:
            (name,) = [name for name, p in owner.trained.items() if p is key]
            raise KeyError(
                f"the optimizer of a {type(owner).__name__} has no states of {name}, but of the shards in its "
                "param_groups, all of which lie end to end; optimizer_state_dict() has those of each parameter, whole"
            )
        return super().__missing__(key)


def without_model(optimizer: torch.optim.Optimizer) -> None:
    """Have the methods of ``optimizer`` be its own again."""
    for name in MODELS:
        vars(optimizer).pop(name, None)
