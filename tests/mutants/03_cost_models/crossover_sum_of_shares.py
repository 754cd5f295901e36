"""Adds the shares."""
# caught by: test_crossover
# mistake: magnitude
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
# +     return more_rounds * alpha / (abs(first[1] + second[1]) * beta) or None  # where alpha is 0 they meet at 0 bytes only
