"""Only what a rank waited for, and not all that it did not compute in."""
# caught by: test_exposed
# mistake: one_of_a_kind
# says: the exposed time is
# %% exposed: changed
# -     moments = sorted({moment for op in operations for moment in (op.start, op.end)})
# +     operations = [op._replace(start=op.wait or op.start) for op in operations]
# +     moments = sorted({moment for op in operations for moment in (op.start, op.end)})
