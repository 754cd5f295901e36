"""One message of the whole buffer."""
# caught by: test_reached
# mistake: one_of_a_kind
# says: the bandwidth is 4.12844e+11
# %% reached
def reached(size, n, alpha, beta):
    return size / (alpha + size * beta)
