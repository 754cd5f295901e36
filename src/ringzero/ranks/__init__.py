"""Run a function on N ranks from one process: warm ranks, their output, their errors, their trace."""

from ringzero.ranks.call import RankError, Ranks, RankTimeout, launch
from ringzero.ranks.cluster import Cluster, ClusterUnavailable

__all__ = ["Cluster", "ClusterUnavailable", "RankError", "RankTimeout", "Ranks", "launch"]
