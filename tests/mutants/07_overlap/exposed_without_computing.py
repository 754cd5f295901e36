"""Communication less computing, as sums."""
# caught by: test_exposed
# mistake: one_of_a_kind
# says: the exposed time is
# %% exposed
def exposed(operations):
    total = {"compute": 0, "communication": 0}
    for op in operations:
        total[op.stream] += op.end - op.start
    return max(0, total["communication"] - total["compute"])
