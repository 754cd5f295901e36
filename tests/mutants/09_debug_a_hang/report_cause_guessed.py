"""The numbers are read from the report, the cause is guessed."""
# caught by: test_report
# mistake: symptom_for_cause
# %% why_report_hangs
def why_report_hangs():
    return {"cause": "only slow", "operation": 7, "waiting": [0], "line": 13}
