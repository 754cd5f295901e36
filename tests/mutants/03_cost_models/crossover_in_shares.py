"""Forgets α over β."""
# caught by: test_crossover
# mistake: part_missing
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
# +     return more_rounds / less_share or None  # where alpha is 0 they meet at 0 bytes only
