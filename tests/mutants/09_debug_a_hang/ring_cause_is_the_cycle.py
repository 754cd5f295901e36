"""Takes the cycle in the report for the cause."""
# caught by: test_ring_all_reduce
# mistake: symptom_for_cause
# %% why_ring_hangs
def why_ring_hangs():
    return {"cause": "all send first", "cycle": [0, 1], "sources": [1, 0, 1, 2], "line": 5}
