"""Algorithm bandwidth passed off as bus bandwidth: right for two ranks only."""
# caught by: test_bandwidths
# mistake: part_missing
# %% bandwidths
def bandwidths(line, collective, n):
    columns = line.split()
    algbw = float(columns[0]) / float(columns[5]) / 1e3
    return algbw, algbw
