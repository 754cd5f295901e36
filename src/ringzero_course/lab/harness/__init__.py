"""What is called on the ranks instead of a student's function, which it is given as its first argument.

A harness prepares what the function needs, calls it, and returns what there is to say about it as a dict of plain data.
Those of one lab are with its specifications, in ``lab/subjects``.
"""

from ringzero_course.lab.harness import paper, training

__all__ = ["paper", "training"]
