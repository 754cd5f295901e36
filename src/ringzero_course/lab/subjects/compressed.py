"""Lab 08, its second half: what compresses a gradient, and what is sent in a step."""

import math

import torch
import torch.distributed as dist

from ringzero_course.lab.claims import gives
from ringzero_course.lab.claims.collectives import all_of
from ringzero_course.lab.claims.oracle import in_one_process, is_right, same_bits, stays
from ringzero_course.lab.harness import returned
from ringzero_course.lab.harness.training import numbers
from ringzero_course.lab.specification import MANY, of
from ringzero_course.lab.subjects.plain import on_paper
from ringzero_course.lab.subjects.unsynced import gradient, hands_over, on_ranks

# ---- 5. top_k_mean


def largest(x: torch.Tensor, k: int) -> torch.Tensor:
    """x where its k largest magnitudes are, zeros elsewhere."""
    flat = x.reshape(-1)
    places = flat.abs().topk(min(k, x.numel())).indices
    return torch.zeros_like(flat).scatter(0, places, flat[places]).view_as(x)


@on_ranks
def top_k(top_k_mean, *, size, k, seed, quiet=()):
    vector = gradient((size,), seed, dist.get_rank(), quiet=quiet).to(torch.get_default_device())
    mean, mine = returned.two_tensors("top_k_mean", "(mean, mine)", top_k_mean(vector, k))
    return {"mean": [mean], "mine": [mine], "given": [vector]}


@in_one_process
def kept(n, *, size, k, seed, quiet=()):
    vectors = [gradient((size,), seed, rank, quiet=quiet) for rank in range(n)]
    mean = torch.stack([largest(vector, k) for vector in vectors]).mean(0)
    return [{"mean": {"mean": mean}, "mine": {"mine": largest(v, k)}, "given": {"the vector": v}} for v in vectors]


@of(harness=top_k, built_from=("all_gather",))
def top_k_mean(check):
    keeps = is_right(kept, "mine", hint="; kept are the k largest magnitudes, with their signs")
    right = all_of(keeps, is_right(kept, "mean", hint="; it is the sum of what the ranks kept, over their number"))
    sends = hands_over("bytes", lambda run: 8 * min(run.option("k"), run.option("size")))
    whole = all_of(right, sends, stays(kept))

    some, three = check.run(size=200, k=20, seed=1), check.run(size=101, k=60, seed=2, ranks=3)
    ends = [check.run(size=50, k=7, seed=4, ranks=1), check.run(size=5, k=9, seed=5, ranks=3)]
    zeros = [check.run(size=14, k=4, seed=6, quiet=(who,), ranks=3) for who in ("all", "odd")]
    check.that("mine has the k numbers of the largest magnitude", [some, three], keeps)
    check.that("mean is the mean of what was kept", [some, three], right)
    check.that("a single rank; k larger than the vector", ends, right)
    check.that("nothing but zeros, on all ranks or on some", zeros, right)
    check.that("8 bytes for each number that is kept; the vector stays", [some, three, *ends, *zeros], whole, weight=2)
    check.on_nccl(three, right)
    draw = yield
    size, seed = draw.randrange(100, 400), draw.randrange(MANY)
    several = check.runs(ranks=(1, 2, 3, 5), size=size, k=lambda n: 10 * n + 1, seed=seed)
    few = [check.run(size=64, k=1, seed=seed), check.run(size=9, k=6, seed=seed, quiet=("odd",), ranks=3)]
    check.that("1 to 5 ranks; a single number, and zeros", [*several, *few], whole, weight=3)


# ---- 6. ErrorFeedback. What compresses is the lab's own, so that a memory is checked alone


@on_ranks
def feed_back(make, *, shape, k, seed, steps=5, quiet=()):
    """What was compressed and returned in each step. Another layer of that shape has a memory of its own."""
    rank, here = dist.get_rank(), torch.get_default_device()
    report = {"sums": [], "means": [], "given": []}

    def compress(x):
        report["sums"].append(x.detach().clone())
        mine = largest(x, k)
        mean = mine.clone()
        dist.all_reduce(mean)
        return mean / dist.get_world_size(), mine

    feedback, other = make(compress), make(lambda x: (x, 0.5 * x))
    for step in range(steps):
        mine = gradient(shape, seed, rank, step, quiet).to(here)
        other.mean(-mine)
        report["means"].append(returned.tensor("mean", feedback.mean(mine)))
        report["given"].append(mine.clone())
        mine.zero_()  # the caller uses its memory again
    return report


@in_one_process
def fed_back(n, *, shape, k, seed, steps=5, quiet=()):
    memory = [torch.zeros(shape)] * n
    right = [{"sums": {}, "means": {}, "given": {}} for _ in range(n)]
    for step in range(steps):
        gradients = [gradient(shape, seed, rank, step, quiet) for rank in range(n)]
        sums = [mine + left for mine, left in zip(gradients, memory, strict=True)]
        sent = [largest(x, k) for x in sums]
        memory = [x - mine for x, mine in zip(sums, sent, strict=True)]
        for of_rank, x, mine in zip(right, sums, gradients, strict=True):
            of_rank["sums"][f"in step {step + 1} what is compressed"] = x
            of_rank["means"][f"in step {step + 1} what is returned"] = torch.stack(sent).mean(0)
            of_rank["given"][f"in step {step + 1} the gradient"] = mine
    return right


