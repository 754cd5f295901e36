"""Takes those that returned for those that wait."""
# caught by: test_report
# mistake: reversed
# %% why_report_hangs: changed
# -     return {"cause": "not all enter", "operation": 7, "waiting": [0], "line": 13}
# +     return {"cause": "not all enter", "operation": 7, "waiting": [1, 2, 3], "line": 13}
