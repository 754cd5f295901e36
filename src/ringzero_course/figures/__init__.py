"""Figures for a page with no kernel: inline SVG that follows the page's light or dark colours.

``spacetime`` draws a schedule, ``timeline`` what ranks really did, ``chart`` measured against predicted,
``before_after`` what a collective did on each rank, ``memory_timeline`` what a training step held, kind by kind, and
``queues`` what would run, and what would hang, on NCCL. ``explore`` puts a whole grid of figures behind labelled
inputs, ``calculator`` lets the page compute with its reader's numbers, ``stepper`` goes through schedules round by
round, and in ``write_it`` the reader writes an algorithm. Each returns an object that a notebook shows.
"""

from ringzero.drawing.figure import Figure, standalone, table
from ringzero.drawing.timelines import timeline
from ringzero_course.figures.allocations import memory_timeline
from ringzero_course.figures.before_and_after import before_after
from ringzero_course.figures.calculators import calculator
from ringzero_course.figures.charts import chart
from ringzero_course.figures.controls import explore
from ringzero_course.figures.editors import write_it
from ringzero_course.figures.queueing import queues
from ringzero_course.figures.space_time import spacetime
from ringzero_course.figures.stepping import stepper

__all__ = [
    "Figure",
    "before_after",
    "calculator",
    "chart",
    "explore",
    "memory_timeline",
    "queues",
    "spacetime",
    "standalone",
    "stepper",
    "table",
    "timeline",
    "write_it",
]
