"""Adds up all communication, hidden or not."""
# caught by: test_exposed
# says: the exposed time is
# %% exposed
def exposed(operations):
    return sum(op.end - op.start for op in operations if op.stream == "communication")
