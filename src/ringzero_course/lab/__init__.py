"""What a lab's notebook imports: checks with reasons, drawings of what the ranks did, a time budget for hangs.

In a test cell: ``Check`` runs a student's function on ranks, and says whether it meets its specification: one of
``lab.subjects``, or a collective with its ``traffic``. ``claims`` are what a check can say about a run, and a
``harness`` is what is called on the ranks where the function alone is not enough.
Elsewhere: ``check_parameters``, ``launch``, ``cluster``, ``draw``, ``explore``, ``slide`` and ``written``.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringzero_course.lab import claims, harness
    from ringzero_course.lab.budget import launch
    from ringzero_course.lab.checks import Check
    from ringzero_course.lab.claims import traffic
    from ringzero_course.lab.nodes import cluster
    from ringzero_course.lab.parameters import LabError, check_parameters, written
    from ringzero_course.lab.runs import LIBRARY
    from ringzero_course.lab.shown import draw, explore, slide

__all__ = [
    "LIBRARY",
    "Check",
    "LabError",
    "check_parameters",
    "claims",
    "cluster",
    "draw",
    "explore",
    "harness",
    "launch",
    "slide",
    "traffic",
    "written",
]

_MODULES = {
    "budget": ("launch",),
    "checks": ("Check",),
    "claims": ("traffic",),
    "nodes": ("cluster",),
    "parameters": ("LabError", "check_parameters", "written"),
    "runs": ("LIBRARY",),
    "shown": ("draw", "explore", "slide"),
}


def __getattr__(name):  # lazily: a kernel that only hands over a function need not import torch
    if name in ("claims", "harness"):
        return importlib.import_module(f"ringzero_course.lab.{name}")
    for module, names in _MODULES.items():
        if name in names:
            globals()[name] = getattr(importlib.import_module(f"ringzero_course.lab.{module}"), name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
