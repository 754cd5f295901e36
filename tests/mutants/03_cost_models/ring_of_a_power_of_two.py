"""2 - 2 / 2**k for the share, with the logarithm rounded."""
# caught by: test_ring_cost
# mistake: other_algorithms_cost
# %% ring_cost
def ring_cost(n):
    return 2 * (n - 1), 2 - 2 / 2 ** round(n ** 0.5 if n > 4 else n / 2)
