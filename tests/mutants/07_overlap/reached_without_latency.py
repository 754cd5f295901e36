"""The data sheet's bandwidth, whatever the size."""
# caught by: test_reached
# mistake: part_missing
# says: the bandwidth is 4.5e+11
# %% reached
def reached(size, n, alpha, beta):
    return 1 / beta
