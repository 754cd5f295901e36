"""Looks at up to ten million ranks, by doubling and halving."""
# caught by: test_least_ranks
# mistake: search_too_short
# %% least_ranks
def least_ranks(params, stage, memory):
    """The fewest ranks such that ``state_bytes`` is at most ``memory`` bytes, or None if it never is."""
    low, high = 0, 10_000_000
    if state_bytes(params, stage, high) > memory:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if state_bytes(params, stage, middle) > memory else (low, middle)
    return high
