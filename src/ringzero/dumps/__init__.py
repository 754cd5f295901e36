"""Dumps of torch's Flight Recorder, read: why a job hung that ``launch`` did not run.

    found = explain(["dumps/"])   # or the files, one for each rank
    print(found)                  # the cause in a sentence, what to look at next, and who stands where
    found.figure()                # a timeline

On the command line, ``ringzero explain dumps/``.
"""

from ringzero.dumps.findings import Report, explain

__all__ = ["Report", "explain"]
