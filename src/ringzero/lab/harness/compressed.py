"""Gradients that travel in a few bytes: the largest k, signs, two thin matrices; and a memory of what was left out."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from ringzero.lab.harness import returned
from ringzero.lab.harness.sharded import numbers
from ringzero.lab.payloads import payloads
from ringzero.lab.unaided import UNSYNCED, unaided


def vector_of(kind: str, size: int, seed: int, rank: int) -> torch.Tensor:
    """A rank's gradient, on the CPU, in fp32. No two magnitudes of it are equal, unless it is "zeros".

    "normal"; "negative", with the largest all below 0; "alike", where the largest of all ranks are in the same places;
    "large", whose numbers grow from 0.001 to 1,000. Of "zeros" every second one is -0.0, which is not below 0; with
    "zeros on odd" odd ranks have these.
    """
    x = numbers((size,), 1000 * seed + rank)
    if kind == "zeros" or (kind == "zeros on odd" and rank % 2):
        return torch.tensor([0.0, -0.0], device="cpu").repeat(-(-size // 2))[:size]
    if kind == "negative":
        return torch.where(x > 0, 0.5 * x, 2 * x - 3)
    if kind == "alike":
        return x + 10 * torch.arange(size, device="cpu").remainder(3).eq(1)
    if kind == "large":
        return x * torch.logspace(-3, 3, max(size, 1), device="cpu")[:size]
    return x


def top_k(
    top_k_mean: Callable, *, size: int, k: int, seed: int, kind: str = "normal", twice: bool = False
) -> dict:  # fmt: skip
    """What ``top_k_mean(vector, k)`` returns and sends; ``twice``: after it, it is called again with the same size.

    ``new`` says whether the vector and what is returned have each memory of their own, ``again`` whether the second
    call returned memory of the first.
    """
    vector = vector_of(kind, size, seed, dist.get_rank()).to(torch.get_default_device())
    before = vector.clone()
    with unaided(*UNSYNCED), payloads() as sent:
        found = top_k_mean(vector, k)
        mean, mine = returned.two_tensors("top_k_mean", "(mean, mine)", found)
        later = top_k_mean(-vector, k) if twice else ()
    places = _places((vector, *found))
    return {
        "mean": mean,
        "mine": mine,
        "sent": sent,
        "kept": torch.equal(vector, before),
        "new": len(places) in (0, 3),
        "again": bool(places & _places(later)),
    }


def _places(tensors):
    """Where their memory begins."""
    return {each.untyped_storage().data_ptr() for each in tensors if each.numel()}


# Compressors of the lab's own, so that a memory is checked alone: what a rank keeps of its vector.


def largest(k: int) -> Callable:
    """Keep the k numbers of the largest magnitude."""

    def keep(x):
        kept = torch.zeros_like(x)
        places = x.abs().topk(min(k, x.numel())).indices
        kept[places] = x[places]
        return kept

    return keep


def coarse(x: torch.Tensor) -> torch.Tensor:
    """Keep the sign of each number, times the mean magnitude."""
    return torch.where(x >= 0, 1.0, -1.0) * x.abs().mean()


def keeps(kind: str, k: int) -> Callable:
    return coarse if kind == "signs" else largest(k)


def feed_back(
    make: Callable, *, size: int, k: int, seed: int, steps: int = 5, kind: str = "largest", rows: int | None = None,
    idle: int | None = None,
) -> dict:  # fmt: skip
    """``mean(gradient)`` of what ``make(compress)`` made, step after step: what it compressed, what it returned.

    ``compress(vector)`` returns ``(mean, mine)``. Another layer of the same size has a memory of its own. ``kind`` is
    "largest" or "signs", which say what is kept; or "downhill": then the k largest are, and the gradients are those of
    descent to the rank's target, whose end is reported as ``x``. With ``rows`` the gradients are matrices. In the step
    ``idle``, counted from 0, odd ranks' gradients are zeros.
    """
    rank, ranks, here, keep = dist.get_rank(), dist.get_world_size(), torch.get_default_device(), keeps(kind, k)
    compressed, means, kept, x = [], [], True, torch.zeros(size)
    shape = (size,) if rows is None else (rows, -1)
    target = target_of(size, seed, rank, ranks).to(here)

    def compress(vector):
        compressed.append(vector.detach().clone().reshape(-1))
        mine = keep(vector.reshape(-1)).reshape(vector.shape)
        mean = mine.clone()
        dist.all_reduce(mean)
        return mean / ranks, mine

    with unaided(*UNSYNCED), payloads():
        feedback, other = make(compress), make(lambda vector: 2 * (keep(vector.reshape(-1)).reshape(vector.shape),))
        for step in range(steps):
            gradient = x - target
            if kind != "downhill":
                of_step = "zeros on odd" if step == idle else "normal"
                gradient = vector_of(of_step, size, seed + 50 * step, rank).to(here)
            gradient = gradient.reshape(shape)
            before = gradient.clone()
            other.mean(-gradient)
            mean = returned.tensor("mean", feedback.mean(gradient)).reshape(-1)
            means.append(mean)
            x = x - RATE * mean
            kept = kept and torch.equal(gradient, before)
            gradient.zero_()  # the caller uses its memory again
    return {"compressed": compressed, "means": means, "kept": kept, "x": x}


RATE = 0.05  # of descent
TUGS, COMMON = 1.0, 0.5  # what pulls the ranks apart, and what all agree on


def target_of(size: int, seed: int, rank: int, ranks: int) -> torch.Tensor:
    """The point that a rank's loss ½|x − target|² pulls to. What pulls ranks apart is larger and has the mean 0."""
    apart = torch.stack([numbers((size,), 1000 * seed + r) for r in range(ranks)])
    apart = TUGS * (apart - apart.mean(0))
    return apart[rank] + COMMON * numbers((size,), 1000 * seed + 999)


