"""Traces of anyone's training step, read: who waited for whom, on one clock.

    found = report(["traces/"])   # or ["rank0.json.gz", "rank1.json.gz"], or the trace of a launch
    print(found)                  # sentences, and a table of where each rank's time went
    found.figures()               # timelines

On the command line, ``ringzero timeline traces/``.
"""

from ringzero.profiles.findings import Report, report
from ringzero.profiles.profile import Profile
from ringzero.profiles.reading import read

__all__ = ["Profile", "Report", "read", "report"]
