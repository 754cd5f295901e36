"""Who owns what: parameters laid end to end in one flat vector, and the vector cut among the ranks.

>>> layout = Layout((("weight", (2, 3)), ("bias", (2,))), ranks=3)
>>> layout.shard(0), layout.shard(1), layout.shard(2)
(slice(0, 2, None), slice(2, 5, None), slice(5, 8, None))
>>> layout.pieces(2)  # of the weight its last element, and the whole bias
[('weight', 5, 6), ('bias', 0, 2)]

Nothing is padded: the shards of a vector differ by one element at most (``chunk_bounds``), and where there are more
ranks than elements some own none. A shard may begin and end in the middle of a parameter, which an optimizer that works
element by element does not notice.
"""

from dataclasses import dataclass
from math import prod

import torch

from ringzero.collectives.schedule import chunk_bounds


@dataclass(frozen=True)
class Layout:
    """``parameters`` are ``(name, shape)`` in the order in which they lie in a vector that ``ranks`` ranks share.

    With an ``owner`` that rank has the whole vector, and the others nothing of it.
    """

    parameters: tuple[tuple[str, tuple[int, ...]], ...]
    ranks: int
    owner: int | None = None

    @property
    def numel(self) -> int:
        return sum(prod(shape) for _, shape in self.parameters)

    def shard(self, rank: int) -> slice:
        """The elements of the vector that ``rank`` owns, as a slice."""
        if self.owner is not None:
            return slice(0, self.numel if rank == self.owner else 0)
        start, stop = chunk_bounds(self.numel, self.ranks)[rank : rank + 2].tolist()
        return slice(start, stop)

    def views(self, vector: torch.Tensor) -> dict[str, torch.Tensor]:
        """Of a 1-D tensor of ``numel`` elements: ``{name: view in the parameter's shape}``."""
        parts = vector.split([prod(shape) for _, shape in self.parameters])
        return {name: part.view(shape) for (name, shape), part in zip(self.parameters, parts, strict=True)}

    def pieces(self, rank: int) -> list[tuple[str, int, int]]:
        """What ``rank`` owns of each parameter: ``(name, start, stop)`` in elements of the flattened parameter."""
        shard, begin, owned = self.shard(rank), 0, []
        for name, shape in self.parameters:
            start, stop = max(shard.start - begin, 0), min(shard.stop - begin, prod(shape))
            if start < stop:
                owned.append((name, start, stop))
            begin += prod(shape)
        return owned
