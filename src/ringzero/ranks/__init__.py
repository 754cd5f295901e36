"""Run a function on N ranks from one process: warm ranks, their output, their errors, their trace."""

from ringzero.ranks.call import launch
from ringzero.ranks.cluster import Cluster, ClusterUnavailable
from ringzero.ranks.results import RankError, Ranks, RankTimeout

__all__ = ["Cluster", "ClusterUnavailable", "RankError", "RankTimeout", "Ranks", "launch"]
