"""Counts lines from the docstring on."""
# caught by: test_report
# mistake: one_off
# %% why_report_hangs: changed
# -     return {"cause": "not all enter", "operation": 7, "waiting": [0], "line": 13}
# +     return {"cause": "not all enter", "operation": 7, "waiting": [0], "line": 12}
