"""Looks only behind the end of the computing."""
# caught by: test_exposed
# mistake: some_times_only
# says: the exposed time is
# %% exposed
def exposed(operations):
    over = max((op.end for op in operations if op.stream == "compute"), default=0)
    last = max((op.end for op in operations if op.stream == "communication"), default=0)
    return max(0, last - over)
