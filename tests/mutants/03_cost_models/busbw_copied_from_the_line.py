"""Returns the last two columns."""
# caught by: test_bandwidths
# mistake: shown_cases_only
# %% bandwidths
def bandwidths(line, collective, n):
    columns = line.replace("?", "0").split()
    return float(columns[-2]), float(columns[-1])
