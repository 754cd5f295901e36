"""Matrices in sharded vectors: which there are, where their pieces lie, and how a step brings the pieces together.

``muon.py`` says what for, and what each ``exchange`` sends.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from math import prod
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import Embedding, EmbeddingBag, Module, Parameter

from ringzero.collectives import all_gather, all_to_all
from ringzero.zero.sharding import Layout


def split(
    named: Mapping[str, Parameter], embeddings: Collection[str] = (), others_names: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Names of the parameters that Muon steps, and of those that AdamW does, both in the order of ``named``.

    Muon steps matrices (2-D) that are neither ``embeddings`` (see ``embeddings_of``) nor ``others_names``.

    >>> named = {"embed": torch.empty(9, 4), "hidden": torch.empty(4, 4), "bias": torch.empty(4)}
    >>> split(named, embeddings={"embed"})
    (['hidden'], ['embed', 'bias'])
    """
    for_muon = [n for n, p in named.items() if p.dim() == 2 and n not in embeddings and n not in others_names]
    return for_muon, [name for name in named if name not in for_muon]


def embeddings_of(module: Module, named: Mapping[str, Parameter]) -> set[str]:
    """Names of the parameters among ``named`` that an embedding in ``module`` uses, also where a head shares them."""
    weights = {inner.weight for inner in module.modules() if isinstance(inner, Embedding | EmbeddingBag)}
    return {name for name, parameter in named.items() if parameter in weights}


@dataclass(frozen=True)
class Matrix:
    """Where a matrix lies in a list of vectors: in which one, and as which ``(start, stop)`` of each rank's shard.

    The pieces, by rank, end to end, are the flattened matrix. ``owner`` is the rank that orthogonalises it.
    """

    vector: int
    name: str
    shape: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    owner: int = -1

    @cached_property
    def sizes(self) -> list[int]:
        """Elements on each rank."""
        return [stop - start for start, stop in self.places]

    @cached_property
    def is_cut(self) -> bool:
        return max(self.sizes) < prod(self.shape)

    @property
    def flops(self) -> int:
        """Of one iteration: of three products, two have rows * rows * columns multiplications, one rows ** 3."""
        rows, columns = min(self.shape), max(self.shape)
        return 2 * rows * rows * (2 * columns + rows)

    def piece(self, shards: Sequence[torch.Tensor], rank: int) -> torch.Tensor:
        """This matrix in ``shards``, those of ``rank``: a 1-D view."""
        return shards[self.vector][slice(*self.places[rank])]


@lru_cache(maxsize=256)
def matrices_of(layouts: tuple[Layout, ...]) -> tuple[Matrix, ...]:
    """The parameters that lie in vectors of these ``layouts``, with owners.

    A matrix that is not cut has its holder as owner. The others go, those with most flops first, to the rank that has
    least to do; among equals to the rank with the largest piece.

    >>> [(each.name, each.places, each.owner) for each in matrices_of((Layout((("a", (2, 3)), ("b", (1, 2))), 2),))]
    [('a', ((0, 4), (0, 2)), 0), ('b', ((0, 0), (2, 4)), 1)]
    """
    ranks = range(layouts[0].ranks)
    found = []
    for number, layout in enumerate(layouts):
        places = {name: [(0, 0)] * len(ranks) for name, _ in layout.parameters}
        for rank in ranks:
            pieces = layout.pieces(rank)
            ends = accumulate(stop - start for _, start, stop in pieces)
            for (name, start, stop), end in zip(pieces, ends, strict=True):
                places[name][rank] = (end - (stop - start), end)
        found += [Matrix(number, name, shape, tuple(places[name])) for name, shape in layout.parameters]
    load, owners = [0] * len(ranks), {}
    for matrix in sorted(found, key=lambda matrix: (matrix.is_cut, -matrix.flops)):  # alike on all ranks
        sizes = matrix.sizes
        candidates = ranks if matrix.is_cut else [sizes.index(max(sizes))]
        owners[matrix] = min(candidates, key=lambda rank: (load[rank], -sizes[rank]))
        load[owners[matrix]] += matrix.flops
    return tuple(replace(matrix, owner=owners[matrix]) for matrix in found)


