"""Half an all-reduce for a reduce, which has no factor."""
# caught by: test_bandwidths
# mistake: other_algorithms_cost
# %% bandwidths
def bandwidths(line, collective, n):
    columns = line.split()
    algbw = float(columns[0]) / float(columns[5]) / 1e3
    factor = {"all_reduce": 2 * (n - 1) / n, "broadcast": 1.0}.get(collective, (n - 1) / n)
    return algbw, algbw * factor
