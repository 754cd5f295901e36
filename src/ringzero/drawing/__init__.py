"""SVG for a page with no kernel, which follows the page's light or dark colours: a frame, a table, and timelines.

The course's own figures are built on it (``ringzero_course.figures``).
"""

from ringzero.drawing.figure import Figure, standalone, table
from ringzero.drawing.timelines import timeline

__all__ = ["Figure", "standalone", "table", "timeline"]
