"""Whole microseconds."""
# caught by: test_bandwidths
# mistake: rounded_wrongly
# %% bandwidths: changed
# -     size, microseconds = float(columns[0]), float(columns[5])
# +     size, microseconds = float(columns[0]), int(float(columns[5]))
