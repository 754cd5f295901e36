"""Searches by halving between a byte and a terabyte."""
# caught by: test_crossover
# mistake: search_too_short
# %% crossover
def crossover(first, second, alpha, beta):
    """The size (bytes, above 0) at which the costs ``first`` and ``second`` take equally long, or None."""

    def later(size):
        return (first[0] - second[0]) * alpha + (first[1] - second[1]) * size * beta

    low, high = 1.0, 1e12
    if later(low) * later(high) >= 0:
        return None
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if later(middle) * later(low) > 0 else (low, middle)
    return low
