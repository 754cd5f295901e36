"""Takes the sizes in the report for the cause."""
# caught by: test_sum_pieces
# mistake: symptom_for_cause
# %% why_sums_fail
def why_sums_fail():
    return {"cause": "different sizes", "collective": 3, "odd": 1, "bytes": 12, "line": 4}
