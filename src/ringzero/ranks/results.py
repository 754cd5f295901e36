"""What a call on N ranks gives back: ``Ranks``, or the error of the rank that failed first."""

import html
import warnings
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from ringzero.record import export
from ringzero.record.operation import Operation, what_is_missing


@dataclass(frozen=True)
class Ranks:
    """What N ranks gave back.

    ``returns[r]`` is what rank r returned, ``output[r]`` what it printed (stdout and stderr, in order),
    ``trace`` the operations of all ranks, recorded when ``trace=True`` (see ``ringzero.record.Operation``): of each
    rank the first 2^20, and its last one says how many more there were (``missing``), which the repr says, too,
    ``seconds`` the wall-clock time of the whole call. Shown in a notebook, it shows the output by rank.
    With ``may_lose=True``, ``ended_by`` names the signal that ended a rank before it returned, such as
    ``{2: "SIGKILL"}``, and ``lost`` lists these ranks. A lost rank returned None; what it printed and what it recorded
    until then are there.
    """

    returns: list[Any]
    output: list[str]
    seconds: float
    trace: list[Operation] = field(default_factory=list, repr=False)
    ended_by: dict[int, str] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        return len(self.returns)

    @property
    def lost(self) -> list[int]:
        """The ranks that were lost, in order."""
        return sorted(self.ended_by)

    def save_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the trace as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open: a track for each rank, and
        one for what it computes if the function says so (``ringzero.record.computing``).
        """
        export.save_chrome_trace(self.trace, path)

    def __repr__(self) -> str:
        lines = []
        for rank, (text, value) in enumerate(zip(self.output, self.returns, strict=True)):
            lines += [f"rank {rank} │ {line}" for line in text.splitlines()]
            if rank in self.ended_by:
                lines.append(f"rank {rank} was lost ({self.ended_by[rank]})")
            elif value is not None:
                lines.append(f"rank {rank} → {value!r}")
        lines += [said] if (said := what_is_missing(self.trace)) else []
        return "\n".join(lines) or f"{self.world_size} ranks returned nothing and printed nothing"

    def _repr_html_(self) -> str:
        return f'<pre class="ringzero-ranks">{html.escape(repr(self))}</pre>'


class RankError(RuntimeError):
    """A rank failed. ``rank`` is the first that did, ``output`` what each rank had printed."""

    def __init__(self, message: str, rank: int, output: list[str]):
        super().__init__(message)
        self.rank, self.output = rank, output

    def _render_traceback_(self) -> list[str]:  # IPython shows this instead of the launcher's own lines
        return [f"{type(self).__name__}: {self}"]


class RankTimeout(RankError):  # noqa: N818  (it is a RankError)
    """The ranks were not done within the call's time, or waited for one another for ever: then ``deadlocked``."""

    def __init__(self, message: str, rank: int, output: list[str], deadlocked: bool):
        super().__init__(message, rank, output)
        self.deadlocked = deadlocked


def warn_if_cut(trace: list[Operation]) -> list[Operation]:
    """The trace; a warning if it is not all of it."""
    if said := what_is_missing(trace):
        warnings.warn(f"{said}; sums over it are too small: record fewer steps in one call", stacklevel=2)
    return trace
