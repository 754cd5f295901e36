"""The line that waits."""
# caught by: test_sum_pieces
# mistake: symptom_for_cause
# %% why_sums_fail: changed
# -     return {"cause": "different order", "collective": 3, "odd": 1, "bytes": 12, "line": 4}
# +     return {"cause": "different order", "collective": 3, "odd": 1, "bytes": 12, "line": 6}
