"""Sorts the record that it was given."""
# caught by: test_exposed
# mistake: changes_its_input
# %% exposed: changed
#       """Seconds in which a rank communicates and does not compute."""
# +     operations.sort(key=lambda op: op.start)
#       moments = sorted({moment for op in operations for moment in (op.start, op.end)})
