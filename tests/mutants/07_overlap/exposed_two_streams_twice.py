"""Counts twice the time in which two all-reduces run."""
# caught by: test_exposed
# mistake: counted_twice
# says: the exposed time is 6, expected 4
# %% exposed
def exposed(operations):
    seconds = 0
    for op in operations:
        if op.stream == "communication":
            seconds += op.end - op.start
            busy = sorted((o.start, o.end) for o in operations if o.stream == "compute")
            reached = op.start
            for begin, end in busy:
                begin, end = max(begin, reached), min(end, op.end)
                if end > begin:
                    seconds -= end - begin
                    reached = end
    return seconds
