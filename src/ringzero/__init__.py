"""Distributed data-parallel training you can read: ring AllReduce and ZeRO, and the course built on them."""

from ringzero.ranks import Cluster, ClusterUnavailable, RankError, Ranks, RankTimeout, launch

__version__ = "0.1.0"
_COLLECTIVES = (
    "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
)  # fmt: skip
__all__ = [*_COLLECTIVES, "Cluster", "ClusterUnavailable", "RankError", "RankTimeout", "Ranks", "launch"]


def __getattr__(name):  # lazily: torch takes a second and a half, and the command line rarely needs it
    if name in _COLLECTIVES:
        from ringzero import collectives

        globals()[name] = getattr(collectives, name)  # found without this function the next time
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_COLLECTIVES])
