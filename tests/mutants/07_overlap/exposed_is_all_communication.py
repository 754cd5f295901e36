"""Adds up all communication, hidden or not."""
# caught by: test_exposed
# mistake: one_of_a_kind
# says: the exposed time is
# %% exposed
def exposed(operations):
    return sum(op.end - op.start for op in operations if op.stream == "communication")
