"""What a lab notebook imports: checks with reasons, drawings of what your ranks did, a time budget for hangs."""

from ringzero.lab.budget import launch
from ringzero.lab.checks import Check
from ringzero.lab.explorer import draw, explore, slide
from ringzero.lab.nodes import cluster
from ringzero.lab.parameters import LabError, check_parameters, written

__all__ = ["Check", "LabError", "check_parameters", "cluster", "draw", "explore", "launch", "slide", "written"]
