"""The factor of all-reduce, whatever the collective."""
# caught by: test_bandwidths
# mistake: other_algorithms_cost
# %% bandwidths
def bandwidths(line, collective, n):
    columns = line.split()
    algbw = float(columns[0]) / float(columns[5]) / 1e3
    return algbw, algbw * 2 * (n - 1) / n
