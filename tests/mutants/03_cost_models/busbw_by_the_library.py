"""Asks the library, which the notebook imports."""
# caught by: test_bandwidths
# mistake: ready_made
# %% bandwidths
def bandwidths(line, collective, n):
    size, elapsed = float(line.split()[0]), 1e-6 * float(line.split()[5])
    both = alpha_beta.algorithm_bandwidth(size, elapsed), alpha_beta.bus_bandwidth(collective, n, size, elapsed)
    return tuple(each / 1e9 for each in both)
