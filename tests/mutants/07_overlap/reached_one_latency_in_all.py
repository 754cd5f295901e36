"""Pays one alpha for all rounds."""
# caught by: test_reached
# mistake: part_missing
# says: the bandwidth is
# %% reached
def reached(size, n, alpha, beta):
    return 2 * (n - 1) * size / n / (alpha + 2 * (n - 1) * size / n * beta)
