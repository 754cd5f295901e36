"""Bytes of a model in each tier of memory, as its tensors and files have them now."""

from ringzero.zero.file import File
from ringzero.zero.model import ZeroModel
from ringzero.zero.optimizers import is_sharded

TIERS = ("device", "host", "file")


def resident(model: ZeroModel) -> dict[str, int]:
    """``{tier: bytes}`` on this rank: parameters, gradients and optimizer states, each storage once.

    Optimizer states of one number, such as Adam's step count, are left out. Activations, buffers, and parameters that
    are neither trained nor sharded, are not part of it.
    """
    held: dict[str, dict[int, int]] = {tier: {} for tier in TIERS}
    for vector in (*model.vectors(), *model.frozen_shards.vectors):
        states = [value for value in model.optimizer.state.get(vector.master, {}).values() if is_sharded(value)]
        on_device = [t for t in (vector.whole, vector.gradient, vector.of_node, vector.secondary) if t is not None]
        for tier, tensor in [*(("device", t) for t in on_device), *vector.home.sizes(vector, states)]:
            storage = tensor.untyped_storage()
            held[tier][storage._cdata] = storage.nbytes()
    total = {tier: sum(sizes.values()) for tier, sizes in held.items()}
    if isinstance(model.home, File):
        total["host"] += model.home.memory_for_records
        total["file"] += model.home.file_bytes
    return total
