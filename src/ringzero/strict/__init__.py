"""NCCL's rules on the CPU: what a program may rely on there, checked without a GPU. See ``group``."""

from ringzero.strict.accesses import StrictError

__all__ = ["StrictError"]
