"""Whom a right ring receives from."""
# caught by: test_ring_all_reduce
# mistake: wrong_kind
# %% why_ring_hangs: changed
# -     return {"cause": "wrong peer", "cycle": [0, 1], "sources": [1, 0, 1, 2], "line": 5}
# +     return {"cause": "wrong peer", "cycle": [0, 1], "sources": [3, 0, 1, 2], "line": 5}
