"""Asks the library."""
# caught by: test_halving_doubling_cost
# mistake: ready_made
# %% halving_doubling_cost
from ringzero.costs.coefficients import COEFFICIENTS


def halving_doubling_cost(n):
    return COEFFICIENTS["all_reduce"]["rabenseifner"](n)[:2]
