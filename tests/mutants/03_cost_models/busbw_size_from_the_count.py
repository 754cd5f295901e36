"""Takes the size as four times the count of elements."""
# caught by: test_bandwidths
# mistake: shown_cases_only
# says: algbw is
# %% bandwidths: changed
# -     size, microseconds = float(columns[0]), float(columns[5])
# +     size, microseconds = 4 * float(columns[1]), float(columns[5])