def uncut(named: Mapping[str, Parameter], ranks: int, each_alone: bool = False) -> list[tuple[list[str], int | None]]:
    """Which matrices lie in a vector together so that no shard cuts one, for ``exchange="owner"``: ``(names, owner)``.

    As many matrices of one shape as there are ranks fill one vector, each a shard. What is left is alone in a vector,
    which its owner has whole, and each owner has about as much to do; with ``each_alone`` all are.

    >>> uncut({name: torch.empty(rows, 4) for name, rows in (("a", 8), ("b", 4), ("c", 4), ("d", 4))}, ranks=2)
    [(['b', 'c'], None), (['a'], 0), (['d'], 1)]
    """
    waiting: dict[Any, list[str]] = {}
    found: list[tuple[list[str], int | None]] = []
    for name, parameter in named.items():
        kind = parameter.shape, parameter.dtype
        waiting.setdefault(kind, []).append(name)
        if len(waiting[kind]) == ranks and not each_alone:
            found.append((waiting.pop(kind), None))
    rest = [Layout(((name, tuple(named[name].shape)),), ranks) for names in waiting.values() for name in names]
    return found + [([matrix.name], matrix.owner) for matrix in (matrices_of(tuple(rest)) if rest else ())]


Iterate = Callable[[torch.Tensor], torch.Tensor]  # Newton-Schulz, of a matrix


def by_gather(updates: list[torch.Tensor], cut: list[Matrix], layouts: Sequence[Layout], group: dist.ProcessGroup,
              iterate: Iterate) -> None:  # fmt: skip
    """Replace the ``cut`` matrices in ``updates``, this rank's shards (1-D), by orthogonal ones.

    All ranks get all shards of a vector, and each orthogonalises the matrices that it has a piece of.
    """
    rank = group.rank()
    for number in sorted({matrix.vector for matrix in cut}):
        whole = updates[number].new_empty(layouts[number].numel)
        whole[layouts[number].shard(rank)] = updates[number]
        views = layouts[number].views(all_gather(whole, group=group))
        for matrix in cut:
            if matrix.vector == number and matrix.sizes[rank]:
                orthogonal = iterate(views[matrix.name]).reshape(-1)
                matrix.piece(updates, rank).copy_(orthogonal.split(matrix.sizes)[rank])


def by_all_to_all(updates: list[torch.Tensor], cut: list[Matrix], layouts: Sequence[Layout], group: dist.ProcessGroup,
                  iterate: Iterate) -> None:  # fmt: skip
    """Replace the ``cut`` matrices in ``updates``, this rank's shards (1-D), by orthogonal ones.

    One all-to-all brings the pieces of all matrices to the matrices' owners, and a second one takes the orthogonal
    pieces back. So a rank sends two messages to each other rank, however many matrices there are.
    """
    rank, ranks = group.rank(), range(group.size())
    cut = sorted(cut, key=lambda matrix: matrix.owner)
    mine = [matrix for matrix in cut if matrix.owner == rank]
    outgoing = [sum(matrix.sizes[rank] for matrix in cut if matrix.owner == owner) for owner in ranks]
    incoming = [sum(matrix.sizes[sender] for matrix in mine) for sender in ranks]

    sent = torch.cat([matrix.piece(updates, rank) for matrix in cut])
    arrived = all_to_all(sent.new_empty(sum(incoming)), sent, incoming, outgoing, group=group)
    from_ranks = arrived.split([matrix.sizes[sender] for sender in ranks for matrix in mine])
    results = []
    for i, matrix in enumerate(mine):
        whole = torch.cat(from_ranks[i :: len(mine)]).view(matrix.shape)
        results.append(iterate(whole).reshape(-1).split(matrix.sizes))
    answer = torch.cat([sent.new_empty(0), *(result[receiver] for receiver in ranks for result in results)])
    all_to_all(sent, answer, outgoing, incoming, group=group)
    for matrix, piece in zip(cut, sent.split([matrix.sizes[rank] for matrix in cut]), strict=True):
        matrix.piece(updates, rank).copy_(piece)


def by_owner(updates: list[torch.Tensor], cut: list[Matrix], layouts: Sequence[Layout], group: dist.ProcessGroup,
             iterate: Iterate) -> None:  # fmt: skip
    """There is nothing to do: ``attach`` has refused cut matrices."""
    raise AssertionError(f"{[matrix.name for matrix in cut]} are cut")


EXCHANGES = {"all_to_all": by_all_to_all, "gather": by_gather, "owner": by_owner}
