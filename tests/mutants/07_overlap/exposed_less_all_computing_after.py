"""Merges all-reduces into one from the first to the last."""
# caught by: test_exposed
# mistake: special_case
# %% exposed
def exposed(operations):
    sends = [op for op in operations if op.stream == "communication"]
    if not sends:
        return 0
    begin, end = min(op.start for op in sends), max(op.end for op in sends)
    moments = sorted({begin, end, *(t for op in operations for t in (op.start, op.end) if begin <= t <= end)})
    seconds = 0
    for a, b in zip(moments, moments[1:]):
        if not any(op.start <= a and b <= op.end for op in operations if op.stream == "compute"):
            seconds += b - a
    return seconds
