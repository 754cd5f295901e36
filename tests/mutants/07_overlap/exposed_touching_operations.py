"""Takes computations that touch for a gap between them."""
# caught by: test_exposed
# mistake: some_times_only
# says: the exposed time is
# %% exposed
def exposed(operations):
    seconds = 0
    for op in operations:
        if op.stream == "communication":
            inside = any(o.stream == "compute" and o.start <= op.start and op.end <= o.end for o in operations)
            seconds += 0 if inside else op.end - op.start
    return seconds
