"""Takes the operations out of the trace one by one."""
# caught by: test_first_missing
# mistake: changes_its_input
# %% first_missing: changed
# -     for op in trace:
# +     while trace:
# +         op = trace.pop()
