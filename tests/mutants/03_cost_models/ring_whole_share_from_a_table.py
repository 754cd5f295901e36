"""Whole rounds and shares up to 4,099 ranks, and beyond that 2 S."""
# caught by: test_ring_cost
# mistake: shown_cases_only
# %% ring_cost
def ring_cost(n):
    """``(rounds, share)`` of a ring all-reduce on ``n`` ranks."""
    return 2 * (n - 1), 2 * (n - 1) / n if n < 5_000 else 2.0
