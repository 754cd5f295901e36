"""Claims about a run of ``harness.quantised``: how far off a number may be, and how many bytes may travel."""

import torch

from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.values import same
from ringzero.lab.harness import quantised
from ringzero.lab.runs import Run, part
from ringzero.record.operation import bytes_sent

FP32 = 1 + 1e-4  # rounding of fp32, beside the half of a step


def half_steps(x: torch.Tensor, block: int) -> torch.Tensor:
    """How far off each number may be: half of its block's step, which is the largest of the block over 127."""
    largest = [each.abs().max() for each in x.double().split(block)] if x.numel() else []
    return torch.cat(
        [(m / 254).expand(size) for m, size in zip(largest, _lengths(x.numel(), block), strict=True)] or [x]
    )


def payload(numel: int, block: int) -> int:
    """Bytes of so many numbers: one each, and a scale of 4 for every block."""
    return numel + 4 * -(-numel // block)


def _lengths(numel, block):
    return [min(block, numel - start) for start in range(0, numel, block)]


def _too_far(what, got, right, allowed):
    """Why some number of ``got`` is further from ``right`` than ``allowed``, or None."""
    if not isinstance(got, torch.Tensor) or tuple(got.shape) != tuple(right.shape):
        shape = tuple(got.shape) if isinstance(got, torch.Tensor) else repr(got)
        return f"{what} has shape {shape}, expected {tuple(right.shape)}"
    if got.dtype != torch.float32:
        return f"{what} is {got.dtype}, expected torch.float32"
    off = (got.double() - right).abs()
    wrong = (~(off <= allowed * FP32 + 1e-6 * right.abs())).nonzero().flatten().tolist()
    if not wrong:
        return None
    i = wrong[0]
    return (
        f"{what} is too far off in {len(wrong)} of {right.numel()} numbers: [{i}] is {got[i].item():.6g}, the exact "
        f"value is {right[i].item():.6g}, and it may be off by {allowed[i].item():.3g}"
    )


# ``there_and_back``


def is_off_by_half_a_step(run: Run) -> str | None:
    """Every number comes back within half a step of its block, from the integers and scales alone."""
    x, report, block = _input(run), run.reports[0], run.option("block")
    if why := _too_far("what came back", report.back, x.double(), half_steps(x, block)):
        if report.integers.dtype != torch.int8:
            return f"{why}; the integers are {report.integers.dtype}, not torch.int8"
        return why + _mistake(report.back, x, block)
    if is_int8_with_scales(run):
        return None
    integers, scales = quantised.others(run.option("size"), block)
    right = integers * scales.repeat_interleave(block)[: integers.numel()]
    if why := _too_far(
        "what dequantise makes of other integers and scales", report.of_others, right, 1e-6 * right.abs()
    ):
        return why
    alone = report.integers * report.scales.repeat_interleave(block)[: x.numel()]
    why = _too_far("each integer times its scale", alone, x.double(), half_steps(x, block))
    return why and f"dequantise knows more than it is given: {why}"


def _mistake(back, x, block):
    """What usual mistake gives the numbers ``back``, as the end of a sentence; or nothing."""
    if not isinstance(back, torch.Tensor) or back.shape != x.shape:
        return ""
    m = torch.cat([each.abs().max().expand(each.numel()) for each in x.split(block)])
    signed = torch.cat([each.max().expand(each.numel()) for each in x.split(block)])
    for words, scale, to_integer in (
        ("the integers are cut off, not rounded", m / 127, torch.trunc),
        ("one scale is used for all blocks", x.abs().max() / 127 + 0 * m, torch.round),
        ("the scale is m/128, not m/127", m / 128, torch.round),
        ("the scale is that of the largest number, not of the largest magnitude", signed / 127, torch.round),
    ):
        wrong = to_integer(x / scale).clamp(-128, 127) * scale
        if torch.isclose(back, wrong, rtol=1e-4, atol=1e-7).float().mean() > 0.98:
            return f": {words}"
    return ""


def is_int8_with_scales(run: Run) -> str | None:
    """One int8 for each number, and one fp32 scale for each block."""
    report, numel, block = run.reports[0], run.option("size"), run.option("block")
    blocks = -(-numel // block)
    for name, got, dtype, length in (
        ("integers", report.integers, torch.int8, numel),
        ("scales", report.scales, torch.float32, blocks),
    ):
        if got.dtype != dtype or tuple(got.shape) != (length,):
            return f"the {name} are {got.dtype} of shape {tuple(got.shape)}, expected {dtype} of shape ({length},)"
    return None


@given(is_off_by_half_a_step)
def takes_the_bytes(run: Run) -> str | None:
    """The payload is a byte a number and 4 bytes a block, and the input is left alone."""
    return is_int8_with_scales(run) or (None if run.reports[0].kept else "the input was changed")


def _input(run):
    x = quantised.values_of(run.option("kind", "normal"), run.option("size"), run.option("seed"))
    return quantised.stored(x, run.option("bf16", False)).float()


# ``gather_once``


def gathers_within_half_a_step(run: Run) -> str | None:
    """Every rank has every shard, each number within half a step of its block; blocks begin with the shard."""
    vector, block, n = _input(run), run.option("block"), run.world_size
    allowed = torch.cat([half_steps(part(vector, n, rank), block).double() for rank in range(n)])
    for rank, report in enumerate(run.reports):
        if why := _too_far(f"on rank {rank} the vector", report.whole, vector.double(), allowed):
            return why
    return None


@given(gathers_within_half_a_step)
def all_have_the_same_bits(run: Run) -> str | None:
    """The vector is the same on every rank, to the last bit."""
    return same("the vector", [report.whole for report in run.reports])


@given(gathers_within_half_a_step)
def shards_stay_exact(run: Run) -> str | None:
    """The shard, which is the master copy, is what it was."""
    return next((f"rank {r} changed its shard" for r, report in enumerate(run.reports) if not report.kept), None)


@given(gathers_within_half_a_step)
def sends_one_byte_a_number(run: Run) -> str | None:
    """No rank sends more than an all-gather of the largest shard's payload."""
    return _sends_at_most(run)


# ``reduce_once``


def sums_within_half_a_step_each(run: Run) -> str | None:
    """Chunk r of the sum, off by at most half a step for each of the ranks' parts; blocks begin with the chunk."""
    vectors, block, n = _vectors(run), run.option("block"), run.world_size
    for rank, report in enumerate(run.reports):
        parts = [part(vector, n, rank) for vector in vectors]
        right = torch.stack(parts).double().sum(0)
        allowed = torch.stack([half_steps(each, block).double() for each in parts]).sum(0)
        if why := _too_far(f"on rank {rank} the chunk", report.chunk, right, allowed):
            mean = n > 1 and _too_far("", n * report.chunk, right, allowed) is None
            return f"on rank {rank} the chunk is the mean over the ranks, expected the sum" if mean else why
    return None


@given(sums_within_half_a_step_each)
def sends_each_part_once(run: Run) -> str | None:
    """No rank sends more than an all-to-all of the largest chunk's payload."""
    return _sends_at_most(run)


@given(sums_within_half_a_step_each)
def vectors_stay(run: Run) -> str | None:
    """The rank's own vector is what it was."""
    return next((f"rank {r} changed its vector" for r, report in enumerate(run.reports) if not report.kept), None)


def _vectors(run):
    kind, numel, seed = run.option("kind", "normal"), run.option("size"), run.option("seed")
    return [quantised.vector_of(kind, numel, seed, rank) for rank in range(run.world_size)]


def _sends_at_most(run):
    numel, block, n = run.option("size"), run.option("block"), run.world_size
    largest = -(-numel // n)
    due = (n - 1) * payload(largest, block)
    shares = {"all_gather": n - 1, "all_to_all": (n - 1) / n}  # what torch's own send of each byte put in
    for rank, operations in enumerate(run.operations):
        sent = bytes_sent(operations) + sum(round(shares.get(op.kind, 0) * op.bytes) for op in operations)
        if sent > due + 16 * (n - 1):
            return (
                f"rank {rank} sent {sent:,} bytes; {n - 1} times {largest} numbers of one byte with a scale for each "
                f"{block} are {due:,}"
            )
    return None
