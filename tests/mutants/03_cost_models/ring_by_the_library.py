"""Asks the library."""
# caught by: test_ring_cost
# mistake: ready_made
# says: is not to be used here
# %% ring_cost
def ring_cost(n):
    from ringzero.costs.coefficients import COEFFICIENTS

    return COEFFICIENTS["all_reduce"]["ring"](n)[:2]