def vote(
    majority: Callable, pack_signs: Callable, unpack_signs: Callable, *, size: int, seed: int, kind: str = "normal"
) -> dict:
    """What is packed, unpacked and voted of this rank's vector; and what was sent."""
    vector = vector_of(kind, size, seed, dist.get_rank()).to(torch.get_default_device())
    before = vector.clone()
    with unaided(*UNSYNCED), payloads() as sent:
        packed = returned.tensor("pack_signs", pack_signs(vector))
        given = packed_of(vector).to(vector.device)
        unpacked = returned.tensor("unpack_signs", unpack_signs(given, size))
        before_the_vote = len(sent)
        voted = returned.tensor("majority", majority(vector))
    return {
        "packed": packed,
        "unpacked": unpacked,
        "voted": voted,
        "sent": sent,
        "before_the_vote": before_the_vote,
        "kept": torch.equal(vector, before),
        "packed_kept": torch.equal(given.cpu(), packed_of(before)),
    }


def packed_of(vector: torch.Tensor) -> torch.Tensor:
    """Number i of ``vector`` is bit i % 8 of byte i // 8, and 1 unless it is below 0; on the CPU."""
    bits = (vector.cpu() >= 0).tolist() + [False] * (-vector.numel() % 8)
    return torch.tensor(
        [sum(bit << j for j, bit in enumerate(bits[i : i + 8])) for i in range(0, len(bits), 8)],
        dtype=torch.uint8,
        device="cpu",
    )


def matrix_of(shape: tuple, seed: int, step: int, rank: int, kind: str) -> torch.Tensor:
    """A rank's gradient of a matrix, on the CPU. "steady": the same in every step, with few large directions.

    "zeros"; "zeros on odd" ranks, always; or "zeros first", on all ranks in the first step, and then "steady".
    """
    rows, columns = shape
    if kind == "zeros" or (kind == "zeros on odd" and rank % 2) or (kind == "zeros first" and step == 0):
        return torch.zeros(shape, device="cpu")
    if kind in ("steady", "zeros first"):
        step, least = 0, min(shape)
        left, right = numbers((rows, least), 100 * seed), numbers((least, columns), 100 * seed + 1)
        sizes = torch.tensor([0.3**i for i in range(least)], device="cpu")
        return (left * sizes) @ right + 0.01 * numbers(shape, 100 * seed + 7 + rank)
    return numbers(shape, 1000 * seed + 10 * step) + 0.5 * numbers(shape, 1000 * seed + 500 + 10 * step + rank)


def start_of(shape: tuple, r: int, seed: int) -> torch.Tensor:
    """The first thin matrix, columns × r, the same on all ranks."""
    return numbers((shape[1], r), 77 + 1000 * seed)


def power(
    make: Callable, *, shape: tuple, r: int, seed: int, steps: int = 3, kind: str = "normal", beside: bool = False
) -> dict:
    """``mean(matrix)`` of what ``make(q)`` made, step after step; the tensors ``sent`` and how many after each step.

    ``beside``: another one is made, too, and has its steps in turn with the first.
    ``kept`` says whether all matrices that were given stayed as they were, ``q_kept`` whether the first Q did.
    """
    rank, here = dist.get_rank(), torch.get_default_device()
    q, means, sent_after, kept = start_of(shape, r, seed).to(here), [], [], True
    with unaided(*UNSYNCED), payloads() as sent:
        compressor = make(q)
        other = make(q.clone()) if beside else None
        for step in range(steps):
            if other is not None:
                other.mean(matrix_of(shape, seed + 1000, step, rank, kind).to(here))
            matrix = matrix_of(shape, seed, step, rank, kind).to(here)
            before = matrix.clone()
            means.append(returned.tensor("mean", compressor.mean(matrix)))
            kept = kept and torch.equal(matrix, before)
            sent_after.append(len(sent))
    q_kept = torch.equal(q.cpu(), start_of(shape, r, seed))
    return {"means": means, "sent": sent, "sent_after": sent_after, "kept": kept, "q_kept": q_kept}
