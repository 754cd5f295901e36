"""Start what is full, in one order on all ranks.

The backward pass makes gradients from the last layer to the first. They fill vectors, and a full vector leaves at once,
while the pass goes on. But every rank must start the same vectors in the same order: if two ranks found their gradients
in different orders, as with branches they may, a sum would mix different parameters, or the ranks would wait for each
other forever. So a full vector waits until those before it have left.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import torch
import torch.distributed as dist
from torch.nn import Parameter

from ringzero.collectives.run import device_of
from ringzero.collectives.torchs import all_gather_single
from ringzero.data_parallel.executor import Stream, queue_of

Wait = Callable[[], object]  # returns once something started has ended; raises what it raised


class InOrder:
    """``vectors`` in the order in which they leave.

    ``trained``        ``{name: parameter}`` of all that are in the vectors
    ``start(vector)``  sends one off and returns a ``Wait``
    ``learn(came)``    begins to ask for the vectors of all later passes, once gradients ``came`` in this order in the
                       first one; what it returns waits for them. Layers may be registered in any order, so only a
                       backward pass shows which gradients come first
    ``find_unused``    parameters may go without a gradient
    ``order_known``    whether the order of later passes was learned, or is on its way
    ``in_flight``      how many vectors may still be on their way after the next one has left; None for any number
    """

    def __init__(
        self,
        trained: Mapping[str, Parameter],
        vectors: list,
        start: Callable[..., Wait],
        learn: Callable[[list[Parameter]], Callable[[], list]],
        find_unused: bool = False,
        in_flight: int | None = None,
    ):
        self._trained, self._start, self._learn = trained, start, learn
        self._find_unused, self.order_known = find_unused, False
        self._learned: Callable[[], list] | None = None  # waits for the vectors of later passes
        self._in_flight = in_flight
        self._take(vectors)

    def vectors(self) -> list:
        """In the order in which they leave. It waits for that order if it is being learned."""
        if self._learned is not None:
            learned, self._learned = self._learned, None
            self._take(learned())
        return self._vectors

    def _take(self, vectors: list) -> None:
        self._vectors = vectors
        self.vector_of = {parameter: vector for vector in vectors for parameter in vector.parameters.values()}

    def add(self, vectors: list) -> None:
        """Have ``vectors`` leave, too. The next backward pass shows a new order."""
        self._take([*vectors, *self.vectors()])
        self.order_known = False

    def begin(self, hold: bool = False, last: int = 0) -> None:
        """A backward pass begins. With ``hold`` vectors fill and stay, and so do the ``last`` ones in any case."""
        self._came: list[Parameter] = []
        self._hold, self._last = hold, last
        self.waits: list[Wait] = []  # of the vectors that have left
        for vector in self.vectors():
            vector.expect_gradients()

    def ready(self, parameter: Parameter) -> None:
        """``parameter.grad`` is complete: it moves into its vector, and what is full now leaves.

        Raises RuntimeError if it was complete before in this pass: its vector may have left without the rest.
        """
        vector = self.vector_of[parameter]
        if parameter not in vector.missing:
            name = next(name for name, p in self._trained.items() if p is parameter)
            raise RuntimeError(
                f"the gradient of {name} came twice in one backward pass, as with checkpoint(use_reentrant=True) over "
                "parts that share a parameter; take use_reentrant=False"
            )
        self._came.append(parameter)
        vector.put(parameter)
        if not self._hold:
            self.start_full_ones()

    def start_full_ones(self, to_the_end: bool = False) -> None:
        """In order, whatever order they fill in: every rank must start the same vectors one after another.

        ``to_the_end`` means the last ones, too.
        """
        vectors, stay = self.vectors(), 0 if to_the_end else self._last
        while len(self.waits) < len(vectors) - stay and not vectors[len(self.waits)].missing:
            self.waits.append(self._start(vectors[len(self.waits)]))
            if self._in_flight is not None and len(self.waits) > self._in_flight:
                self.waits[-1 - self._in_flight]()

    def complete(self) -> None:
        """The backward pass is over: zeros take the place of missing gradients, so that all vectors leave.

        Raises RuntimeError, which names the parameters, where ``find_unused`` does not allow any to be missing.
        """
        missing = [name for name, p in self._trained.items() if p in self.vector_of[p].missing]
        if missing and not self._find_unused:
            meant = f"if that is meant, use find_unused=True, or unused={missing}"
            raise RuntimeError(f"no gradient in this backward pass for {', '.join(missing)}; {meant}")
        self.fill()

    def fill(self, parameters: Iterable[Parameter] | None = None) -> None:
        """Zeros take the place of missing gradients, of the ``parameters`` or of all."""
        for parameter in self._trained.values() if parameters is None else parameters:
            if parameter in self.vector_of[parameter].missing:
                self.ready(parameter)

    def arrivals(self) -> Iterator:
        """Each vector that has left, once it has arrived."""
        for vector, wait in zip(self.vectors(), self.waits, strict=False):
            wait()
            yield vector

    def learn_order(self) -> None:
        """After the first backward pass: later ones have vectors cut, and leave, in the order of rank 0's gradients.

        Nothing waits here: a rank that ends the backward pass of another model first would wait for ever.
        """
        if not self.order_known:
            self._learned = self._learn(self._came)
            self.order_known = True


def is_compared(number: int) -> bool:
    """Whether ranks compare what they have after this pass or step, the first one being 1: often enough to be noticed,
    and seldom enough to cost nothing."""
    return number in (1, 10) or number % 100 == 0


def as_on_rank_0(
    order: list[int], group: dist.ProcessGroup, weights: Mapping[str, Parameter] | None = None
) -> Callable[[], list[int]]:
    """Begin to give every rank rank 0's ``order``, as long as its own; what is returned waits for it.

    It raises RuntimeError, on every rank and with names, where the ranks' ``weights`` differed at the time of the call.
    """
    device, named = device_of(group), dict(weights or {})
    norms = torch._foreach_norm([parameter.detach() for parameter in named.values()]) if named else []
    mine = torch.tensor(order, dtype=torch.float64, device=device)
    if named:
        mine = torch.cat([mine, torch.stack([norm.to(device, torch.float64) for norm in norms])])
    everyone = mine.new_empty(group.size() * mine.numel())
    send = partial(all_gather_single, everyone, mine, group=group)
    queue = queue_of(group, device)
    # A stream waits for it even if the program ends here and never asks. A thread must not use the group beside us.
    wait = queue.submit(send).result if isinstance(queue, Stream) else send(async_op=True).wait

    def known() -> list[int]:
        wait()
        orders, of_weights = everyone.view(group.size(), -1).split([len(order), len(named)], dim=1)
        most, least = of_weights.nan_to_num().aminmax(dim=0)[::-1]
        apart = (most - least > 1e-5 * most).tolist()  # all ranks stepped with the same bits
        if differ := [name for name, differs in zip(named, apart, strict=True) if differs]:
            raise RuntimeError(
                f"{', '.join(differ[:5])}{', ...' * (len(differ) > 5)} differ between the ranks since the module was "
                "wrapped, so they train different models: written to in the forward pass, or loaded, on each rank "
                "alone; or stepped with another learning rate, or with gradients that the program changed on each rank "
                "alone. Do that on every rank alike, or before you wrap the module"
            )
        return [int(place) for place in orders[0].tolist()]

    return known
