"""A rank with no batches left still joins every collective, with zeros, as in torch's ``Join``."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch.distributed as dist

from ringzero.data_parallel import behind


@contextmanager
def join(
    model: Any, divide_by_initial_world_size: bool = True, throw_on_early_termination: bool = False
) -> Iterator[None]:
    """Ranks may run different numbers of steps inside; all end with the state of one that ran longest.

    That is the state of the module and, which torch leaves as it is, of the optimizers that step it. Schedulers
    are the program's own: a rank that is out of data does not step them.

    A rank that is out of data takes part with zeros in the other ranks' means. Buffers are each rank's own inside.
    Arguments are those of torch's: without ``divide_by_initial_world_size`` means are over the ranks that have data
    left; with ``throw_on_early_termination`` it is a RuntimeError on every rank when one is out of data.
    """
    behind.watch(model)
    broadcast_buffers, model.broadcast_buffers = model.broadcast_buffers, False  # no forward pass without data
    may_differ, model.weights_may_differ = model.weights_may_differ, True
    model.joining = joining = Joining(model, divide_by_initial_world_size, throw_on_early_termination)
    try:
        yield
        model.joining = None
        joining.follow()
        model.take_state_of(joining.last, joining.uneven)
    finally:
        model.joining, model.broadcast_buffers, model.weights_may_differ = None, broadcast_buffers, may_differ
        model.joined = model.passes
        model.mean_over(model.group.size())


class Joining:
    """What the ranks of ``model.group`` do together. ``last`` is the highest rank that had data to the end.

    ``uneven``         whether another one had not
    ``mean_over_all``  whether means stay those over all ranks; otherwise they are over the ranks that have data left
    ``end_together``   whether all ranks raise RuntimeError as soon as one is out of data
    """

    def __init__(self, model: Any, mean_over_all: bool, end_together: bool):
        self._model, self._mean_over_all, self._end_together = model, mean_over_all, end_together
        self.last, self.uneven = 0, False

    def follow(self) -> None:
        """This rank is out of data: do what the others do, until they are, too."""
        while (call := self.agree(None)) is not None:
            name, *args = call
            getattr(self._model, name)(*args)

    def agree(self, mine: tuple | None) -> tuple | None:
        """What the ranks that have data are about to call, if there are any. ``mine`` is None on a rank without."""
        calls: list[tuple | None] = [None] * self._model.group.size()
        dist.all_gather_object(calls, mine, group=self._model.group)
        with_data = [rank for rank, call in enumerate(calls) if call is not None]
        if not with_data:
            return None
        if self._end_together and len(with_data) < len(calls):
            raise RuntimeError(
                f"Rank {self._model.group.rank()} exhausted all inputs."
                if mine is None
                else "Detected at least one rank that exhausted inputs. Throwing across all ranks."
            )
        if not self._mean_over_all:
            self._model.mean_over(len(with_data))
        self.last, self.uneven = with_data[-1], self.uneven or len(with_data) < len(calls)
        theirs = cast(tuple, calls[self.last])
        if mine is not None and mine[0] != theirs[0]:
            raise RuntimeError(
                f"inside join rank {self._model.group.rank()} calls {mine[0]} where rank {self.last} calls "
                f"{theirs[0]}; ranks that have data must do the same"
            )
        return theirs
