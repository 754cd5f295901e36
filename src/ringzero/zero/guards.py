"""What a program may have done to a sharded module and its gradients that a step or the module's end would lose."""

from typing import Any

import torch

from ringzero.data_parallel.structure import Structure
from ringzero.data_parallel.vector import is_held
from ringzero.zero.gone import InShards
from ringzero.zero.vector import ShardedVector


def check_options(mixed_precision: torch.dtype | None, bucket_cap_mb: float, travel: Any) -> None:
    """Raise ValueError or TypeError for what a ``ZeroModel`` does not take."""
    if travel is not None and not hasattr(travel, "transport"):
        raise TypeError(f"travel is {travel!r}; give zero.Hybrid() or zero.ZeroPlusPlus()")
    if mixed_precision not in (None, torch.bfloat16, torch.float16):
        raise ValueError(f"mixed_precision is {mixed_precision}; take torch.bfloat16 or torch.float16")
    if not bucket_cap_mb > 0:
        raise ValueError(f"bucket_cap_mb is {bucket_cap_mb!r}; give a positive number of MiB")


def refuse_shared_memory(model: Any) -> None:
    """Raise ValueError, with two names, if a trained parameter lies in memory of another parameter or of a buffer.

    Vectors have other memory, so the two would part: what is written to one would not be in the other any more.
    """
    named = [*model.module.named_parameters(), *model.module.named_buffers()]
    strided = [(name, t) for name, t in named if t.layout is torch.strided and t.numel()]
    reach: list[tuple[str, torch.Tensor]] = []  # those whose memory goes as far as where the next one begins
    for name, tensor in sorted(strided, key=lambda each: _span(each[1])):
        reach = [each for each in reach if _span(each[1])[1] > tensor.data_ptr()]
        for other, first in reach:
            if not model.trained.keys().isdisjoint((name, other)) and _overlap(first, tensor):
                raise ValueError(
                    f"{other} and {name} lie in the same memory, and a {type(model).__name__} gives each memory of its "
                    "own, so they would not be the same any more; make them one parameter, as module.b.weight = "
                    "module.a.weight does, or give one of them a clone()"
                )
        reach.append((name, tensor))


def heed_program(model: Any, step: bool = False) -> None:
    """Forget the gradients that the program forgot, and raise RuntimeError where a step would not be what it means.

    With ``step`` no backward pass is going on.
    """
    forgot = [_heed(vector, step) for vector in model.vectors()]
    if any(forgot) and model.in_join:
        raise RuntimeError(
            "inside join gradients were forgotten without the ranks that are out of data; call the zero_grad() of "
            f"the {type(model).__name__}, not of its module"
        )


def check_gradients(model: Any) -> None:
    """Raise RuntimeError, with a name, for gradients of the program's own in which it would look for the mean."""
    with torch._C.DisableTorchFunctionSubclass():
        named = [each for vector in model.vectors() for each in vector.parameters.items()]
        own = [(name, p) for name, p in named if p.grad is not None and not isinstance(p.grad, InShards)]
        if names := [name for name, parameter in own if is_held(parameter)]:
            raise RuntimeError(
                f"the program holds the gradient of {', '.join(names)}, such as in one buffer for all gradients, and "
                f"would not find the mean there: a {type(model).__name__} has it in shards. Leave grad to backward()"
            )


def check_unchanged(model: Any) -> None:
    """Raise RuntimeError, with names, if parameters are not those that were sharded: a change would be lost."""
    changed = []
    if model.as_sharded.differs or model.has_unfrozen:
        now = dict(model.module.named_parameters())
        ours = {*model.trained, *model.unused}
        if unfrozen := [n for n, p in now.items() if p.requires_grad and n not in ours and p not in model._names]:
            raise RuntimeError(
                f"{', '.join(unfrozen)} unfrozen since the model was sharded, so the optimizer has no shard of it; "
                "call add_param_group for it on every rank"
            )
        changed = [name for name, parameter in model.trained.items() if now.get(name) is not parameter]
        if not changed:
            model.as_sharded = Structure(model.module)
    changed += [name for vector in (*model.vectors(), *model.frozen_shards.vectors) for name in _changed(vector)]
    if changed:
        raise RuntimeError(
            f"{', '.join(changed)} changed since the model was sharded: replaced, renamed (as by pruning), or "
            "overwritten where the optimizer has a copy; for new values use load_state_dict or "
            "whole_parameters(write=True), for a new parameter or name shard the module again"
        )


