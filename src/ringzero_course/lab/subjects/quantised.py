"""Lab 10, its second half: a byte for a number, alone and between ranks."""

import torch
import torch.distributed as dist

from ringzero.record.operation import bytes_sent
from ringzero_course.lab.claims.collectives import all_of
from ringzero_course.lab.claims.oracle import in_one_process, same_bits, stays
from ringzero_course.lab.harness import returned
from ringzero_course.lab.harness.training import numbers
from ringzero_course.lab.runs import LIBRARY, part
from ringzero_course.lab.specification import MANY, of
from ringzero_course.lab.subjects.offload import OWN
from ringzero_course.lab.unaided import unaided


def values_of(kind, numel, seed):
    """Numbers to quantise: "normal", "scales" (from 0.001 to 1,000), or "half" (the rest zeros)."""
    x = numbers((numel,), seed)
    x[numel // 2 if kind == "half" else numel :] = 0
    return x * torch.logspace(-3, 3, max(numel, 1), device="cpu")[:numel] if kind == "scales" else x


def half_steps(x, block):
    """How far off each number may be: half of its block's step, which is the largest of the block over 127."""
    blocks = torch.nn.functional.pad(x.double(), (0, -len(x) % block)).view(-1, block)
    return (blocks.abs().amax(1) / 254).repeat_interleave(block)[: len(x)]


def is_near(oracle):
    """A claim: each rank has fp32 numbers that are as near to the right ones as ``(right, allowed)`` of the oracle."""

    def claim(run):
        for rank, report in enumerate(run.reports):
            (got,), (right, allowed) = report.got, oracle(run, rank)["near"]
            if got.dtype != torch.float32 or got.shape != right.shape:
                shapes = f"{got.dtype} of shape {tuple(got.shape)}, expected torch.float32 of {tuple(right.shape)}"
                return f"on rank {rank} what is returned is {shapes}"
            off = (got.double() - right).abs() / (1.0001 * allowed + 1e-6 * right.abs() + 1e-300)  # fp32 rounds, too
            if off.numel() and not off.max() <= 1:
                i, number = off.argmax(), (~(off <= 1)).sum()
                more = f"[{i}] is {got[i]:.6g}, exact is {right[i]:.6g}, and it may be off by {allowed[i]:.3g}"
                return f"on rank {rank} {number} of {off.numel()} numbers are too far off: {more}"
        return None

    return claim


def there_and_back(quantise, dequantise, *, size, block, seed, kind="normal", dtype=torch.float32):
    """What ``quantise`` makes of some numbers, and what ``dequantise`` makes of that after another call."""
    x = values_of(kind, size, seed).to(torch.get_default_device(), dtype)
    with unaided(*OWN):
        made = returned.pair("quantise", "(integers, scales)", quantise(x, block))
        made = [returned.must_be_a_tensor("quantise", each) for each in made]
        quantise(1 - x, block)
        back = returned.tensor("dequantise", dequantise(*made, block))
    return {"got": [back], "given": [x], "made": made}


@in_one_process
def exact(n, *, size, block, seed, kind="normal", dtype=torch.float32):
    x = values_of(kind, size, seed).to(dtype).float()
    return [{"near": (x.double(), half_steps(x, block)), "given": {"the input": x}}]


def takes_a_byte_a_number(run):
    """One int8 for each number and one fp32 scale for each block."""
    size, blocks = run.option("size"), -(-run.option("size") // run.option("block"))
    expected = ("the integers", torch.int8, size), ("the scales", torch.float32, blocks)
    for (what, dtype, length), got in zip(expected, run.reports[0].made, strict=True):
        if (got.dtype, got.shape) != (dtype, (length,)):
            return f"{what} are {got.dtype} of shape {tuple(got.shape)}, expected {dtype} of shape ({length},)"
    return None


@of(harness=there_and_back, uses=("dequantise",), built_from=(), ranks=1)
def quantise(check):
    right = all_of(takes_a_byte_a_number, stays(exact), is_near(exact))
    even, uneven = check.run(size=1024, block=256, seed=1), check.run(size=1000, block=64, seed=2)
    kinds = [check.run(size=600, block=50, seed=3, kind=kind) for kind in ("scales", "half")]
    short = [check.run(size=size, block=block, seed=6) for size, block in ((0, 8), (5, 16), (9, 1))]
    bf16 = check.run(size=130, block=32, seed=5, dtype=torch.bfloat16)
    check.that("within half a step; a byte for each number, four for each block", even, right, weight=2)
    check.that("a shorter last block, a step for each block, blocks of zeros", [uneven, *kinds], right)
    check.that("numbers of bf16, none at all, fewer than a block, blocks of one number", [bf16, *short], right)
    draw = yield
    shapes = [(draw.randint(1, 999), draw.randint(1, 300)) for _ in range(4)] + [(255, 256), (257, 256), (1, 1)]
    others = [check.run(size=size, block=block, seed=draw.randrange(MANY)) for size, block in shapes]
    case = {"size": draw.randint(90, 300), "block": draw.randint(8, 40), "seed": draw.randrange(MANY)}
    others += [check.run(kind="half", **case), check.run(dtype=torch.bfloat16, **case)]
    check.that("other sizes and blocks, zeros, and numbers of bf16", others, right, weight=3)


def called(name, function, given, *options):
    given = given.clone().to(torch.get_default_device())
    with unaided(*OWN):
        return {"got": [returned.tensor(name, function(given, *options))], "given": [given]}


def gather_once(function, *, size, block, seed, kind="normal"):
    shard = part(values_of(kind, size, seed), dist.get_world_size(), dist.get_rank())
    return called("quantised_gather", function, shard, size, block)


def reduce_once(function, *, size, block, seed, kind="normal"):
    return called("quantised_reduce_scatter", function, values_of(kind, size, 10 * seed + dist.get_rank()), block)


@in_one_process
def gathered(n, *, size, block, seed, kind="normal"):
    """Every rank has every shard, each number within half a step. Blocks begin with the shard."""
    vector = values_of(kind, size, seed)
    shards = [part(vector, n, rank) for rank in range(n)]
    near = vector.double(), torch.cat([half_steps(shard, block) for shard in shards])
    return [{"near": near, "given": {"the shard": shard}} for shard in shards]


@in_one_process
def summed(n, *, size, block, seed, kind="normal"):
    """Chunk r of the sum, off by at most half a step of each of the ranks' parts. Blocks begin with the chunk."""
    vectors = [values_of(kind, size, 10 * seed + rank) for rank in range(n)]
    right = []
    for rank in range(n):
        parts = [part(vector, n, rank) for vector in vectors]
        near = sum(each.double() for each in parts), sum(half_steps(each, block) for each in parts)
        right.append({"near": near, "given": {"the vector": vectors[rank]}})
    return right


def sends_a_byte_a_number(run):
    """No rank sends more than the largest part's payload to each other, in whole blocks."""
    block, n = run.option("block"), run.world_size
    largest = -(-run.option("size") // n)
    blocks = -(-largest // block)
    shares = {"all_gather": n - 1, "all_to_all": (n - 1) / n}  # what torch's own send of each byte put in
    for rank, operations in enumerate(run.operations):
        sent = bytes_sent(operations) + sum(round(shares.get(op.kind, 0) * op.bytes) for op in operations)
        if sent > (n - 1) * (blocks * (block + 4) + 16):
            due = f"{n - 1} times {largest} numbers of one byte with a scale for each {block}"
            return f"rank {rank} sent {sent:,} bytes; {due} are {(n - 1) * (largest + 4 * blocks):,}"
    return None


def exchange(harness, by, says, oracle, *more):
    """The specification of what ranks do together with integers."""
    right = all_of(is_near(oracle), *more)
    lean = all_of(right, sends_a_byte_a_number, stays(oracle))

    @of(harness=harness, built_from=(LIBRARY, by))
    def specification(check):
        even = check.run(size=128 * check.world_size, block=32, seed=1)
        uneven = check.run(size=1001, block=64, seed=2, kind="scales", ranks=4)
        cases = (50, 16, 1), (2, 8, 3), (9, 1, 2)
        others = [check.run(size=size, block=block, seed=3, ranks=n) for size, block, n in cases]
        check.that(says, even, right, weight=2)
        check.that("where N does not divide, a single rank, fewer numbers than ranks", [uneven, *others], right)
        check.that("a byte for each number is sent, and scales; what was given stays", [even, uneven], lean, weight=2)
        check.on_nccl(even, right)
        draw = yield
        case = {"block": draw.randint(8, 48), "seed": draw.randrange(MANY)}
        several = check.runs(ranks=(1, 2, 3, 4, 6), size=draw.randint(200, 400), **case)
        few = [check.run(size=draw.randint(1, n - 1), ranks=n, **case) for n in (3, 4)]
        few.append(check.run(size=60, ranks=3, kind="half", **case))
        check.that("1 to 4 ranks and 6, fewer numbers than ranks, and zeros", [*several, *few], lean, weight=3)

    return specification


same = "every number is within half a step, and the same bits on every rank"
gather = exchange(gather_once, "all_gather", same, gathered, same_bits("got", "the vector"))
reduce = exchange(reduce_once, "all_to_all", "the sum is within half a step of each part", summed)
