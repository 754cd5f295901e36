"""Graphs of ranks, weights with which neighbours are mixed, and rounds of gossip with these weights."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from ringzero.lab.harness import returned
from ringzero.lab.harness.sharded import numbers
from ringzero.lab.payloads import payloads
from ringzero.lab.unaided import UNSYNCED, unaided

Weights = list[list[float]]


def graph(kind: str, n: int) -> list[list[int]]:
    """The neighbours of each of n ranks, in order.

    ``kind`` is "ring", "path", "star", "complete", "kite" (a ring, and rank 0 beside everyone), "wheels" (two rings
    that nothing joins: the first half of the ranks, the rest) or "alone" (no neighbours).
    """
    edges = {
        "ring": [(r, (r + 1) % n) for r in range(n)],
        "path": [(r, r + 1) for r in range(n - 1)],
        "star": [(0, r) for r in range(1, n)],
        "complete": [(r, s) for r in range(n) for s in range(r)],
        "kite": [(r, (r + 1) % n) for r in range(n)] + [(0, r) for r in range(1, n)],
        "wheels": [
            (start + r, start + (r + 1) % size)
            for start, size in ((0, n // 2), (n // 2, n - n // 2))
            for r in range(size)
        ],
        "alone": [],
    }[kind]
    return [sorted({s for edge in edges if r in edge for s in edge} - {r}) for r in range(n)]


def weights(kind: str, n: int) -> Weights:
    """Row r says how much rank r takes of whom; each row's sum is 1.

    "half left": half of its own and half of its left neighbour's. "other for each": of its own and of both neighbours
    on a ring, in parts that no other rank has. "swap": all of its left neighbour's. "skip": half of that of the rank
    two to the left, where there are at least 3. "away": 1.5 times its own less half of its left neighbour's. "faint":
    very little of its left neighbour's. Else a ``graph`` with Metropolis-Hastings weights.
    """
    owns = {"half left": 0.5, "swap": 0.0, "skip": 0.5, "away": 1.5, "faint": 1 - 2.0**-12}
    if kind in owns:
        own, step = owns[kind], 2 if kind == "skip" and n > 2 else 1
        return _rows(
            n, {(r, s): own * (r == s) + (1 - own) * (s == (r - step) % n) for r in range(n) for s in range(n)}
        )
    if kind == "other for each":
        parts = {(r, s): 1.0 + 3 * r + 5 * s for r, near in enumerate(graph("ring", n)) for s in [r, *near]}
        sums = [sum(part for (row, _), part in parts.items() if row == r) for r in range(n)]
        return _rows(n, {(r, s): part / sums[r] for (r, s), part in parts.items()})
    return _metropolis(graph(kind, n))


def _rows(n, entries):
    return [[float(entries.get((r, s), 0.0)) for s in range(n)] for r in range(n)]


def _metropolis(neighbours):
    n, degree = len(neighbours), [len(near) for near in neighbours]
    entries = {(r, s): 1 / (1 + max(degree[r], degree[s])) for r in range(n) for s in neighbours[r]}
    return _rows(n, entries | {(r, r): 1 - sum(entries[r, s] for s in neighbours[r]) for r in range(n)})


def mix(metropolis: Callable, gap: Callable, *, kind: str, n: int) -> dict:
    """What ``metropolis`` says of a ``graph``, and ``gap`` of the ``weights`` of that name.

    ``changed`` is the name of what either of them changed of what it was given, or None.
    """
    with unaided(*UNSYNCED, "ringzero.costs"):
        found = changed = None
        if kind not in ("half left", "swap", "skip", "other for each"):
            neighbours = graph(kind, n)
            found = metropolis(neighbours)
            found = found.tolist() if hasattr(found, "tolist") else found
            changed = "neighbours" if neighbours != graph(kind, n) else None
        given = weights(kind, n)
        width = gap(given)
        return {"weights": found, "gap": width, "changed": "weights" if given != weights(kind, n) else changed}


def rounds(
    gossip: Callable, *, kind: str, seed: int, shape: tuple = (37,), precision: str = "float32", rounds: int = 1
) -> dict:
    """``x = gossip(x, weights)``, round after round: x before and after each, and the tensors ``sent``.

    ``kept`` says whether the x that was given stayed as it was, ``weights_kept`` whether the weights did, ``new``
    whether what came back has memory of its own, and ``again`` whether it has that of an earlier round.
    """
    rank, n, here = dist.get_rank(), dist.get_world_size(), torch.get_default_device()
    x, kept, new = value_of(seed, rank, shape, precision).to(here), True, True
    values, mixing, results = [x.clone()], weights(kind, n), []
    with unaided(*UNSYNCED), payloads() as sent:
        for _ in range(rounds):
            before = x.clone()
            result = gossip(x, mixing)
            mixed = returned.tensor("gossip", result)
            kept = kept and torch.equal(x, before)
            new = new and result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
            results.append(result)
            x = mixed
            values.append(x.clone())
    again = len({result.untyped_storage().data_ptr() for result in results}) < rounds
    weights_kept = mixing == weights(kind, n)
    return {"values": values, "sent": sent, "kept": kept, "weights_kept": weights_kept, "new": new, "again": again}


def value_of(seed: int, rank: int, shape: tuple, precision: str) -> torch.Tensor:
    """What a rank begins with, on the CPU."""
    return (1 + rank + numbers(shape, 100 * seed + rank)).to(getattr(torch, precision))