@of(harness=feed_back, built_from=("all_reduce",))
def error_feedback(check):
    adds = is_right(fed_back, "sums", hint="; it is the gradient and all that was left out before")
    returns = is_right(fed_back, "means", hint="; it is the mean that compress returns")
    sends = hands_over("numbers", lambda run: run.option("steps", 5) * math.prod(run.option("shape")))
    whole = all_of(adds, returns, sends, stays(fed_back))

    five, alone = check.run(shape=(60,), k=6, seed=1), check.run(shape=(30,), k=2, seed=3, ranks=1)
    matrix = check.run(shape=(6, 7), k=5, seed=6, quiet=("", "", "odd"), ranks=3)
    check.that("each step compresses what was left out before, too", five, adds, weight=2)
    check.that("a matrix, on 3 ranks, and a step in which odd ranks have zeros; a single rank", [matrix, alone], adds)
    check.that("it returns the mean of what was sent; the gradient stays", [five, matrix], whole)
    check.on_nccl(matrix, adds)
    draw = yield
    case = {"seed": draw.randrange(MANY), "steps": draw.randrange(9, 14), "shape": (draw.randrange(3, 12), 3)}
    check.that("1 to 5 ranks, more steps", check.runs(ranks=(1, 2, 3, 5), k=lambda n: n, **case), whole, weight=3)


# ---- 7. majority


def packed_of(vector: torch.Tensor) -> torch.Tensor:
    bits = torch.nn.functional.pad((vector.cpu() >= 0).long(), (0, -vector.numel() % 8)).view(-1, 8)
    return (bits * 2 ** torch.arange(8, device="cpu")).sum(1).to(torch.uint8)


@on_ranks
def vote(majority, pack_signs, unpack_signs, *, size, seed, quiet=()):
    vector = gradient((size,), seed, dist.get_rank(), quiet=quiet).to(torch.get_default_device())
    bits = packed_of(vector).to(vector.device)
    packed = returned.tensor("pack_signs", pack_signs(vector)).view(torch.uint8)  # numbers of other types have more
    unpacked = returned.tensor("unpack_signs", unpack_signs(bits, size), torch.float32)
    voted = returned.tensor("majority", majority(vector), torch.float32)
    return {"packed": [packed], "unpacked": [unpacked], "voted": [voted], "given": [vector, bits]}


@in_one_process
def counted(n, *, size, seed, quiet=()):
    vectors = [gradient((size,), seed, rank, quiet=quiet) for rank in range(n)]
    signs = [torch.where(vector >= 0, 1.0, -1.0) for vector in vectors]
    voted, packed = torch.where(sum(signs) >= 0, 1.0, -1.0), [packed_of(vector).double() for vector in vectors]
    return [
        {"packed": {"the packed": bits}, "unpacked": {"the unpacked": sign}, "voted": {"the vote": voted}}
        | {"given": {"the vector": vector, "the packed vector": bits}}
        for vector, sign, bits in zip(vectors, signs, packed, strict=True)
    ]


@of(harness=vote, uses=("pack_signs", "unpack_signs"), built_from=("all_gather",))
def majority(check):
    below = "; bit i % 8 of byte i // 8 is 1 unless number i is below 0, which -0.0 is not; bits left over are 0"
    packs = all_of(is_right(counted, "packed", hint=below), is_right(counted, "unpacked"))
    votes = is_right(counted, "voted", hint="; where as many ranks say 1 as -1 it is 1")
    sends = hands_over("bytes", lambda run: math.ceil(run.option("size") / 8))
    whole = all_of(votes, sends, stays(counted))

    uneven, alone = check.run(size=61, seed=2, ranks=3), check.run(size=3, seed=4, ranks=1)
    every = [check.run(size=64, seed=1), uneven, check.run(size=19, seed=3, quiet=("all",)), alone]
    check.that("eight signs in a byte, and back again; zeros, and where 8 does not divide", every, packs, weight=2)
    check.that("the majority, with ties", every, votes, weight=2)
    check.that("a bit for a number is sent; what is given stays", every, whole, weight=2)
    check.on_nccl(uneven, votes)
    draw = yield
    several = check.runs(ranks=(1, 2, 3, 5, 7), size=lambda n: draw.randrange(80, 130), seed=draw.randrange(MANY))
    several.append(check.run(size=1, seed=draw.randrange(MANY)))
    check.that("1 to 5 ranks and 7, other sizes", several, all_of(packs, whole), weight=3)


# ---- 8. PowerSGD


