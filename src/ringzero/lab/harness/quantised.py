"""Numbers as int8 in blocks: there and back, gathered from shards, and summed up after an all-to-all."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from ringzero.lab.harness.sharded import numbers
from ringzero.lab.refused import refused
from ringzero.lab.runs import part


def values_of(kind: str, numel: int, seed: int) -> torch.Tensor:
    """Numbers to quantise, on the CPU, in fp32.

    ``kind`` is "normal", "zeros", "scales" (from 0.001 to 1,000, the first numbers smallest), "half" (the second half
    is zeros) or "tiny".
    """
    x = numbers((numel,), seed)
    if kind == "zeros":
        return torch.zeros(numel, device="cpu")
    if kind == "scales":
        return x * torch.logspace(-3, 3, max(numel, 1), device="cpu")[:numel]
    if kind == "half":
        x[numel // 2 :] = 0
    return 1e-25 * x if kind == "tiny" else x


def stored(x: torch.Tensor, bf16: bool) -> torch.Tensor:
    """``x`` in bf16 or as it is."""
    return x.bfloat16() if bf16 else x


def there_and_back(
    quantise: Callable,
    dequantise: Callable,
    *,
    size: int,
    block: int,
    seed: int,
    kind: str = "normal",
    bf16: bool = False,
) -> dict:
    """What ``quantise`` makes of some numbers, and what ``dequantise`` makes of that, and of ``others``."""
    x = stored(values_of(kind, size, seed), bf16).to(torch.get_default_device())
    before = x.clone()
    with _without_the_librarys_own():
        integers, scales = quantise(x, block)
        report = {"integers": integers.clone(), "scales": scales.clone()}
        quantise(1 - x, block)
        _must_still_be(report, integers, scales, "a second call of quantise wrote over what the first returned")
        back = dequantise(integers, scales, block)
        _must_still_be(report, integers, scales, "dequantise changed the integers or scales that it was given")
        made = tuple(each.to(x.device) for each in others(size, block))
        of_others = dequantise(*made, block) if scales.shape == made[1].shape else None
    return report | {"back": back, "of_others": of_others, "kept": torch.equal(x, before)}


def _must_still_be(report, integers, scales, why):
    same = torch.equal(integers, report["integers"]) and torch.allclose(scales, report["scales"], 0, 0, equal_nan=True)
    if not same:
        raise RuntimeError(why)


def others(size: int, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Integers and scales that no ``quantise`` made, on the CPU."""
    integers = (torch.arange(size, device="cpu") * 37 % 255 - 127).to(torch.int8)
    return integers, 0.5 + torch.arange(-(-size // block), device="cpu", dtype=torch.float32)


def gather_once(quantised_gather: Callable, *, size: int, block: int, seed: int, kind: str = "normal") -> dict:
    """The vector that this rank gathers, from every rank's shard of it."""
    shard = part(values_of(kind, size, seed), dist.get_world_size(), dist.get_rank())
    shard = shard.clone().to(torch.get_default_device())
    before = shard.clone()
    with _without_the_librarys_own():
        whole = quantised_gather(shard, size, block)
    return {"whole": whole.clone(), "kept": torch.equal(shard, before)}


def reduce_once(quantised_reduce_scatter: Callable, *, size: int, block: int, seed: int, kind: str = "normal") -> dict:
    """This rank's chunk of the sum of the ranks' vectors, of which each has another."""
    vector = vector_of(kind, size, seed, dist.get_rank()).to(torch.get_default_device())
    before = vector.clone()
    with _without_the_librarys_own():
        chunk = quantised_reduce_scatter(vector, block)
    return {"chunk": chunk.clone(), "kept": torch.equal(vector, before)}


def vector_of(kind: str, numel: int, seed: int, rank: int) -> torch.Tensor:
    """What ``rank`` has, on the CPU: a part that all ranks share, and one of its own."""
    return values_of(kind, numel, 1000 * seed) + values_of(kind, numel, 1000 * seed + 1 + rank)


def _without_the_librarys_own():
    from ringzero.zero import quantised

    methods = [getattr(quantised.Blocks, name) for name in ("encode", "decode")]
    return refused(*methods, quantised.Quantised.__init__)
