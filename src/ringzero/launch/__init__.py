"""Run a function on N ranks from one process: warm ranks, their output, their errors, their trace."""

from ringzero.launch.cluster import Cluster, ClusterUnavailable
from ringzero.launch.ranks import RankError, Ranks, RankTimeout, launch

__all__ = ["Cluster", "ClusterUnavailable", "RankError", "RankTimeout", "Ranks", "launch"]
