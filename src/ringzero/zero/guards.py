"""What a program may have done to a sharded module and its gradients that a step or the module's end would lose."""

from typing import Any

import torch

from ringzero.data_parallel.structure import Structure


def check_options(mixed_precision: torch.dtype | None, bucket_cap_mb: float) -> None:
    """Raise ValueError for what a ``ZeroModel`` does not take."""
    if mixed_precision not in (None, torch.bfloat16, torch.float16):
        raise ValueError(f"mixed_precision is {mixed_precision}; take torch.bfloat16 or torch.float16")
    if not bucket_cap_mb > 0:
        raise ValueError(f"bucket_cap_mb is {bucket_cap_mb!r}; give a positive number of MiB")


def heed_program(model: Any, step: bool = False) -> None:
    """Forget the gradients that the program forgot, and raise RuntimeError where a step would not be what it means.

    With ``step`` no backward pass is going on.
    """
    forgot = [vector.heed_program(step) for vector in model.vectors()]
    if any(forgot) and model.in_join:
        raise RuntimeError(
            "inside join gradients were forgotten without the ranks that are out of data; call the zero_grad() of "
            f"the {type(model).__name__}, not of its module"
        )


def check_unchanged(model: Any) -> None:
    """Raise RuntimeError, with names, if parameters are not those that were sharded: a change would be lost."""
    changed = []
    if model.as_sharded.differs or model.has_unfrozen:
        now = dict(model.module.named_parameters())
        ours = {*model.trained, *model.unused}
        if unfrozen := [name for name, p in now.items() if p.requires_grad and name not in ours]:
            raise RuntimeError(
                f"{', '.join(unfrozen)} unfrozen since the model was sharded, so the optimizer has no shard of it; "
                "call add_param_group for it on every rank"
            )
        changed = [name for name, parameter in model.trained.items() if now.get(name) is not parameter]
        if not changed:
            model.as_sharded = Structure(model.module)
    changed += [name for vector in (*model.vectors(), *model.frozen_shards.vectors) for name in vector.changed()]
    if changed:
        raise RuntimeError(
            f"{', '.join(changed)} changed since the model was sharded: replaced, or overwritten where the "
            "optimizer has a copy; use load_state_dict for new values, or whole_parameters(write=True)"
        )


def check_may_leave(model: Any) -> None:
    """Raise RuntimeError if gradients wait for a step, or values were written that the optimizer's would replace."""
    kind, vectors = type(model).__name__, [*model.vectors(), *model.frozen_shards.vectors]
    if model.gradients_wait and any(vector.added or vector.holds_sums for vector in vectors):
        raise RuntimeError(
            f"gradients in this {kind} wait for a step, and would be lost; call its step(), or its "
            "zero_grad(), before you leave it or wrap the module again"
        )
    if lost := [name for vector in vectors for name in vector.overwritten()]:
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
