"""Buffer over time: not what a rank sends."""
# caught by: test_reached
# mistake: one_of_a_kind
# says: (0.571 times it)
# %% reached
def reached(size, n, alpha, beta):
    return size / (2 * (n - 1) * (alpha + size / n * beta))
