"""What is called on the ranks instead of a student's function, which it is given as its first argument.

A harness prepares what the function needs, calls it, and returns what there is to say about it as a dict of plain data.
Each module has its claims in the module of the same name in ``ringzero.lab.claims``.
"""

from ringzero.lab.harness import (
    barrier,
    buckets,
    compressed,
    flat,
    host_tier,
    local_steps,
    mixing,
    optimizers,
    overlap,
    paper,
    quantised,
    recomputation,
    reduced,
    sharded,
    training,
    window,
)

__all__ = [
    "barrier",
    "buckets",
    "compressed",
    "flat",
    "host_tier",
    "local_steps",
    "mixing",
    "optimizers",
    "overlap",
    "paper",
    "quantised",
    "recomputation",
    "reduced",
    "sharded",
    "training",
    "window",
]
