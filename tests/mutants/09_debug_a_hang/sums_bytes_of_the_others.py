"""What the others brought."""
# caught by: test_sum_pieces
# mistake: reversed
# %% why_sums_fail: changed
# -     return {"cause": "different order", "collective": 3, "odd": 1, "bytes": 12, "line": 4}
# +     return {"cause": "different order", "collective": 3, "odd": 1, "bytes": 24, "line": 4}
