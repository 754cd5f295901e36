"""The line that waits, in the function that is called, taken for the line that is wrong."""
# caught by: test_report
# mistake: symptom_for_cause
# %% why_report_hangs
def why_report_hangs():
    return {"cause": "not all enter", "operation": 7, "waiting": [0], "line": 3}