@on_ranks
def power(make, *, shape, r, seed, steps=3, quiet=()):
    """What comes of each step."""
    here, means = torch.get_default_device(), []
    q = numbers((shape[1], r), seed).to(here)
    compressor = make(q)
    for step in range(steps):
        matrix = gradient(shape, seed, dist.get_rank(), step, quiet).to(here)
        means.append(returned.tensor("mean", compressor.mean(matrix)))
    return {"means": means, "given": [matrix, q]}


@in_one_process
def approximated(n, *, shape, r, seed, steps=3, quiet=()):
    """P Qᵀ of each step, from the mean of all ranks' matrices, in fp64."""
    first = q = numbers((shape[1], r), seed).double()
    means = {}
    for step in range(steps):
        matrices = [gradient(shape, seed, rank, step, quiet) for rank in range(n)]
        mean = torch.stack(matrices).double().mean(0)
        p = torch.linalg.qr(mean @ q).Q
        q = mean.T @ p
        means[f"in step {step + 1} the approximate matrix"] = p @ q.T
    return [{"means": means, "given": {"the matrix": matrix, "the first q": first}} for matrix in matrices]


@of(harness=power, built_from=("all_reduce",))
def power_sgd(check):
    # Another way to orthonormal columns rounds in another way.
    right = is_right(approximated, "means", hint="; P is summed, then orthonormal, and Q is kept", tolerance=3e-3)
    sends = hands_over("numbers", lambda run: run.option("steps", 3) * run.option("r") * sum(run.option("shape")))
    whole = all_of(right, sends, same_bits("means", "the matrix"), stays(approximated))

    three, alone = check.run(shape=(12, 9), r=2, seed=1), check.run(shape=(6, 4), r=1, seed=4, ranks=1)
    wide, odd = (check.run(shape=(5, 14), r=3, seed=2, quiet=quiet, ranks=3) for quiet in ((), ("odd",) * 3))
    # All columns that there can be: then what comes after zeros is exact, whatever a program makes of Q there.
    zeros = check.run(shape=(4, 6), r=4, seed=6, quiet=("", "all"))
    check.that("three steps are those of one process", three, right, weight=2)
    check.that("a wide matrix on 3 ranks; a single rank", [wide, alone], right)
    check.that("zeros on some ranks; a step of zeros on all, and then a matrix", [odd, zeros], right)
    check.that(
        "r(m + n) numbers are sent in a step; all have the same bits; M and the first Q stay", [three, wide], whole
    )
    check.on_nccl(wide, right)
    draw = yield
    seed, shape = draw.randrange(MANY), (draw.randrange(8, 14), 7)
    several = check.runs(ranks=(1, 2, 3, 5), shape=shape, r=lambda n: min(n, 3), seed=seed, steps=draw.randrange(5, 8))
    full = check.runs(ranks=(2, 3), shape=(3, draw.randrange(6, 12)), r=3, seed=seed, quiet=("all",))
    check.that("1 to 5 ranks, more steps", several, whole, weight=3)
    check.that("r as large as the matrix allows, zeros at first", full, whole)


# ---- 9. bytes_a_step

METHODS = ("DDP", "local SGD", "gossip", "top-k", "signs", "PowerSGD")


def sent_in_a_step(method, n, rows, columns, h=1, degree=2, k=0, r=1):
    """An all-reduce of B bytes sends 2(n-1)/n B, an all-gather to which each rank gives B bytes (n-1) B."""
    whole, reduced, gathered = 4 * rows * columns, 2 * (n - 1) / n, n - 1
    return {
        "DDP": reduced * whole,
        "local SGD": reduced * whole / h,
        "gossip": degree * whole,
        "top-k": gathered * 8 * k,
        "signs": gathered * math.ceil(rows * columns / 8),
        "PowerSGD": reduced * 4 * r * (rows + columns),
    }[method]


@on_paper(gives("the number of bytes", sent_in_a_step))
def bytes_a_step():
    draw = yield {
        "DDP and local SGD": [("DDP", 4, 30, 20), ("local SGD", 5, 30, 20, 10)],
        "gossip with 3 neighbours, and PowerSGD": [("gossip", 8, 7, 9, 1, 3), ("PowerSGD", 5, 30, 20, 1, 2, 0, 2)],
        "top-k, and signs of 63 numbers": [("top-k", 5, 100, 100, 1, 2, 100), ("signs", 3, 63, 1)],
        "7 ranks: not all of it is whole": [(method, 7, 11, 5, 9, 3, 2, 4) for method in METHODS],
        "a single rank sends nothing": [(method, 1, 10, 10, 1, 0, 3) for method in METHODS],
    }
    options = draw.randrange(2, 50), draw.randrange(3, 7), draw.randrange(5, 50), 3
    size = 2 * draw.randrange(200, 999) + 1, 2 * draw.randrange(20, 99) + 1
    ranks = 2, 3, draw.randrange(100, 2000)
    yield {"many ranks, and other options": [(method, n, *size, *options) for method in METHODS for n in ranks]}
