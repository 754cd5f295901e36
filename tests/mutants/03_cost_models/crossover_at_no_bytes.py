"""Gives a size of 0 bytes where the latency is 0."""
# caught by: test_crossover
# mistake: special_case
# says: returned 0.0, not None
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
# +     return more_rounds * alpha / (less_share * beta)
