"""GiB for GB."""
# caught by: test_bandwidths
# mistake: units
# %% bandwidths
def bandwidths(line, collective, n):
    columns = line.split()
    algbw = float(columns[0]) / 2**30 / (float(columns[5]) * 1e-6)
    factor = {"all_reduce": 2 * (n - 1) / n, "broadcast": 1.0, "reduce": 1.0}.get(collective, (n - 1) / n)
    return algbw, algbw * factor
