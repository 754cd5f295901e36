"""Joins what computes as if it came in order of time."""
# caught by: test_exposed
# mistake: some_times_only
# says: the exposed time is
# %% exposed
def exposed(operations):
    def joined(stream):
        spans = []
        for op in operations:
            if op.stream == stream:
                if spans and op.start <= spans[-1][1]:
                    spans[-1][1] = max(spans[-1][1], op.end)
                else:
                    spans.append([op.start, op.end])
        return spans

    sends, computes = joined("communication"), joined("compute")
    hidden = sum(max(0, min(e, f) - max(b, c)) for b, e in sends for c, f in computes)
    return sum(end - begin for begin, end in sends) - hidden
