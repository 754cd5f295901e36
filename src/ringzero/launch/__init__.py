"""Run a function on N ranks from one process: warm ranks, their output, their errors, their trace."""

from ringzero.launch.ranks import RankError, Ranks, RankTimeout, launch

__all__ = ["RankError", "RankTimeout", "Ranks", "launch"]