def check_may_leave(model: Any) -> None:
    """Raise RuntimeError if gradients wait for a step, or values were written that the optimizer's would replace."""
    kind, vectors = type(model).__name__, [*model.vectors(), *model.frozen_shards.vectors]
    if model.gradients_wait and any(vector.added or vector.holds_sums for vector in vectors):
        raise RuntimeError(
            f"gradients in this {kind} wait for a step, and would be lost; call its step(), or its "
            "zero_grad(), before you leave it or wrap the module again"
        )
    if lost := [name for vector in vectors for name in _overwritten(vector)]:
        raise RuntimeError(
            f"{', '.join(lost)} overwritten since the model was sharded, where the optimizer has a copy that would "
            f"come back now; use the load_state_dict() of the {kind}, not of its module"
        )


def check_may_step(model: Any) -> None:
    """Raise RuntimeError for gradients of ``no_sync`` that were not reduced, and in float16 for those not unscaled."""
    if any(vector.added or vector.of_node is not None for vector in model.vectors()):
        raise RuntimeError("gradients added up in no_sync were not reduced; make the last backward pass outside it")
    if model.needs_scaling and not model.is_unscaled:
        raise RuntimeError(
            "a step in float16 without loss scaling: gradients below 6e-8 are zero there. Take zero.GradScaler, "
            "and its step(model) in place of model.step(); or mixed_precision=torch.bfloat16"
        )


def no_copy(model: Any) -> TypeError:
    return TypeError(
        f"a {type(model).__name__} cannot be copied or pickled: each rank has a shard of it. Load its state_dict(), "
        "which is whole, into a module of your own; zero.checkpoint saves it in shards"
    )


def no_optimizer(model: Any) -> TypeError:
    return TypeError(
        f"a {type(model).__name__} is no optimizer, and each rank has other gradients; schedulers take "
        "model.optimizer, and scaled losses ringzero.zero.GradScaler"
    )


# ---- of tensors


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses of the first byte and after the last one."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _overlap(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether tensors share a number; the memory of ``first`` begins where that of ``second`` does, or before."""
    apart, rest = divmod(second.data_ptr() - first.data_ptr(), first.element_size())
    if rest or first.element_size() != second.element_size():
        return True
    ends = max(_span(first)[1], _span(second)[1]) - first.data_ptr()
    taken = torch.zeros(ends // first.element_size(), dtype=torch.bool)
    taken.as_strided(first.shape, first.stride()).fill_(True)
    return bool(taken.as_strided(second.shape, second.stride(), apart).any())


# ---- of one vector


def _heed(vector: ShardedVector, step: bool) -> bool:
    """Take in what the program did to ``grad`` of the parameters; with ``step`` no backward pass adds to it.

    If all are gone, as after ``module.zero_grad()``, so is the gradient. Returns whether it was forgotten. Raises
    RuntimeError, with a name, for a ``grad`` of the program's own that would be left out of a step, and if the
    program forgot some of the vector's gradients: it is stepped as one.
    """
    with torch._C.DisableTorchFunctionSubclass():
        grads = [parameter.grad for parameter in vector.parameters.values()]
    if vector.mark_of_master is not None and vector.master.grad is not vector.mark_of_master:
        grads = [vector.master.grad] * len(grads)  # what the program did to the shard's it did to all
    held = vector.holds_sums or bool(vector.added)
    in_shards = [isinstance(grad, InShards) for grad in grads]
    if all(in_shards) if held else not (step and any(grad is not None for grad in grads)):
        return False
    names = list(vector.parameters)
    own = [n for n, g, here in zip(names, grads, in_shards, strict=True) if not here and g is not None]
    if step and own:
        raise RuntimeError(
            f"the program set the gradient of {', '.join(own)}, and the step would leave it out: a ZeRO model "
            "steps with what backward() brought, reduced to shards. Have backward() of a loss bring it"
        )
    if any(in_shards):
        gone = ", ".join(name for name, here in zip(names, in_shards, strict=True) if not here)
        kept = names[in_shards.index(True)]
        raise RuntimeError(
            f"the program took away the gradient of {gone}, and not that of {kept}, which travels with it; call "
            "the model's zero_grad() to forget all, or freeze parameters that should stay as they are"
        )
    vector.forget_gradient()
    if vector.mark_of_master is not None:
        vector.mark_master()
    return True


def _changed(vector: ShardedVector) -> list[str]:
    """Names of parameters whose values the next step would lose.

    These are not views of ``whole`` any more, or were written to in place while another copy, the master or this
    rank's own shard, is the one that counts.
    """
    with torch._C.DisableTorchFunctionSubclass():  # ``Gone`` would look at each access
        moved = [name for name, p in vector.parameters.items() if not vector.is_in_place(name, p)]
        return [*moved, *(name for name in _overwritten(vector) if name not in moved)]


def _overwritten(vector: ShardedVector) -> list[str]:
    """Names of parameters that were written to in place while another copy is the one that counts."""
    if not vector.master_has_own_memory:
        return []
    return [name for name, p in vector.parameters.items() if p._version != vector.versions[name]]
