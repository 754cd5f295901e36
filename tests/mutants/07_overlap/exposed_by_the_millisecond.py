"""Looks at one moment in each millisecond."""
# caught by: test_exposed
# mistake: some_times_only
# says: the exposed time is
# %% exposed
def exposed(operations):
    begin, end = min(op.start for op in operations), max(op.end for op in operations)
    seconds = 0
    for step in range(round(1000 * (end - begin))):
        now = begin + (step + 0.5) / 1000
        streams = {op.stream for op in operations if op.start < now < op.end}
        seconds += streams == {"communication"}
    return seconds / 1000
