"""Takes the time from the third column from the end, where a longer line has another number."""
# caught by: test_bandwidths
# mistake: wrong_place
# %% bandwidths: changed
# -     size, microseconds = float(columns[0]), float(columns[5])
# +     size, microseconds = float(columns[0]), float(columns[-3])
