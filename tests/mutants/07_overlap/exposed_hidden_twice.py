"""Takes off the same time for two computations that overlap."""
# caught by: test_exposed
# mistake: counted_twice
# says: the exposed time is
# %% exposed
def exposed(operations):
    seconds = 0
    for op in operations:
        if op.stream == "communication":
            seconds += op.end - op.start
            for other in operations:
                if other.stream == "compute":
                    seconds -= max(0, min(op.end, other.end) - max(op.start, other.start))
    return seconds
