"""Start what is full, in one order on all ranks.

The backward pass makes gradients from the last layer to the first. They fill vectors, and a full vector leaves at once,
while the pass goes on. But every rank must start the same vectors in the same order: if two ranks found their gradients
in different orders, as with branches they may, a sum would mix different parameters, or the ranks would wait for each
other forever. So a full vector waits until those before it have left.
"""

from collections.abc import Callable, Iterator, Mapping

import torch.distributed as dist
from torch.nn import Parameter

Wait = Callable[[], object]  # returns once something started has ended; raises what it raised


class InOrder:
    """``vectors`` in the order in which they leave.

    ``trained``        ``{name: parameter}`` of all that are in the vectors
    ``start(vector)``  sends one off and returns a ``Wait``
    ``learn(came)``    gives the vectors of all later passes, once gradients ``came`` in this order in the first one.
                       Layers may be registered in any order, so only a backward pass shows which gradients come first
    ``find_unused``    parameters may go without a gradient
    ``in_flight``      how many vectors may still be on their way after the next one has left; None for any number
    """

    def __init__(
        self,
        trained: Mapping[str, Parameter],
        vectors: list,
        start: Callable[..., Wait],
        learn: Callable[[list[Parameter]], list],
        find_unused: bool = False,
        in_flight: int | None = None,
    ):
        self._trained, self._start, self._learn = trained, start, learn
        self._find_unused, self._order_known = find_unused, False
        self._in_flight = len(trained) if in_flight is None else in_flight  # there are no more vectors than parameters
        self._take(vectors)

    def _take(self, vectors: list) -> None:
        self.vectors = vectors
        self.vector_of = {parameter: vector for vector in vectors for parameter in vector.parameters.values()}

    def begin(self, hold: bool = False) -> None:
        """A backward pass begins. With ``hold`` vectors fill and stay."""
        self._came: list[Parameter] = []
        self._hold = hold
        self.waits: list[Wait] = []  # of the vectors that have left
        for vector in self.vectors:
            vector.expect_gradients()

    def ready(self, parameter: Parameter) -> None:
        """``parameter.grad`` is complete: it moves into its vector, and what is full now leaves."""
        self._came.append(parameter)
        self.vector_of[parameter].put(parameter)
        if not self._hold:
            self.start_full_ones()

    def start_full_ones(self) -> None:
        """In order, whatever order they fill in: every rank must start the same vectors one after another."""
        while len(self.waits) < len(self.vectors) and not self.vectors[len(self.waits)].missing:
            self.waits.append(self._start(self.vectors[len(self.waits)]))
            if len(self.waits) > self._in_flight:
                self.waits[-1 - self._in_flight]()

    def complete(self) -> None:
        """The backward pass is over: zeros take the place of missing gradients, so that all vectors leave.

        Raises RuntimeError, which names the parameters, where ``find_unused`` does not allow any to be missing.
        """
        missing = [name for name, p in self._trained.items() if p in self.vector_of[p].missing]
        if missing and not self._find_unused:
            meant = f"if that is meant, use find_unused=True, or unused={missing}"
            raise RuntimeError(f"no gradient in this backward pass for {', '.join(missing)}; {meant}")
        for name in missing:
            self.ready(self._trained[name])

    def arrivals(self) -> Iterator:
        """Each vector that has left, once it has arrived."""
        for vector, wait in zip(self.vectors, self.waits, strict=False):
            wait()
            yield vector

    def learn_order(self) -> None:
        """After the first backward pass: from now on vectors are cut, and leave, in the order of rank 0's gradients."""
        if not self._order_known:
            self._take(self._learn(self._came))
            self._order_known = True


def as_on_rank_0(order: list, group: dist.ProcessGroup) -> list:
    """Rank 0's ``order``, a list of names or numbers, on every rank."""
    dist.broadcast_object_list(order, group_src=0, group=group)
    return order
